#!/usr/bin/env bash
# Guess: a stream that ends before its model finished raises an error, or at least has no reason
#   that says "finished".
# Versions: litellm 1.108.7, openai 3.57.0; Python 3.11.
# Seen: neither library raises. The openai client gives None as the last `finish_reason`; LiteLLM
#   adds a chunk of its own that says `stop`, for a reason that it does not know, too.
# Output:
#   the connection ends after half a sentence: openai None, litellm 'stop'
#   the server ends with the reason 'abort': openai 'abort', litellm 'stop'
# For users: with openai, count a stream as whole only if a finish reason came. Behind LiteLLM a cut
#   answer looks whole, and a score of it is wrong: look for answers that end in mid-sentence. Its
#   whole replies keep the word of the server as `native_finish_reason`; its streams do not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-litellm==1.108.7 openai==3.57.0}"
timeout 900 "$folder/bin/pip" install --quiet "${packages[@]}"
export LITELLM_LOCAL_MODEL_COST_MAP=True NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
timeout 120 "$folder/bin/python" - << 'PYTHON'
import json
import logging
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import litellm
import openai

logging.disable(logging.CRITICAL)
MESSAGES = [{"role": "user", "content": "Why?"}]
reasons = []


class CutStream(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for text, reason in [("What if you ", None), *(("", each) for each in reasons)]:
            choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            data = json.dumps({**chunk, "choices": [choice]})
            self.wfile.write(f"data: {data}\n\n".encode())

    def log_message(self, *_): ...


server = ThreadingHTTPServer(("127.0.0.1", 0), CutStream)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
client = openai.OpenAI(base_url=url, api_key="none")


def last_reasons(name):
    own = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    other = litellm.completion(
        model="openai/m", api_base=url, api_key="none", messages=MESSAGES, stream=True)
    last = [[chunk.choices[0].finish_reason for chunk in chunks][-1] for chunks in (own, other)]
    print(f"{name}: openai {last[0]!r}, litellm {last[1]!r}")
    return last


silent = last_reasons("the connection ends after half a sentence")
reasons.append("abort")
if (silent, last_reasons("the server ends with the reason 'abort'")) != (
        [None, "stop"], ["abort", "stop"]):
    sys.exit("The behaviour changed: a cut stream is told from a finished one.")
PYTHON
