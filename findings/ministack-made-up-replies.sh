#!/usr/bin/env bash
# Guess: MiniStack as a bridge from Bedrock's Converse to a model server passes on how a reply
#   ended, and an error as an error.
# Versions: ministack 1.5.33 (it pins botocore 1.43.106); Python 3.11.
# Seen: a reply that the server cut at its limit (`length`) has the stop reason `end_turn`, not
#   `max_tokens`. An HTTP 429 of the server becomes HTTP 200 with a text that MiniStack made up.
# Output:
#   the server cut its reply: 200 end_turn 'What if you'
#   the server answered 429: 200 end_turn '[ministack mock generic m] reply for prompt#957170c3'
# For users: a test over this bridge has to check that no reply begins with `[ministack mock`, or it
#   scores the text of no model. It says nothing about cut replies, throttling or errors.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-ministack==1.5.33}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
unset AWS_PROFILE
export AWS_CONFIG_FILE="$folder/none" AWS_SHARED_CREDENTIALS_FILE="$folder/none"
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 TMPDIR="$folder" FOLDER="$folder"
timeout 120 "$folder/bin/python" - << 'PYTHON'
import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.session import Session

CUT = {"message": {"role": "assistant", "content": "What if you"}, "finish_reason": "length"}
statuses = [200, 429]


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(statuses.pop(0))
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [CUT]}).encode())

    def log_message(self, *_): ...


model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=model.serve_forever, daemon=True).start()
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "bedrock-runtime",
            "MINISTACK_BEDROCK_PROXY_URL": f"http://127.0.0.1:{model.server_port}"}
command = [os.environ["FOLDER"] + "/bin/ministack"]
options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
with subprocess.Popen(command, env={**os.environ, **settings}, **options) as bridge:
    next(line for line in bridge.stdout if "Running on" in line)
    client = Session().create_client(
        "bedrock-runtime", region_name="eu-west-1", aws_access_key_id="none",
        aws_secret_access_key="none", endpoint_url=f"http://127.0.0.1:{port}")
    seen = []
    for name in ("cut its reply", "answered 429"):
        reply = client.converse(
            modelId="m", messages=[{"role": "user", "content": [{"text": "Why?"}]}])
        text = reply["output"]["message"]["content"][0]["text"]
        print(f"the server {name}: 200 {reply['stopReason']} {text!r}")
        seen.append((reply["stopReason"], text.startswith("[ministack mock")))
    bridge.terminate()
if seen != [("end_turn", False), ("end_turn", True)]:
    sys.exit("The behaviour changed: MiniStack passes on the limit.")
PYTHON
