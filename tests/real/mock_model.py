#!/usr/bin/env python3
"""A scripted model for the tests with real editors.

It speaks the streaming dialect `openai-chat` and does what the prompt says: every line of the user's
last message that begins with one of these words is a step, and each call of the model takes the next
one. A line that begins with `+` belongs to the step before it.

    say TEXT            answers with the text, word by word; `\\n` is a line break
    think TEXT          reasons
    words N [MS]        answers with N words, one every MS milliseconds (0 if not given)
    call TOOL {JSON}    calls a tool; the tool's answer is in the next request
    fail STATUS TEXT    answers with this HTTP status and an error

Steps that are left over are for the next calls of the same turn; when there are none, the answer is
`done`. A message without any step is answered with `You said: …`.

    mock_model.py [--port N]

The first line on stdout is the address to put into a provider's `url`. GET /requests returns the
bodies of all requests so far. The program ends when its stdin does, so that it cannot outlive a test.
"""

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STEP = re.compile(r"^\s*(\+?)\s*(say|think|words|call|fail)\b ?(.*)$")
requests = []


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def steps_of(text):
    steps = []
    for line in text.splitlines():
        found = STEP.match(line)
        if found and found[1] and steps:
            steps[-1].append((found[2], found[3]))
        elif found:
            steps.append([(found[2], found[3])])
    return steps


def next_step(messages):
    """What this call of the model shall do: as many steps are behind it as it has spoken since the user."""
    user = max((number for number, message in enumerate(messages) if message["role"] == "user"), default=-1)
    text = text_of(messages[user]) if user >= 0 else ""
    spoken = sum(message["role"] == "assistant" for message in messages[user + 1 :])
    steps = steps_of(text)
    if not steps:
        return [("say", "You said: " + text.strip())]
    return steps[spoken] if spoken < len(steps) else [("say", "done")]


def deltas(actions):
    """The pieces of an answer, each with the seconds to wait before it."""
    calls = 0
    for verb, rest in actions:
        if verb in ("say", "think"):
            key = "content" if verb == "say" else "reasoning_content"
            for piece in re.findall(r"\s*\S+\s*$|\s*\S+", rest.replace("\\n", "\n")):
                yield 0.002, {key: piece}
        elif verb == "words":
            count, _, pause = rest.partition(" ")
            for number in range(int(count)):
                yield float(pause or 0) / 1000, {"content": f"word{number} "}
        elif verb == "call":
            name, _, arguments = rest.partition(" ")
            arguments = arguments.strip() or "{}"
            head = {"index": calls, "id": f"call_{time.monotonic_ns()}", "type": "function"}
            yield 0, {"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]}
            for start in range(0, len(arguments), 24):
                piece = {"index": calls, "function": {"arguments": arguments[start : start + 24]}}
                yield 0.002, {"tool_calls": [piece]}
            calls += 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.endswith("/models"):
            self.answer(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        elif self.path.endswith("/requests"):
            self.answer(200, requests)
        else:
            self.answer(404, {"error": {"message": "no such page"}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        requests.append(body)
        actions = next_step(body["messages"])
        for verb, rest in actions:
            if verb == "fail":
                status, _, message = rest.partition(" ")
                return self.answer(int(status), {"error": {"message": message}})
        if not body.get("stream"):
            text = "".join(delta.get("content", "") for _, delta in deltas(actions))
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return self.answer(200, {"choices": [choice], "usage": usage(body, 1)})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.stream(body, actions)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server hung up: that is what a stop looks like from here.

    def stream(self, body, actions):
        count, calls = 0, False
        for pause, delta in deltas(actions):
            time.sleep(pause)
            count += 1
            calls = calls or "tool_calls" in delta
            self.event({"choices": [{"index": 0, "delta": delta}]})
        reason = "tool_calls" if calls else "stop"
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        self.event({"choices": [], "usage": usage(body, count)})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def usage(body, output):
    prompt = len(json.dumps(body["messages"])) // 4
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def main():
    port = int(sys.argv[2]) if sys.argv[1:2] == ["--port"] else 0
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
