#!/usr/bin/env bash
# Guess: LiteLLM's proxy passes on what a 429 of the provider says: its Retry-After, and the name of
#   its error.
# Versions: litellm[proxy] 1.108.7; Python 3.11.
# Seen: the header arrives as `llm_provider-retry-after` alone. The name `insufficient_quota` becomes
#   `throttling_error`, so an account without quota looks like a busy provider.
# Output:
#   Retry-After None, llm_provider-retry-after 7, name throttling_error
# For users: the usual clients see no wait behind this gateway, and ask again at once. Read the header
#   with the prefix, and the message for `current quota`, which no wait refills.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${proxy:-}" 2> /dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-litellm[proxy]==1.108.7}"
timeout 900 "$folder/bin/pip" install --quiet "${packages[@]}"
export LITELLM_LOCAL_MODEL_COST_MAP=True NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
export LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true # listens on loopback
read -r upstream port < <(python3 - << 'PYTHON'
import socket

sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(each.getsockname()[1] for each in sockets))
PYTHON
)
cat > "$folder/config.yaml" << YAML
model_list:
  - model_name: m
    litellm_params: {model: openai/m, api_base: "http://127.0.0.1:$upstream/v1", api_key: none, max_retries: 0}
litellm_settings: {num_retries: 0, telemetry: false}
router_settings: {num_retries: 0, disable_cooldowns: true}
YAML
"$folder/bin/litellm" --config "$folder/config.yaml" --host 127.0.0.1 --port "$port" > "$folder/log" 2>&1 &
proxy=$!
timeout 600 "$folder/bin/python" - "$upstream" "$port" << 'PYTHON'
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

upstream, port = map(int, sys.argv[1:])


class Limited(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        said = "You exceeded your current quota, please check your plan and billing details."
        error = {"message": said, "type": "insufficient_quota", "code": "insufficient_quota"}
        body = json.dumps({"error": error}).encode()
        self.send_response(429)
        self.send_header("Retry-After", "7")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): ...


server = ThreadingHTTPServer(("127.0.0.1", upstream), Limited)
threading.Thread(target=server.serve_forever, daemon=True).start()
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Why?"}]}).encode()
asked = Request(
    f"http://127.0.0.1:{port}/v1/chat/completions", body, {"Content-Type": "application/json"})
while True:
    try:
        urlopen(asked, timeout=60)
        sys.exit("The behaviour changed: the proxy hid the 429.")
    except HTTPError as error:
        headers, name = error.headers, json.load(error)["error"]["type"]
        break
    except URLError:
        time.sleep(1)  # the proxy starts
seen = headers["Retry-After"], headers["llm_provider-retry-after"], name
print("Retry-After {}, llm_provider-retry-after {}, name {}".format(*seen))
if seen != (None, "7", "throttling_error"):
    sys.exit("The behaviour changed: the wait or the name is passed on.")
PYTHON
