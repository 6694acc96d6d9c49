"""The server with a real model behind it: llama.cpp, over each of the interfaces it has."""

import json
import os
import shutil
import unittest
import urllib.request

import eca_client
from llama import Llama

PROVIDERS = ("llamacpp", "llamacpp-responses", "llamacpp-anthropic")


class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llama = Llama()
        cls.addClassCleanup(cls.llama.close)

    def prompt(self, eca, message, model="llamacpp/exact", chat="chat"):
        answer = eca.request("chat/prompt", {"chatId": chat, "message": message, "model": model})
        self.assertEqual(answer["status"], "prompting")
        self.assertEqual(answer["model"], model)

    def sizes(self, eca, chat="chat"):
        return [content["sessionTokens"] for _, content in eca.contents(chat) if content["type"] == "usage"]

    def told(self, eca, chat="chat"):
        """What the server itself said in a chat."""
        pairs = eca.contents(chat)
        return "".join(content["text"] for role, content in pairs if (role, content["type"]) == ("system", "text"))

    def busy(self):
        with urllib.request.urlopen(f"{self.llama.address}/slots", timeout=eca_client.HANG_GUARD) as answer:
            return any(slot["is_processing"] for slot in json.load(answer))


class Dialect:
    """What works over every interface; a class below for each."""

    provider: str

    def test_an_answer_is_streamed_and_counted(self):
        with eca_client.Eca(self.llama.config()) as eca:
            self.prompt(eca, "Tell me about the sea.", f"{self.provider}/exact")
            eca.finish("chat")
            pieces = eca.pieces("chat")
            self.assertGreater(len(pieces), 3, self.told(eca))
            self.assertTrue("".join(pieces).strip())
            (size,) = self.sizes(eca)
            self.assertGreater(size, 24)
            self.assertEqual(eca.leave(), 0)

    def test_the_second_turn_carries_the_first(self):
        with eca_client.Eca(self.llama.config()) as eca:
            for turn in (1, 2):
                self.prompt(eca, "Name a colour.", f"{self.provider}/exact")
                eca.finish("chat", turn)
            first, second = self.sizes(eca)
            # Both turns ask the same and get 24 tokens; what is more in the second is the first.
            self.assertGreater(second, first + 24)

    def test_stop_hangs_up_on_the_model(self):
        with eca_client.Eca(self.llama.config()) as eca:
            self.prompt(eca, "Count from one to a million.", f"{self.provider}/endless")
            eca.until(lambda _: len(eca.pieces("chat")) >= 5)
            self.assertTrue(self.busy())
            eca.notify("chat/promptStop", {"chatId": "chat"})
            eca.finish("chat")
            # There is one slot, and the stopped answer has no end of its own.
            self.prompt(eca, "Say hello.", f"{self.provider}/short", chat="next")
            eca.finish("next")
            self.assertTrue("".join(eca.pieces("next")).strip(), self.told(eca, "next"))
            self.assertFalse(self.busy())

    def test_a_stopped_answer_is_part_of_the_history(self):
        with eca_client.Eca(self.llama.config()) as eca:
            self.prompt(eca, "Name a colour.", f"{self.provider}/endless")
            eca.until(lambda _: len(eca.pieces("chat")) >= 5)
            eca.notify("chat/promptStop", {"chatId": "chat"})
            eca.finish("chat")
            self.prompt(eca, "Name a colour.", f"{self.provider}/exact")
            eca.finish("chat", 2)
            self.prompt(eca, "Name a colour.", f"{self.provider}/exact", chat="fresh")
            eca.finish("fresh")
            self.assertGreater(self.sizes(eca)[-1], self.sizes(eca, "fresh")[0] + 5)

    def test_the_models_of_the_server_are_found(self):
        config = self.llama.config()
        provider = config["providers"][self.provider]
        provider["fetchModels"] = True
        provider["models"] = {}
        del config["defaultModel"]
        with eca_client.Eca(config) as eca:
            eca.until(
                lambda m: m.get("method") == "config/updated"
                and f"{self.provider}/smollm2" in m["params"].get("chat", {}).get("models", [])
            )

    def test_an_error_of_the_server_is_told_as_text(self):
        config = self.llama.config()
        config["providers"][self.provider]["models"]["short"]["extraPayload"]["temperature"] = "hot"
        with eca_client.Eca(config) as eca:
            self.prompt(eca, "Say hello.", f"{self.provider}/short")
            eca.finish("chat")
            self.assertIn("type must be number", self.told(eca))
            self.assertEqual(eca.pieces("chat"), [])


class OpenAiChat(Dialect, WithModel):
    provider = "llamacpp"


class OpenAiResponses(Dialect, WithModel):
    provider = "llamacpp-responses"


class Anthropic(Dialect, WithModel):
    provider = "llamacpp-anthropic"


class WithTools(WithModel):
    """A turn with a tool, whose call the model itself writes.

    The model's own template drops tools, and `tool_choice` alone does not help: llama.cpp's grammar
    for it lets any text come before the call, and so small a model never comes to an end with that.
    With a template that shows three such turns (`tools.jinja`) it imitates them, and from the tag
    that opens a call on the grammar keeps it valid. So what streams here is llama.cpp's own idea of
    a tool call, in each of its three interfaces, and what it is given back is read by its parsers."""

    @classmethod
    def setUpClass(cls):
        cls.llama = Llama("tools")
        cls.addClassCleanup(cls.llama.close)
        # A short name: the model has to copy it.
        cls.folder = next(name for name in (f"/tmp/d{n}" for n in range(1000)) if not os.path.exists(name))
        os.mkdir(cls.folder)
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        with open(os.path.join(cls.folder, "found-me.txt"), "w", encoding="utf-8"):
            pass

    def config(self):
        agent = {"systemPrompt": "You list directories.", "disabledTools": ["(?!(eca__)?directory_tree$).*"]}
        return {**self.llama.config(), "agent": {"code": agent}, "chat": {"title": False, "maxSteps": 3}}

    def turn(self, provider):
        with eca_client.Eca(self.config()) as eca:
            params = {"chatId": "chat", "message": f"List {self.folder}", "model": f"{provider}/tools", "trust": True}
            eca.request("chat/prompt", params)
            eca.finish("chat")
            contents = [content for _, content in eca.contents("chat")]
            (called,) = [content for content in contents if content["type"] == "toolCalled"]
            self.assertEqual(called["name"], "directory_tree", contents)
            self.assertEqual(called["arguments"], {"path": self.folder})
            self.assertIn("found-me.txt", called["outputs"][0]["text"])
            prepared = [content for content in contents if content["type"] == "toolCallPrepare"]
            arguments = "".join(content["argumentsText"] for content in prepared)
            self.assertEqual(json.loads(arguments), {"path": self.folder})
            # The model was told the result, and answered with words.
            after = contents[contents.index(called) :]
            said = "".join(content["text"] for content in after if content["type"] == "text")
            self.assertTrue(said.strip(), contents)
            self.assertEqual(eca.leave(), 0)

    def test_a_tool_turn_through_chat_completions(self):
        self.turn("llamacpp")

    def test_a_tool_turn_through_responses(self):
        self.turn("llamacpp-responses")

    def test_a_tool_turn_through_messages(self):
        self.turn("llamacpp-anthropic")


class RealModel(WithModel):
    def test_every_dialect_sends_and_counts_the_same(self):
        # The model's own template turns all three requests into one text, so they have one size and
        # one answer, also when the turns before were made in another dialect.
        seen = set()
        with eca_client.Eca(self.llama.config()) as eca:
            for start, first in enumerate(PROVIDERS):
                chat = f"begun-with-{first}"
                for turn in range(3):
                    self.prompt(eca, "Name a colour.", f"{PROVIDERS[(start + turn) % 3]}/exact", chat)
                    eca.finish(chat, turn + 1)
                seen.add((tuple(self.sizes(eca, chat)), "".join(eca.pieces(chat))))
        self.assertEqual(len(seen), 1, seen)
        ((sizes, _),) = seen
        self.assertEqual(len(sizes), 3)

    def test_the_second_turn_of_another_chat_does_not_carry_the_first(self):
        with eca_client.Eca(self.llama.config()) as eca:
            for chat in ("one", "two"):
                self.prompt(eca, "Name a colour.", chat=chat)
                eca.finish(chat)
            self.assertEqual(self.sizes(eca, "one"), self.sizes(eca, "two"))

    def test_shutdown_hangs_up_on_the_model(self):
        with eca_client.Eca(self.llama.config()) as eca:
            self.prompt(eca, "Count from one to a million.", model="llamacpp/endless")
            eca.until(lambda _: len(eca.pieces("chat")) >= 2)
            self.assertEqual(eca.leave(), 0)
        with eca_client.Eca(self.llama.config()) as eca:
            self.prompt(eca, "Say hello.", model="llamacpp/short")
            eca.finish("chat")
            self.assertTrue("".join(eca.pieces("chat")).strip())

    def test_the_model_makes_a_title(self):
        with eca_client.Eca(self.llama.config(title=True)) as eca:
            self.prompt(eca, "How do I sort a list in Python?", model="llamacpp/short")
            message = eca.until(lambda m: m.get("params", {}).get("content", {}).get("type") == "metadata")
            title = message["params"]["content"]["title"]
            self.assertTrue(0 < len(title) <= 40 and "\n" not in title, title)
            eca.finish("chat")


if __name__ == "__main__":
    eca_client.run_tests()
