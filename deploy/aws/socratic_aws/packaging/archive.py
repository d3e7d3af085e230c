"""Zip files with the same bytes for the same files, whenever and wherever they are made."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""

_REGULAR_FILE: Final = 0o100644 << 16


def write_zip(folder: Path, archive: Path) -> int:
    """Write the files below `folder` to `archive`; returns their bytes when unzipped."""
    unzipped = 0
    with zipfile.ZipFile(archive, "w") as written:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _TIME)
            entry.external_attr = _REGULAR_FILE
            content = file.read_bytes()
            written.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
            unzipped += len(content)
    return unzipped
