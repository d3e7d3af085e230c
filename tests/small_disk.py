"""A disk of a test's own that can be filled, given room again, and made read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class SmallDisk:
    """A mounted disk of a few megabytes."""

    folder: Path

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    def fill(self) -> None:
        """Take all the room there is."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))

    def make_room(self) -> None:
        """Return the taken space."""
        self._filler.unlink()

    def make_read_only(self) -> None:
        """Make it read-only; no process may have a file open for writing."""
        subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """A disk mounted at a folder. Where we may not mount one the test is skipped."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk can be mounted here: {error}")
    try:
        yield SmallDisk(folder)
    finally:
        # Whoever still has a file open there keeps it, and nobody else finds it any more.
        subprocess.run(["umount", "--lazy", folder], check=True)
