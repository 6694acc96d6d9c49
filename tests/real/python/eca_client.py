"""A small client for the tests that drive the server from Python.

It reads what the server writes chunk by chunk, as some editors do, so that a test can look at the
chunks themselves, and it keeps every message in the order of its arrival.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import unittest

HANG_GUARD = 120
CHUNK = 1 << 20
BINARY = os.environ.get("ECA_BINARY", "eca")


class Eca:
    """A running `eca server` with a home of its own; a context manager that ends it."""

    def __init__(self, config):
        self._home = tempfile.TemporaryDirectory()
        self.config_file = os.path.join(self._home.name, "config.json")
        with open(self.config_file, "w", encoding="utf-8") as file:
            json.dump({"localDiscovery": False, **config}, file)
        self.process = subprocess.Popen(
            [BINARY, "server", "--config-file", self.config_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(self._home.name),
        )
        self.chunks = []
        self.messages = []
        self._contents = {}
        self._ends = {}
        self._arrived = queue.Queue()
        self._ids = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": "tests", "version": "1"},
                "capabilities": {"codeAssistant": {"chat": True}},
                "workspaceFolders": [],
            },
        )
        self.notify("initialized", {})
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self._reader.join(HANG_GUARD)
        self.process.stdout.close()
        self._home.cleanup()

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def request(self, method, params):
        self._ids += 1
        self.send({"id": self._ids, "method": method, "params": params})
        answer = self.until(lambda message: message.get("id") == self._ids and "method" not in message)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def until(self, fits):
        """The first message that fits, among those that came and those to come."""
        for message in self.messages:
            if fits(message):
                return message
        while True:
            message = self._arrived.get(timeout=HANG_GUARD)
            if message is None:
                raise AssertionError("the server closed its output")
            self._keep(message)
            if fits(message):
                return message

    def contents(self, chat):
        """What came for a chat, in order, as pairs of role and content."""
        return self._contents.get(chat, [])

    def pieces(self, chat):
        """The pieces of the model's text in a chat."""
        return [content["text"] for role, content in self.contents(chat) if (role, content["type"]) == ("assistant", "text")]

    def finish(self, chat, turns=1):
        """Waits until so many turns of the chat have ended."""
        self.until(lambda _: self._ends.get(chat, 0) >= turns)

    def leave(self):
        """Ends the server in order and returns its exit code."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(timeout=HANG_GUARD)

    def _keep(self, message):
        self.messages.append(message)
        if message.get("method") != "chat/contentReceived":
            return
        params = message["params"]
        chat, content = params["chatId"], params["content"]
        self._contents.setdefault(chat, []).append((params["role"], content))
        if content.get("state") == "finished":
            self._ends[chat] = self._ends.get(chat, 0) + 1

    def _read(self):
        output = self.process.stdout.fileno()
        rest = b""
        while chunk := os.read(output, CHUNK):
            self.chunks.append(chunk)
            rest += chunk
            frames, rest = split_frames(rest)
            for frame in frames:
                self._arrived.put(json.loads(frame))
        self._arrived.put(None)


def environment(home):
    """This process's environment with every folder of the user's inside `home`, and no keys."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "XDG_CACHE_HOME": home}


def split_frames(data):
    """The bodies of the whole frames at the start of `data`, and what is left after them."""
    frames = []
    while True:
        head, mark, tail = data.partition(b"\r\n\r\n")
        if not mark:
            return frames, data
        name, _, length = head.partition(b": ")
        if name != b"Content-Length" or not length.isdigit():
            raise ValueError(f"not a header: {head[:80]!r}")
        if len(tail) < int(length):
            return frames, data
        frames.append(tail[: int(length)])
        data = tail[int(length) :]


def run_tests():
    """Runs the tests of the main module and says how they went in the words of tests/real/run."""
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors) + len(result.skipped) + len(result.unexpectedSuccesses)
    print(f"{max(result.testsRun - bad, 0)} passed, {bad} failed", flush=True)
    sys.exit(bad != 0)
