"""What a package is built for: a processor and a version of Python."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RUNTIMES: Final = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that AWS runs and that this project supports."""


class Architecture(StrEnum):
    """A processor, by the name that AWS gives it."""

    ARM = "arm64"
    X86 = "x86_64"


@dataclass(frozen=True, slots=True)
class Target:
    """What a package is built for."""

    architecture: Architecture
    python: str
    """The version with its minor number alone, such as 3.12."""

    @classmethod
    def of_this_python(cls, architecture: Architecture) -> Target:
        """Return the target that this interpreter can compile for. Raises SystemExit."""
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        if python not in RUNTIMES:
            sys.exit(f"AWS has no runtime of Python {python}; build with one of {RUNTIMES}.")
        return cls(architecture, python)

    def platforms(self) -> tuple[str, ...]:
        """Return the platforms of wheels that run there, in pip's words."""
        machine = "aarch64" if self.architecture is Architecture.ARM else "x86_64"
        return (
            f"manylinux2014_{machine}",
            f"manylinux_2_17_{machine}",
            f"manylinux_2_28_{machine}",
        )
