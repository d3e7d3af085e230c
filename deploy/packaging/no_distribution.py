"""The build backend of the repository's root, which pip calls: it prints one sentence."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

_SENTENCE = (
    "The root of the repository is not a distribution. Run `make install`, or: "
    "pip install ./shared ./services/api ./services/curator ./services/judge ./services/runner "
    "./deploy/cli"
)


def build_wheel(*_: Any, **__: Any) -> NoReturn:
    """End with the sentence. pip shows a build backend's last output."""
    sys.exit(_SENTENCE)


build_sdist = build_editable = build_wheel
get_requires_for_build_wheel = get_requires_for_build_editable = build_wheel
get_requires_for_build_sdist = build_wheel
