"""Writes a table as a file, a piece at a time: its memory does not grow with the table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import Table


@dataclass(slots=True)
class Written:
    """What of a table is written."""

    records: int = 0


async def file_pieces(
    table: Table, output: str, written: Written | None = None
) -> AsyncIterator[bytes]:
    """Yield the bytes of a table in one of FORMATS; `written` is kept up to date.

    Raises StoreError.
    """
    written = written or Written()
    file = FORMATS[output].file(table.columns, b"")
    yield file.begin()
    for place in range(0, table.places, table.step):
        records = await table.read(place)
        if piece := await asyncio.to_thread(file.add, records):
            yield piece
        written.records += len(records)
    yield await asyncio.to_thread(file.end)
