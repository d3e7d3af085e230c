#!/usr/bin/env bash
# Guess: LiteLLM makes chunks of a reply that came whole although a stream was asked for, or fails.
# Versions: litellm 1.108.7; Python 3.11.
# Seen: it raises nothing and gives a stream without any text that ends with `stop`.
# Output:
#   asked for a stream, answered whole: text '', finish reason 'stop'
# For users: paid answers arrive empty behind a server that ignores `stream`. Ask for whole replies
#   there: Socratic Bench's option is `stream: false`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-litellm==1.108.7}"
timeout 900 "$folder/bin/pip" install --quiet "${packages[@]}"
export LITELLM_LOCAL_MODEL_COST_MAP=True NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
timeout 120 "$folder/bin/python" - << 'PYTHON'
import json
import logging
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import litellm

logging.disable(logging.CRITICAL)


class Whole(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "What if?"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        body = json.dumps({**reply, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): ...


server = ThreadingHTTPServer(("127.0.0.1", 0), Whole)
threading.Thread(target=server.serve_forever, daemon=True).start()
chunks = list(
    litellm.completion(
        model="openai/m",
        api_base=f"http://127.0.0.1:{server.server_port}/v1",
        api_key="none",
        messages=[{"role": "user", "content": "Why?"}],
        stream=True,
    )
)
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
reason = chunks[-1].choices[0].finish_reason if chunks else None
print(f"asked for a stream, answered whole: text {text!r}, finish reason {reason!r}")
if (text, reason) != ("", "stop"):
    sys.exit("The behaviour changed: the text arrives, or the caller is told.")
PYTHON
