"""`python -m socratic_bench.hosting.http.probe [URL]`: check that a local service is ready.

For health checks in containers without curl. Without an address it asks /readyz on the port in
SOCRATIC_HEALTH_PORT. Exit codes: 0 for an answer of 200, 1 for another one, 2 for wrong use. It
uses sockets alone: importing an HTTP client would take longer than the request.
"""

from __future__ import annotations

import os
import socket
import sys

_SECONDS = 4.0
_USE = "usage: python -m socratic_bench.hosting.http.probe [http://HOST:PORT/PATH]"


def main(arguments: list[str]) -> int:
    """Ask the service, and print the problem, if any."""
    port = os.environ.get("SOCRATIC_HEALTH_PORT", "")
    if len(arguments) > 1 or not (arguments or port):
        return _say(f"give an address, or set SOCRATIC_HEALTH_PORT; {_USE}", 2)
    url = arguments[0] if arguments else f"http://127.0.0.1:{port}/readyz"
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    host, _, port = authority.rpartition(":")
    if scheme != "http" or not host or not port.isdecimal():
        return _say(f"{url} is not an http:// address with a port; {_USE}", 2)
    try:
        answer = _ask(host.strip("[]"), int(port), f"/{path}")
    except OSError as error:
        return _say(f"{url}: {error}", 1)
    head, _, body = answer.partition("\r\n\r\n")
    if head.split(" ")[1:2] == ["200"]:
        return 0
    return _say(f"{url}: {head.partition(chr(13))[0]} {body}", 1)


def _ask(host: str, port: int, path: str) -> str:
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, port), timeout=_SECONDS) as connection:
        connection.sendall(request.encode())
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    return answer.decode(errors="replace")


def _say(problem: str, code: int) -> int:
    sys.stderr.write(f"{problem}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
