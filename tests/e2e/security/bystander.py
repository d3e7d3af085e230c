"""Somebody who just wants answers: `python -m tests.e2e.security.bystander ADDRESS PATH...`

Asks for one path after the other, each in a connection of its own, and prints a line of JSON for
each answer: path, status. A server that answers nobody fails it. It ends once its standard input
does.

It has an address of its own. At its limit the server ends connections of the address with the most,
and one of a client that got no processor before it sent its request looks like any half-open one.
"""

from __future__ import annotations

import itertools
import json
import select
import sys
from http.client import HTTPConnection

OWN_ADDRESS = "127.0.0.2"


def main(address: str, *paths: str) -> None:
    host = address.removeprefix("http://")
    for path in itertools.cycle(paths):
        if select.select([sys.stdin], [], [], 0.02)[0]:
            return
        connection = HTTPConnection(host, timeout=60, source_address=(OWN_ADDRESS, 0))
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        print(json.dumps([path, answer.status]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
