#!/usr/bin/env bash
# Guess: a client with a timeout of 10 s ends its call soon, and two like clients wait alike.
# Versions: openai 3.54.0, anthropic 2.12.0; Python 3.11.
# Seen: the timeout does not hold for the waits between requests. openai waits up to two minutes for
#   each of its two retries, and raises at once if the server asks for more. anthropic has no limit.
# Output (the script records the waits and does not carry them out):
#   Retry-After: 100: openai waits [100.0, 100.0], anthropic waits [100.0, 100.0]
#   Retry-After: 300: openai waits [], anthropic waits [300.0, 300.0]
# For users: one call may last as long as a provider says, whatever its timeout is. Set
#   `max_retries=0` and wait in your own code, or put a deadline of your own around the call.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-openai==3.54.0 anthropic==2.12.0}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
timeout 60 "$folder/bin/python" - << 'PYTHON'
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import openai

MESSAGES = [{"role": "user", "content": "Why?"}]
waits = []
retry_after = "100"


class Limited(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(429)
        self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_): ...


server = ThreadingHTTPServer(("127.0.0.1", 0), Limited)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
settings = {"base_url": url, "api_key": "none", "timeout": 10}
time.sleep = waits.append  # both clients wait by it

chat = openai.OpenAI(**settings).chat.completions.create
message = anthropic.Anthropic(**settings).messages.create
CALLS = {"openai": (chat, openai.RateLimitError), "anthropic": (message, anthropic.RateLimitError)}


def all_waits():
    found = {}
    for name, (call, error) in CALLS.items():
        waits.clear()
        try:
            call(model="m", max_tokens=9, messages=MESSAGES)
        except error:
            found[name] = list(waits)
    said = ", ".join(f"{name} waits {seconds}" for name, seconds in found.items())
    print(f"Retry-After: {retry_after}: {said}")
    return list(found.values())


short, retry_after = all_waits(), "300"
if (short, all_waits()) != ([[100, 100]] * 2, [[], [300, 300]]):
    sys.exit("The behaviour changed: the clients wait in another way.")
PYTHON
