"""Starts llama.cpp for a test module, and the configuration that names it."""

import os
import subprocess
import sys


class Llama:
    def __init__(self, *arguments):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama_server.py")
        self.process = subprocess.Popen(
            [sys.executable, "-B", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(f"llama.cpp did not start: exit code {self.process.wait(timeout=30)}")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def config(self, title=False):
        """One provider for each dialect, and in each four ways to use the one model: an answer of
        a few words, one of exactly 24 tokens, one that never ends, and one with room for a call."""
        return {
            "defaultModel": "llamacpp/short",
            "chat": {"title": title},
            "providers": {
                "llamacpp": self._provider("openai-chat", "/v1", "max_tokens"),
                "llamacpp-responses": self._provider("openai-responses", "/v1", "max_output_tokens"),
                "llamacpp-anthropic": self._provider("anthropic", "", "max_tokens"),
            },
        }

    def _provider(self, api, path, limit):
        def model(tokens):
            return {"modelName": "smollm2", "extraPayload": {"temperature": 0, limit: tokens}}

        return {
            "api": api,
            "url": f"{self.address}{path}",
            "fetchModels": False,
            "retry": {"maxRetries": 0},
            "models": {"short": model(16), "exact": model(24), "endless": model(-1), "tools": model(100)},
        }
