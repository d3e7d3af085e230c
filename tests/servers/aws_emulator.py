"""AWS as MiniStack imitates it: one process for SQS, SNS, DynamoDB, S3, Lambda and CloudFormation.

It checks no permissions here. Tests share the process, so each uses names of its own.
"""

from __future__ import annotations

import os
import tempfile
import urllib.error
import urllib.request
from contextlib import ExitStack

from tests.servers.discovery import NotHere, Server, Source, in_environment
from tests.servers.http_process import ROOT, free_port, start

REGION = "us-east-1"
ACCOUNT = "000000000000"
PATIENCE = 5.0
"""Seconds within which an emulator that can be used has answered."""


def credentials() -> dict[str, str]:
    """The environment of a client of the emulator, without its address."""
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
    }


def environment() -> dict[str, str]:
    """The environment of a process that takes the emulator for AWS. Blocks."""
    return {**os.environ, **credentials(), "AWS_ENDPOINT_URL": SERVER.address()}


def check(address: str) -> None:
    """Whether an emulator answers at `address`. Blocks; raises NotHere."""
    try:
        with urllib.request.urlopen(f"{address}/_localstack/health", timeout=PATIENCE):
            pass
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise NotHere(str(error) or "no answer") from error


def _private_process(started: ExitStack) -> str:
    program = ROOT / ".venv-servers" / "bin" / "ministack"
    if not program.exists():
        raise NotHere(f"{program} is not installed (see tests/servers/requirements.txt)")
    port = free_port()
    # It leaves the packages of its functions behind.
    folder = started.enter_context(tempfile.TemporaryDirectory(prefix="socratic-aws-"))
    return start(
        started,
        [program],
        port,
        {
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(port),
            "LOG_LEVEL": "ERROR",
            "MINISTACK_REGION": REGION,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "TMPDIR": folder,
        },
    )


SERVER = Server(
    "AWS emulator",
    [in_environment("SOCRATIC_TEST_AWS_URL", check), Source("a private process", _private_process)],
    check=check,
)
