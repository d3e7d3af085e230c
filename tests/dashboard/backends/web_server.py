"""A web server that knows files alone, and the dashboard's files for it."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.waiting import PATIENCE


class _Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing of a request that went well."""


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """The address of a server of the files in `folder`."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(PATIENCE)


def write_site(folder: Path, api: str) -> None:
    """Write the pages into a folder, with the address of their API."""
    words = [sys.executable, "-m", "socratic_api.static_site", str(folder), "--api", api]
    subprocess.run(words, check=True, timeout=PATIENCE)
