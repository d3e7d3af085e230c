#!/usr/bin/env bash
# Guess: the newer retry modes `standard` and `adaptive` retry an HTTP 429, as `legacy` does.
# Versions: botocore 1.43.117; Python 3.11.
# Seen: a 429 without an error type of AWS, as a proxy or a gateway sends it, is retried by `legacy`
#   alone. `standard` and `adaptive` know throttling by the type, and give up after one request.
# Output:
#   429 without a type: legacy 3 standard 1 adaptive 1 requests
#   429 with ThrottlingException: legacy 3 standard 3 adaptive 3 requests
# For users: behind a gateway, retry a 429 in your own code, or have it send
#   `x-amzn-ErrorType: ThrottlingException`. A test with a plain 429 proves nothing about AWS.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-botocore==1.43.117}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
unset AWS_MAX_ATTEMPTS AWS_RETRY_MODE AWS_PROFILE
export AWS_CONFIG_FILE="$folder/none" AWS_SHARED_CREDENTIALS_FILE="$folder/none"
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
timeout 120 "$folder/bin/python" - << 'PYTHON'
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

MODES = ("legacy", "standard", "adaptive")
ASKED = [{"role": "user", "content": [{"text": "Why?"}]}]
requests, error_types = [], []


class Throttling(BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(429)
        for error_type in error_types:
            self.send_header("x-amzn-ErrorType", error_type)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_): ...


server = ThreadingHTTPServer(("127.0.0.1", 0), Throttling)
threading.Thread(target=server.serve_forever, daemon=True).start()


def sent(mode):
    requests.clear()
    client = Session().create_client(
        "bedrock-runtime", region_name="eu-west-1", aws_access_key_id="none",
        aws_secret_access_key="none", endpoint_url=f"http://127.0.0.1:{server.server_port}",
        config=Config(retries={"mode": mode, "total_max_attempts": 3}))
    try:
        client.converse(modelId="m", messages=ASKED)
    except ClientError:
        return len(requests)


plain = [sent(mode) for mode in MODES]
error_types.append("ThrottlingException")
typed = [sent(mode) for mode in MODES]
for name, counts in (("without a type", plain), ("with ThrottlingException", typed)):
    print(f"429 {name}:", *map("{} {}".format, MODES, counts), "requests")
if (plain, typed) != ([3, 1, 1], [3, 3, 3]):
    sys.exit("The behaviour changed: other modes retry a 429 without a type.")
PYTHON
