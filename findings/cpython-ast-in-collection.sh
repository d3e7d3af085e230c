#!/usr/bin/env bash
# Guess: `ast.parse` of valid source succeeds, whatever else the process does meanwhile.
# Versions: CPython 3.11.7, its standard library alone.
# Seen: where the garbage collector runs within `ast.parse`, and a finalizer parses too, the outer
#   call raises SystemError. asyncio does that by itself: a lost task's error is logged by a
#   finalizer, and the traceback module of 3.11 parses each line of it.
# Output:
#   3.11.7: 20 of 20 calls raised SystemError: AST constructor recursion depth mismatch
# For users: retrieve the error of every task that was cancelled or killed. The traceback of an
#   unrelated one may end a parse in the same process.
set -euo pipefail
timeout 60 "${PYTHON:-python3.11}" - << 'PYTHON'
import ast
import gc
import platform
import sys

CALLS = 20


class Parsing:
    """Garbage in a circle, whose finalizer parses."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        ast.parse("a = [[[b]]]")


source = "\n".join(f"x{n} = f({n}, [y, (z, {{'k': {n}}})])" for n in range(3_000))
gc.set_threshold(1)
raised = []
for _ in range(CALLS):
    for _ in range(50):
        Parsing()
    try:
        ast.parse(source)
    except SystemError as error:
        raised.append(str(error).partition(" (")[0])
told = f"SystemError: {raised[0]}" if raised else "SystemError"
print(f"{platform.python_version()}: {len(raised)} of {CALLS} calls raised {told}")
sys.exit(not raised)
PYTHON
