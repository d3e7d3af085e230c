#!/usr/bin/env bash
# Guess: an address of PostgreSQL that asyncpg takes works through SQLAlchemy on asyncpg, too, once
#   its scheme is `postgresql+asyncpg`.
# Versions: SQLAlchemy 2.1.9, asyncpg 0.32.0, greenlet as its extra brings it; Python 3.11.
# Seen: SQLAlchemy hands each option of the address to `asyncpg.connect` as a keyword argument.
#   asyncpg reads `sslmode` in an address alone; its argument is called `ssl`. So the usual end of a
#   hosted database's address is a TypeError before anything is sent.
# Output:
#   asyncpg: ConnectionRefusedError
#   SQLAlchemy: TypeError: connect() got an unexpected keyword argument 'sslmode'
#   SQLAlchemy with ssl=require: ConnectionRefusedError
# For users: write `?ssl=require` for `?sslmode=require` in an address for SQLAlchemy and asyncpg.
#   The TypeError is about the address, not about versions that do not fit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-sqlalchemy[asyncio]==2.1.9 asyncpg==0.32.0}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
timeout 60 "$folder/bin/python" - << 'PYTHON'
import asyncio
import socket
import sys

import asyncpg
from sqlalchemy.ext.asyncio import create_async_engine


async def by_asyncpg(address):
    await asyncpg.connect(f"postgresql://{address}")


async def by_sqlalchemy(address):
    async with create_async_engine(f"postgresql+asyncpg://{address}").connect():
        pass


def error_of(connecting):
    try:
        asyncio.run(connecting)
    except Exception as error:
        return error


with socket.socket() as unused:
    unused.bind(("127.0.0.1", 0))  # no server listens at this port
    address = "user:password@127.0.0.1:{}/db?{}=require"
    port = unused.getsockname()[1]
    direct = error_of(by_asyncpg(address.format(port, "sslmode")))
    other = error_of(by_sqlalchemy(address.format(port, "sslmode")))
    remedy = error_of(by_sqlalchemy(address.format(port, "ssl")))

print(f"asyncpg: {type(direct).__name__}")
print(f"SQLAlchemy: {type(other).__name__}: {other}")
print(f"SQLAlchemy with ssl=require: {type(remedy).__name__}")
if not (isinstance(direct, OSError) and isinstance(other, TypeError)
        and isinstance(remedy, OSError) and "sslmode" in str(other)):
    sys.exit("The behaviour changed: both take the option, or refuse it.")
PYTHON
