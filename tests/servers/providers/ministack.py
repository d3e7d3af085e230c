"""Amazon Bedrock as MiniStack imitates it, answered by a real language model.

MiniStack checks signatures and permissions as AWS does, and forwards Converse to the model server.
If the model server refuses a request, MiniStack answers it with a text that begins with MADE_UP.
The user ROOT may do everything, whatever the signature.
"""

from __future__ import annotations

from contextlib import ExitStack

from tests.servers.discovery import NotHere, Server, Source
from tests.servers.http_process import ROOT as PROJECT
from tests.servers.http_process import free_port, start
from tests.servers.providers import llama_http
from tests.waiting import PATIENCE

MADE_UP = "[ministack mock"
REGION = "us-east-1"
ACCOUNT = "000000000000"
ROOT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""The environment of somebody who may do everything."""


def _start(started: ExitStack) -> str:
    program = PROJECT / ".venv-servers" / "bin" / "ministack"
    if not program.exists():
        raise NotHere(f"{program} is not installed (see tests/servers/requirements.txt)")
    port = free_port()
    environment = {
        "AUTH": "true",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": "bedrock,bedrock-runtime,iam,sts",
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_BEDROCK_PROXY_URL": llama_http.SERVER.address(),
        # A late model's answer would be replaced by a made-up one after 30 s.
        "MINISTACK_BEDROCK_PROXY_TIMEOUT_SECONDS": str(PATIENCE),
    }
    return start(started, [program], port, environment)


SERVER = Server("MiniStack", [Source("a private process", _start)])
