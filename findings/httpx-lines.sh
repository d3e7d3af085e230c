#!/usr/bin/env bash
# Guess: `iter_lines` of httpx gives the lines of JSON Lines as the server wrote them, one for each
#   line feed.
# Versions: httpx 0.28.1; Python 3.11.
# Seen: httpx splits like `str.splitlines`: also at U+2028, U+0085 and others, which JSON allows
#   within a text. Two records become four lines that are no JSON.
# Output:
#   the server sent 2 records, httpx gives 4 lines:
#   '{"text": "What do you'
#   'notice?"}'
#   '{"text": "And why'
#   '?"}'
# For users: such characters come from models and from copied web pages, so a reader of a stream
#   fails at one answer in thousands. Split the bytes at b"\n" yourself. `iter_lines` of a file that
#   was opened in text mode and `bytes.splitlines` do not split there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-httpx==0.28.1}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
timeout 60 "$folder/bin/python" - << 'PYTHON'
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

TEXTS = ["What do you\u2028notice?", "And why\u0085?"]
BODY = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in TEXTS).encode()
assert [json.loads(line)["text"] for line in BODY.splitlines()] == TEXTS


class Records(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson; charset=utf-8")
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_): ...


server = ThreadingHTTPServer(("127.0.0.1", 0), Records)
threading.Thread(target=server.serve_forever, daemon=True).start()
with httpx.stream("GET", f"http://127.0.0.1:{server.server_port}") as response:
    lines = list(response.iter_lines())

print(f"the server sent {len(TEXTS)} records, httpx gives {len(lines)} lines:")
print(*map(repr, lines), sep="\n")
if len(lines) != 4:
    sys.exit("The behaviour changed: httpx splits at line feeds alone.")
PYTHON
