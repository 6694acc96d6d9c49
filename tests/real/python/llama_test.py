"""The server with a real model behind it: llama.cpp over its OpenAI-compatible interface."""

import json
import unittest
import urllib.request

import eca_client
from llama import Llama


class RealModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llama = Llama()
        cls.addClassCleanup(cls.llama.close)

    def prompt(self, eca, message, model="llamacpp/exact", chat="chat"):
        answer = eca.request("chat/prompt", {"chatId": chat, "message": message, "model": model})
        self.assertEqual(answer["status"], "prompting")
        self.assertEqual(answer["model"], model)

    def usage(self, eca):
        return [content for _, content in eca.contents("chat") if content["type"] == "usage"]

    def test_an_answer_is_streamed_and_counted(self):
        with eca_client.Eca(self.llama.config()) as eca:
            self.prompt(eca, "Tell me about the sea.")
            eca.finish("chat")
            pieces = eca.pieces("chat")
            self.assertGreater(len(pieces), 3, pieces)
            self.assertTrue("".join(pieces).strip())
            (usage,) = self.usage(eca)
            self.assertGreater(usage["sessionTokens"], 24)
            self.assertEqual(eca.leave(), 0)

    def test_the_second_turn_carries_the_first(self):
        with eca_client.Eca(self.llama.config()) as eca:
            for turn in (1, 2):
                self.prompt(eca, "Name a colour.")
                eca.finish("chat", turn)
            first, second = (usage["sessionTokens"] for usage in self.usage(eca))
            # Both turns ask the same and get 24 tokens; what is more in the second is the first.
            self.assertGreater(second, first + 24)

    def test_the_second_turn_of_another_chat_does_not(self):
        with eca_client.Eca(self.llama.config()) as eca:
            sizes = []
            for chat in ("one", "two"):
                self.prompt(eca, "Name a colour.", chat=chat)
                eca.finish(chat)
                sizes += [content["sessionTokens"] for _, content in eca.contents(chat) if content["type"] == "usage"]
            self.assertEqual(sizes[0], sizes[1])

    def test_stop_hangs_up_on_the_model(self):
        with eca_client.Eca(self.llama.config()) as eca:
            self.prompt(eca, "Count from one to a million.", model="llamacpp/endless")
            eca.until(lambda _: len(eca.pieces("chat")) >= 5)
            self.assertTrue(self.busy())
            eca.notify("chat/promptStop", {"chatId": "chat"})
            eca.finish("chat")
            # There is one slot, and the stopped answer has no end of its own.
            self.prompt(eca, "Say hello.", model="llamacpp/short", chat="next")
            eca.finish("next")
            self.assertTrue("".join(eca.pieces("next")).strip())
            self.assertFalse(self.busy())

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

    def test_the_models_of_the_server_are_found(self):
        config = self.llama.config()
        provider = config["providers"]["llamacpp"]
        provider["fetchModels"] = True
        provider["models"] = {}
        del config["defaultModel"]
        with eca_client.Eca(config) as eca:
            eca.until(
                lambda m: m.get("method") == "config/updated"
                and "llamacpp/smollm2" in m["params"].get("chat", {}).get("models", [])
            )

    def test_an_error_of_the_server_is_told_as_text(self):
        config = self.llama.config()
        config["providers"]["llamacpp"]["models"]["short"]["extraPayload"]["max_tokens"] = "many"
        with eca_client.Eca(config) as eca:
            self.prompt(eca, "Say hello.", model="llamacpp/short")
            eca.finish("chat")
            told = [content["text"] for role, content in eca.contents("chat") if (role, content["type"]) == ("system", "text")]
            self.assertTrue("".join(told).strip())
            self.assertEqual(eca.pieces("chat"), [])

    def busy(self):
        with urllib.request.urlopen(f"{self.llama.address}/slots", timeout=eca_client.HANG_GUARD) as answer:
            return any(slot["is_processing"] for slot in json.load(answer))


if __name__ == "__main__":
    eca_client.run_tests()
