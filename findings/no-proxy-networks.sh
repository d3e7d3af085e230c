#!/usr/bin/env bash
# Guess: one NO_PROXY means the same to all Python clients that read it, a network such as
#   `127.0.0.0/8` included. Container platforms write networks there.
# Versions: requests 2.34.2, httpx 0.28.1, httpx2 2.16.2, aiohttp 3.14.5; Python 3.11.
# Seen: requests and httpx2 know networks. httpx, aiohttp and the standard library compare names
#   alone, and send the request to the proxy.
# Output:
#   requests: from the server
#   httpx2: from the server
#   httpx: from the proxy
#   aiohttp: from the proxy
#   urllib: from the proxy
# For users: where a model of the own network is "not reachable" or answers with a proxy's page,
#   write its address into NO_PROXY, not its network. A switch from httpx to httpx2 changes the way.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-requests==2.34.2 httpx==0.28.1 httpx2==2.16.2 aiohttp==3.14.5}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
unset all_proxy ALL_PROXY https_proxy HTTPS_PROXY http_proxy HTTP_PROXY no_proxy
timeout 60 "$folder/bin/python" - << 'PYTHON'
import asyncio
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import aiohttp
import httpx
import httpx2
import requests


def serve(answer):
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_): ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


async def by_aiohttp(url):
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as response:
        return await response.text()


server = serve("from the server")
os.environ |= {"HTTP_PROXY": serve("from the proxy"), "NO_PROXY": "127.0.0.0/8"}
os.environ["http_proxy"] = os.environ["HTTP_PROXY"]
seen = {
    "requests": requests.get(server).text,
    "httpx2": httpx2.get(server).text,
    "httpx": httpx.get(server).text,
    "aiohttp": asyncio.run(by_aiohttp(server)),
    "urllib": urlopen(server).read().decode(),
}
for name, answer in seen.items():
    print(f"{name}: {answer}")
if list(seen.values()) != ["from the server"] * 2 + ["from the proxy"] * 3:
    sys.exit("The behaviour changed: other clients know networks in NO_PROXY.")
PYTHON
