"""Optional dependencies: one sentence instead of a failed import, with what to install."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from socratic_bench.errors import MissingExtra


def require_package(package: str, *, needed_by: str, extra: str) -> None:
    """Raise MissingExtra if `package` is not installed; the message says how to install it.

    `needed_by` begins the message. `extra` is what pip installs: `socratic-ai-bench[rabbitmq]`.
    """
    if find_spec(package) is None:
        raise MissingExtra(
            f"{needed_by} needs {package}, which is not installed; run: pip install '{extra}'"
        )


def exit_without(package: str, *, needed_by: str, extra: str) -> None:
    """End this process with exit code 2 and the message of MissingExtra if `package` is missing.

    For the first line of a program whose own imports need the package.
    """
    try:
        require_package(package, needed_by=needed_by, extra=extra)
    except MissingExtra as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)
