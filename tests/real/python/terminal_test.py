"""One question from the command line, answered by a real model."""

import json
import os
import subprocess
import tempfile
import unittest

import eca_client
from llama import Llama


class OneShot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llama = Llama()
        cls.addClassCleanup(cls.llama.close)

    def ask(self, *words, config=None):
        with tempfile.TemporaryDirectory() as home:
            config_file = os.path.join(home, "config.json")
            with open(config_file, "w", encoding="utf-8") as file:
                json.dump({"localDiscovery": False, **(config or self.llama.config())}, file)
            return subprocess.run(
                [eca_client.BINARY, "chat", "--config-file", config_file, *words],
                env=eca_client.environment(home),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=eca_client.HANG_GUARD,
            )

    def test_the_answer_is_on_stdout(self):
        done = self.ask("Say hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.strip(), done.stderr)

    def test_events_as_json_lines(self):
        done = self.ask("--json", "Say hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        contents = [json.loads(line)["params"].get("content", {}) for line in done.stdout.splitlines()]
        self.assertTrue("".join(content["text"] for content in contents if content.get("type") == "text").strip())
        self.assertEqual(contents[-1].get("state"), "finished")

    def test_a_failed_turn_is_exit_code_1(self):
        config = self.llama.config()
        config["providers"]["llamacpp"]["models"]["short"]["extraPayload"]["max_tokens"] = "many"
        self.assertEqual(self.ask("Say hello", config=config).returncode, 1)


if __name__ == "__main__":
    eca_client.run_tests()
