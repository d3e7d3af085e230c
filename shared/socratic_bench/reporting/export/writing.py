"""Writes a table as a file, a piece at a time: its memory does not grow with the table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import Table


@dataclass(slots=True)
class Written:
    """What of a table is written; another process can go on from it."""

    records: int = 0
    place: int = 0
    """The first place that is not written."""

    state: bytes = b""
    """The state of a paused file."""

    is_complete: bool = False


async def file_pieces(
    table: Table,
    output: str,
    written: Written | None = None,
    is_time_up: Callable[[], bool] = lambda: False,
) -> AsyncIterator[bytes]:
    """Yield the bytes of a table in one of FORMATS, from `written` on, which is kept up to date.

    A file of which the time is up is paused after the next read of the table. Raises StoreError.
    """
    written = written or Written()
    file = FORMATS[output].file(table.columns, written.state)
    if not written.place:
        yield file.begin()
    for place in range(written.place, table.places, table.step):
        records = await table.read(place)
        if piece := await asyncio.to_thread(file.add, records):
            yield piece
        written.records += len(records)
        written.place = place + table.step
        if written.place < table.places and is_time_up():
            piece, written.state = await asyncio.to_thread(file.pause)
            yield piece
            return
    yield await asyncio.to_thread(file.end)
    written.is_complete = True
