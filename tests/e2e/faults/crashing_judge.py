"""The judge, but a certain text ends its process, as a crash in native code does."""

from __future__ import annotations

import os
import sys
from typing import Any

from socratic_bench.scoring.score import score
from socratic_judge import handlers
from socratic_judge.entrypoints.container import main

MARKER = "this text ends whoever scores it"
EXIT_CODE = 70


def _score_or_end(text: str, **options: Any) -> object:
    if text == MARKER:
        os._exit(EXIT_CODE)
    return score(text, **options)


if __name__ == "__main__":
    setattr(handlers, "score", _score_or_end)  # noqa: B010 - the handlers export no score
    sys.exit(main())
