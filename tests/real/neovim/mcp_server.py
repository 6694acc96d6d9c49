#!/usr/bin/env python3
"""The smallest MCP server that is one: a single tool, over stdin and stdout."""

import json
import sys

TOOL = {"name": "greet", "description": "Says hello.", "inputSchema": {"type": "object", "properties": {}}}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "little", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "hello"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
