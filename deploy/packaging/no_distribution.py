"""What pip calls at the root of the repository, where there is nothing to build: one sentence."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

_SENTENCE = (
    "The root of the repository is no distribution. Run `make install`, or: "
    "pip install ./shared ./services/api ./services/curator ./services/judge ./services/runner "
    "./deploy/cli"
)


def build_wheel(*_: Any, **__: Any) -> NoReturn:
    """End with the sentence. pip shows what a build backend says when it ends."""
    sys.exit(_SENTENCE)


build_sdist = build_editable = build_wheel
get_requires_for_build_wheel = get_requires_for_build_editable = build_wheel
get_requires_for_build_sdist = build_wheel
