"""Exports as files that are fetched by a link, written over as many requests as it takes.

A function ends with its answer, and its answer has to be small. So a request writes for some
seconds, and leaves a checkpoint; the next one goes on from it, in whatever process. One request
writes at a time: the checkpoint says until when. A request that finds another one at work waits
for its file.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from socratic_bench.ports.clock import Clock
from socratic_bench.ports.files import Files, SavedAs, UploadGone, Versioned
from socratic_bench.reporting.export.checkpoint import Checkpoint, decoded, encoded
from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import Table
from socratic_bench.reporting.export.writing import Written, file_pieces
from socratic_bench.reporting.transcripts.chosen_runs import ChosenRuns
from socratic_bench.version import __version__

EXPORTS: Final = "exports/"
"""What the keys of exports begin with; a lifecycle rule of the bucket removes them after a day."""

PART_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a part: an export is in memory a part at a time."""

WRITE_SECONDS: Final = 15.0
"""Seconds that a request writes, or waits for another one: an HTTP API answers within 30."""

SAME_SECONDS: Final = 12 * 3600
"""Seconds for which a file is given again while the store's revision stays: less than the day after
which the bucket removes it."""

RUNNING_SECONDS: Final = 60
"""The same for an experiment that is not complete: the revision stays until answers are scored."""

LINK_SECONDS: Final = 15 * 60
"""Seconds within which a download has to begin."""

WAIT_SECONDS: Final = 0.5
"""Seconds between two looks for the file of another request."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A table of runs of an experiment, by a profile or by its own one, in one of FORMATS."""

    chosen: ChosenRuns
    what: str
    profile: str | None
    output: str
    saved_as: str
    """The name under which a browser saves the file."""

    @property
    def folder(self) -> str:
        """What the keys of this export begin with, in whatever state the experiment is."""
        scenarios = [scenario.id for scenario in self.chosen.scenarios]
        filters = ([*self.chosen.models], scenarios)
        same = json.dumps([self.what, self.profile, self.saved_as, __version__, *filters])
        name = sha256(same.encode()).hexdigest()[:16]
        return f"{EXPORTS}{self.chosen.experiment.experiment_id}/{name}/"


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """How far an export is."""

    link: str | None
    """The address of the file; None for one that is not complete."""

    places: int
    """The places of the table that are written."""

    of: int


@dataclass(frozen=True, slots=True)
class _Claim:
    """A checkpoint that this request holds, with the bytes after the last part."""

    checkpoint: Checkpoint
    rest: bytes
    etag: str


class ExportFiles:
    """Exports of one bucket."""

    def __init__(
        self,
        files: Files,
        clock: Clock,
        *,
        seconds: float = WRITE_SECONDS,
        part_bytes: int = PART_BYTES,
    ) -> None:
        """A request writes for `seconds`, and once more as long as the table's next rows take."""
        self._files = files
        self._clock = clock
        self._seconds = seconds
        self._part_bytes = part_bytes

    async def write(self, request: ExportRequest, table: Table, revision: str) -> ExportProgress:
        """Write the file of an export, or go on with it; `revision` is that of the store now.

        A complete file of this revision is taken again. Raises StoreError.
        """
        ends = time.monotonic() + self._seconds
        waited_for = None
        while True:
            stored = await self._files.read(_name(request))
            known = None if stored is None else decoded(stored.content)[0]
            now = self._clock.now()
            if known is not None and known.is_complete:
                if known.key == waited_for or _is_current(known, request, revision, now):
                    return await self._complete(known, table)
            elif known is not None and known.held_until > now:
                waited_for = known.key
                if time.monotonic() >= ends:
                    return ExportProgress(None, known.place, table.places)
                await asyncio.sleep(WAIT_SECONDS)
                continue
            claim = await self._claim(request, stored, revision)
            if claim is not None:
                return await self._go_on(request, table, claim, ends)

    async def _claim(
        self, request: ExportRequest, stored: Versioned | None, revision: str
    ) -> _Claim | None:
        """Hold the checkpoint; None if another request was faster."""
        now = self._clock.now()
        checkpoint, rest = Checkpoint.begin(request.folder, revision, now), b""
        if stored is not None:
            known, known_rest = decoded(stored.content)
            if known.may_continue(now):
                checkpoint, rest = known, known_rest
        checkpoint = checkpoint.held(now)
        before = None if stored is None else stored.etag
        etag = await self._files.replace(_name(request), encoded(checkpoint, rest), before)
        return None if etag is None else _Claim(checkpoint, rest, etag)

    async def _go_on(
        self, request: ExportRequest, table: Table, claim: _Claim, ends: float
    ) -> ExportProgress:
        before = claim.checkpoint
        file = _PartedFile(self._files, request, claim, self._part_bytes)
        written = Written(place=before.place, state=before.state.encode())
        try:
            pieces = file_pieces(table, request.output, written, lambda: time.monotonic() >= ends)
            async for piece in pieces:
                await file.add(piece)
            if written.is_complete:
                await file.finish()
        except UploadGone:
            await self._leave(request, claim, before.abandoned(self._clock.now()), b"")
            raise
        now = self._clock.now()
        after = before.after(written, file.upload, tuple(file.parts), now)
        await self._leave(request, claim, after, bytes(file.rest))
        if written.is_complete:
            return await self._complete(after, table)
        return ExportProgress(None, written.place, table.places)

    async def _leave(
        self, request: ExportRequest, claim: _Claim, checkpoint: Checkpoint, rest: bytes
    ) -> None:
        """Let other requests go on; one that took this one for dead goes on from where it was."""
        await self._files.replace(_name(request), encoded(checkpoint, rest), claim.etag)

    async def _complete(self, checkpoint: Checkpoint, table: Table) -> ExportProgress:
        link = await self._files.link(checkpoint.key, LINK_SECONDS)
        return ExportProgress(link, table.places, table.places)


class _PartedFile:
    """The file of a claim: large pieces of it are uploaded, a small file is written at once."""

    def __init__(
        self, files: Files, request: ExportRequest, claim: _Claim, part_bytes: int
    ) -> None:
        self._files = files
        self._key = claim.checkpoint.key
        self._saved_as = SavedAs(request.saved_as, FORMATS[request.output].media_type)
        self._part_bytes = part_bytes
        self.upload = claim.checkpoint.upload
        self.parts = [*claim.checkpoint.parts]
        self.rest = bytearray(claim.rest)

    async def add(self, piece: bytes) -> None:
        self.rest += piece
        while len(self.rest) >= self._part_bytes:
            await self._add_part(self._part_bytes)

    async def finish(self) -> None:
        if self.upload is None:
            await self._files.write(self._key, bytes(self.rest), self._saved_as)
        else:
            if self.rest:
                await self._add_part(len(self.rest))
            await self._files.finish_upload(self._key, self.upload, self.parts)
        self.rest.clear()

    async def _add_part(self, size: int) -> None:
        if self.upload is None:
            self.upload = await self._files.begin_upload(self._key, self._saved_as)
        content, number = bytes(self.rest[:size]), len(self.parts) + 1
        self.parts.append(await self._files.add_part(self._key, self.upload, number, content))
        del self.rest[:size]


def _is_current(known: Checkpoint, request: ExportRequest, revision: str, now: datetime) -> bool:
    """Whether a complete file has what the store has."""
    is_done = request.chosen.experiment.completed_at is not None
    lasts = SAME_SECONDS if is_done else RUNNING_SECONDS
    return known.revision == revision and known.age(now) < lasts


def _name(request: ExportRequest) -> str:
    return f"{request.folder}checkpoint"
