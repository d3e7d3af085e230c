"""Secrets in files: the environment variable `NAME_FILE` names the file with the secret NAME.

Docker and Kubernetes mount secrets as files. An environment is shown by `docker inspect` and passed
on to child processes; a file is not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from socratic_bench.errors import InvalidSettings

SUFFIX: Final = "_FILE"

LARGEST: Final = 64 * 1024
"""Bytes of a secret's file at most."""


def secret_in_file(name: str) -> str | None:
    """Return the text of the file that `name` + SUFFIX names, without white space at its end.

    Returns None where the environment does not name a file. Raises InvalidSettings where the file
    cannot be read or is empty, or where the environment has `name` too.
    """
    variable = name + SUFFIX
    path = os.environ.get(variable)
    if not path:
        return None
    if os.environ.get(name):
        raise InvalidSettings(f"{variable}: {name} is set too; set one of the two")
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
        text = content.decode().rstrip()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidSettings(f"{variable}: the file {path} cannot be read: {reason}") from None
    if not text or len(content) > LARGEST:
        problem = "is empty" if not text else f"has more than {LARGEST} bytes"
        raise InvalidSettings(f"{variable}: the file {path} {problem}")
    return text
