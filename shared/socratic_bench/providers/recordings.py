"""Recorded responses, `replay/FILE`: which files they may be, and what identifies them.

A recording is a file below a folder: that of the configuration, or the one a runner was given.
Nothing else is opened, and whoever asks cannot tell a file elsewhere from one that is not there.
"""

from __future__ import annotations

import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.options import Options, read_options, refuse_address
from socratic_bench.providers.spec import ProviderSpec

LARGEST_RECORDING: Final = 32_000_000
"""Bytes of a recording: it is kept in memory."""


class ReplayOptions(Options):
    """The options of a recording."""

    model_id: str | None = None
    """Only lines with this `model_id`; None: all lines."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The `fingerprint` the file must have; None: any. Planning puts it here."""


def open_recording(model: TutorModel, base_folder: Path | None) -> BufferedReader:
    """The file `model` replays, below `base_folder`, open for reading.

    Raises InvalidInput without a base folder, for a file that is not there or not below it, and for
    one that is too large.
    """
    if base_folder is None:
        raise InvalidInput(
            f"model {model.id}: a recording is a file beside a configuration, and there is none "
            "here; use `socratic-bench run CONFIG`, or give the runner a folder by "
            "SOCRATIC_RUNNER_FOLDER"
        )
    try:
        folder = base_folder.resolve(strict=True)
        path = (folder / model.id.partition("/")[2]).resolve(strict=True)
        file = _opened(path) if path.is_relative_to(folder) else None
    except (OSError, RuntimeError, ValueError):  # a circle of links is a RuntimeError
        file = None
    if file is None:
        raise InvalidInput(
            f"model {model.id}: there is no such file below the folder of the configuration, or "
            "below the runner's own, SOCRATIC_RUNNER_FOLDER, that this user may read"
        )
    if os.fstat(file.fileno()).st_size > LARGEST_RECORDING:
        file.close()
        raise InvalidInput(
            f"model {model.id}: the recording is larger than {LARGEST_RECORDING // 1_000_000} MB; "
            "divide it"
        )
    return file


def _opened(path: Path) -> BufferedReader | None:
    """A file; None for what is none. Waits for nobody who would write into a pipe."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    return None


def fingerprint(model: TutorModel, base_folder: Path | None) -> str:
    """The SHA-256 of the recording, in hexadecimal: another file under the same name is seen.

    Reads the whole file, blocking. Raises InvalidInput where `open_recording` does.
    """
    with open_recording(model, base_folder) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(model: TutorModel, base_folder: Path | None) -> None:
    refuse_address(model)
    read_options(model, ReplayOptions)
    open_recording(model, base_folder).close()


REPLAY: Final = ProviderSpec(ReplayOptions, _check, fingerprint=fingerprint, free=True)
