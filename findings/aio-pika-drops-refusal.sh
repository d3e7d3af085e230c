#!/usr/bin/env bash
# Guess: a failed `aio_pika.connect` raises an error that holds the reason which the server sent.
# Versions: aio-pika 10.2.1, aiormq 7.2.4, pamqp 4.0.1; Python 3.11.
# Seen: the server refuses the virtual host with `connection.close`, code 530 and a reason. The
#   client raises InvalidFrameError with the address of a Python object in place of the reason.
#   RabbitMQ 3.10.8 gives the same result. A wrong password keeps its reason, unlike this.
# Output:
#   the server sent: 530 NOT_ALLOWED - vhost lessons not found
#   the client raised InvalidFrameError: Expected one of ['Connection.OpenOk'], got
#   <Connection.Close object at 0x…>
# For users: this message means "the server refused the virtual host": its name, the rights of the
#   user or a limit of connections. The log of the server has the reason.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-aio-pika==10.2.1 aiormq==7.2.4 pamqp==4.0.1}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
timeout 60 "$folder/bin/python" - << 'PYTHON'
import asyncio
import sys

import aio_pika
from pamqp import commands, frame

REASON = "NOT_ALLOWED - vhost lessons not found"


async def refuse(reader, writer):
    """Make the handshake of AMQP up to the virtual host, and refuse that."""

    async def receive():
        head = await reader.readexactly(7)
        size = int.from_bytes(head[3:7], "big")
        return frame.unmarshal(head + await reader.readexactly(size + 1))[2]

    def send(command):
        writer.write(frame.marshal(command, 0))

    await reader.readexactly(8)
    send(commands.Connection.Start())
    await receive()
    send(commands.Connection.Tune(channel_max=100, frame_max=131072, heartbeat=60))
    await receive()
    await receive()
    send(commands.Connection.Close(530, REASON, class_id=10, method_id=40))
    await writer.drain()
    await reader.read()
    writer.close()


async def main():
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        print("the server sent: 530", REASON)
        try:
            await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{port}/lessons")
        except Exception as error:
            print(f"the client raised {type(error).__name__}: {error}")
            if REASON not in f"{error!r} {error.__cause__!r}" and "OpenOk" in str(error):
                return
    sys.exit("The behaviour changed: the error holds the reason of the server.")


asyncio.run(main())
PYTHON
