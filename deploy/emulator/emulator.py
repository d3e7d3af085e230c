#!/usr/bin/env python3
"""Serves what Socratic Bench uses of AWS on this machine: MiniStack's SQS, SNS, DynamoDB and S3.

An emulator, to try the benchmark over AWS without an account. It accepts any credentials, sends no
bill and has no limits of throughput; results that matter belong into a real table or database.

EMULATOR_HOST and EMULATOR_PORT say where it listens: on 127.0.0.1:4566. EMULATOR_FOLDER names a
folder that keeps the data: read at the start, written when SIGTERM or Ctrl-C ends it. Killed, it
loses what came since its start. Without a folder the data lies in memory alone.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Final

BUCKET: Final = "socratic-bench"
"""For messages and records that are too large for a queue and a table."""

REGION: Final = "us-east-1"
START_SECONDS: Final = 30.0


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    host = os.environ.get("EMULATOR_HOST", "127.0.0.1")
    port = _free_port(host, os.environ.get("EMULATOR_PORT", "4566"))
    os.environ |= {
        "BIND_HOST": host,
        "GATEWAY_PORT": str(port),
        "SERVICES": "sqs,sns,dynamodb,s3",
        "MINISTACK_REGION": REGION,
        "LOG_LEVEL": "ERROR",
        "IOT_MTLS_ENABLED": "0",
    }
    if folder := os.environ.get("EMULATOR_FOLDER"):
        kept = Path(folder).absolute()
        os.environ |= {
            "PERSIST_STATE": "1",
            "STATE_DIR": str(kept / "state"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(kept / "s3"),
        }
    threading.Thread(target=_announce, args=[port], daemon=True).start()
    # It reads its settings while it is imported.
    from ministack.app import main as serve  # noqa: PLC0415

    serve()


def _free_port(host: str, given: str) -> int:
    """Return the port. Raises SystemExit where nothing can listen on it."""
    if not given.isdecimal() or not 0 < int(given) < 65_536:
        sys.exit(f"EMULATOR_PORT: {given!r} is not a port")
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, int(given)))
        except OSError as error:
            sys.exit(f"EMULATOR_PORT: {host}:{given} cannot be listened on: {error.strerror}")
    return int(given)


def _announce(port: int) -> None:
    """Make the bucket once the emulator answers, and say so as the services do."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if _made(port):
            break
        time.sleep(0.05)
    else:
        return
    ready = {"service": "emulator", "level": "info", "event": "ready"}
    ready["address"] = f"http://127.0.0.1:{port}"
    ready["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sys.stderr.write(json.dumps(ready) + "\n")
    sys.stderr.flush()


def _made(port: int) -> bool:
    """Whether the bucket is there: made now, or kept from the last time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("PUT", f"/{BUCKET}")
        return connection.getresponse().status in {200, 409}
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main()
