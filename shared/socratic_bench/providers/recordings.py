"""Recorded responses, `replay/FILE`: their files and fingerprints.

A recording is a file below the configuration's folder, or below the runner's. The provider opens no
other file, and its error is the same for a file elsewhere and a missing one.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from codecs import BOM_UTF8
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.options import Options, read_options, refuse_address
from socratic_bench.providers.spec import ProviderSpec

LARGEST_RECORDING: Final = 32_000_000
"""The most bytes of a recording, which stays in memory."""


class ReplayOptions(Options):
    """The options of a recording."""

    model_id: str | None = None
    """The `model_id` of the lines to replay; None: all lines."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The `fingerprint` that the file must have; None: any. Planning sets it."""


def open_recording(model: TutorModel, base_folder: Path | None) -> BufferedReader:
    """Open the file that `model` replays, below `base_folder`, for reading.

    Raises InvalidInput without a base folder, for a missing file or one outside of it, and for one
    that is too large.
    """
    if base_folder is None:
        raise InvalidInput(
            f"model {model.id}: a recording needs a folder: use `socratic-bench run CONFIG` beside "
            "the recording, or give the runner a folder by SOCRATIC_RUNNER_FOLDER"
        )
    try:
        folder = base_folder.resolve(strict=True)
        path = (folder / model.id.partition("/")[2]).resolve(strict=True)
        file = _opened(path) if path.is_relative_to(folder) else None
    except (OSError, RuntimeError, ValueError):  # circular links raise a RuntimeError
        file = None
    if file is None:
        raise InvalidInput(
            f"model {model.id}: there is no such file below the folder of the configuration, or "
            "below the runner's, SOCRATIC_RUNNER_FOLDER, that this user may read"
        )
    if os.fstat(file.fileno()).st_size > LARGEST_RECORDING:
        file.close()
        raise InvalidInput(
            f"model {model.id}: the recording is larger than {LARGEST_RECORDING // 1_000_000} MB; "
            "divide it"
        )
    return file


def _opened(path: Path) -> BufferedReader | None:
    """Open a regular file; None for anything else. Does not wait for a pipe's writer."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    return None


def fingerprint(model: TutorModel, base_folder: Path | None) -> str:
    """Return the SHA-256 of the recording, in hexadecimal, which reveals a changed file.

    Reads the whole file, blocking. Raises InvalidInput as `open_recording` does.
    """
    with open_recording(model, base_folder) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recorded_scenarios(model: TutorModel, base_folder: Path | None) -> dict[str, int]:
    """Return the scenarios of the lines that `model` replays, each with its first line's number.

    The runner reports lines that are no JSON object or name no scenario. Reads the whole file,
    blocking. Raises InvalidInput as `open_recording` does.
    """
    options = read_options(model, ReplayOptions)
    found: dict[str, int] = {}
    with open_recording(model, base_folder) as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text.removeprefix(BOM_UTF8))
            except (ValueError, RecursionError):
                continue
            if not isinstance(line, dict):
                continue
            if options.model_id is not None and line.get("model_id") != options.model_id:
                continue
            if isinstance(scenario := line.get("scenario_id"), str):
                found.setdefault(scenario, number)
    return found


def _check(model: TutorModel, base_folder: Path | None) -> None:
    refuse_address(model)
    read_options(model, ReplayOptions)
    open_recording(model, base_folder).close()


REPLAY: Final = ProviderSpec(ReplayOptions, _check, fingerprint=fingerprint, free=True)
