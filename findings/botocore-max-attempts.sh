#!/usr/bin/env bash
# Guess: `max_attempts` of a client and AWS_MAX_ATTEMPTS mean the same, and 1 switches retries off.
# Versions: botocore 1.43.117; Python 3.11.
# Seen: the setting of the client counts retries, and the variable counts requests. A client with
#   `retries={"max_attempts": 1}` sends two requests.
# Output:
#   Config(retries={'max_attempts': 1}) sends 2 requests
#   Config(retries={'total_max_attempts': 1}) sends 1 request
#   AWS_MAX_ATTEMPTS=1 sends 1 request
# For users: write `total_max_attempts` where one call must be one request, such as a call of a
#   model that is paid for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-botocore==1.43.117}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
unset AWS_MAX_ATTEMPTS AWS_RETRY_MODE AWS_PROFILE
export AWS_CONFIG_FILE="$folder/none" AWS_SHARED_CREDENTIALS_FILE="$folder/none"
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
timeout 60 "$folder/bin/python" - << 'PYTHON'
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

requests = []


class Failing(BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_): ...


server = ThreadingHTTPServer(("127.0.0.1", 0), Failing)
threading.Thread(target=server.serve_forever, daemon=True).start()


def sent(name, config):
    requests.clear()
    client = Session().create_client(
        "sqs", region_name="eu-west-1", aws_access_key_id="none", aws_secret_access_key="none",
        endpoint_url=f"http://127.0.0.1:{server.server_port}", config=config,
    )
    try:
        client.list_queues()
    except ClientError:
        print(name, "sends", len(requests), "request" + "s" * (len(requests) > 1))
    return len(requests)


counts = [sent(f"Config(retries={each})", Config(retries=each))
          for each in ({"max_attempts": 1}, {"total_max_attempts": 1})]
os.environ["AWS_MAX_ATTEMPTS"] = "1"
counts.append(sent("AWS_MAX_ATTEMPTS=1", None))
if counts != [2, 1, 1]:
    sys.exit("The behaviour changed: both settings count the same thing.")
PYTHON
