"""A connection to a server that can be cut, or go silent, when a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Passes bytes on between clients and a server, until a test stops it."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.port = 0
        self.change: Callable[[bytes], bytes] = bytes
        """What becomes of the bytes on their way."""

    async def start(self) -> None:
        """Let clients connect; after `stop`, at the same port again."""
        self._flowing.set()
        self._listener = await asyncio.start_server(self._connect, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Cut all connections and refuse new ones, as a server does that goes down."""
        if self._listener is not None:
            self._listener.close()
        self.cut()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def cut(self) -> None:
        """Cut the connections there are."""
        for writer in self._writers:
            writer.transport.abort()

    def fall_silent(self) -> None:
        """Pass nothing on any more and close nothing, like a broken network."""
        self._flowing.clear()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        await self._flowing.wait()
        try:
            to_server = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(to_server[1])
        for source, target in ((reader, to_server[1]), (to_server[0], writer)):
            task = asyncio.create_task(self._pass_on(source, target))
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self._flowing.wait()
                target.write(self.change(data))
                await target.drain()
        target.close()


@asynccontextmanager
async def proxy(host: str, port: int) -> AsyncIterator[Proxy]:
    """A proxy to a server, stopped afterwards."""
    between = Proxy(host, port)
    await between.start()
    try:
        yield between
    finally:
        await between.stop()
