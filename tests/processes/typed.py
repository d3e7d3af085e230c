"""The command as a script types it: `python -IS typed.py FD WORD…` forks it from a warm process.

FD is a socket of `tests.processes.server`. This program imports nothing of the project, so that it
starts in milliseconds; it has the command's folder, environment, streams and exit code.
"""

import json
import os
import socket
import sys

STANDARD = (0, 1, 2)
NUMBER_BYTES = 4


def main(fd: str, *words: str) -> int:
    request = {
        "words": ["socratic-bench", *words],
        "cwd": os.getcwd(),  # noqa: PTH109 - without pathlib it starts sooner
        "environment": dict(os.environ),
    }
    report, theirs = os.pipe()
    control = socket.socket(fileno=int(fd))
    socket.send_fds(control, [json.dumps(request).encode()], [*STANDARD, theirs])
    os.close(theirs)
    os.read(report, NUMBER_BYTES)  # the process's id
    code = os.read(report, NUMBER_BYTES)
    assert code, "the server of the forked processes has died"
    return int.from_bytes(code, sys.byteorder, signed=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
