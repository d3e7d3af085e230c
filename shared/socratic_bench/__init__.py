"""How Socratic is a tutor? `score(text)` answers for one response.

>>> from socratic_bench import score
>>> f"{score('What might you consider?').exploratory:.2f}"
'1.00'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from socratic_bench.scoring.exchange import Status
    from socratic_bench.scoring.legacy import is_legacy, on_unit_scale
    from socratic_bench.scoring.score import Score, score, score_all
    from socratic_bench.version import __version__ as __version__

__all__ = ["Score", "Status", "is_legacy", "on_unit_scale", "score", "score_all"]

_PLACES = {
    "Score": "socratic_bench.scoring.score",
    "Status": "socratic_bench.scoring.exchange",
    "__version__": "socratic_bench.version",
    "is_legacy": "socratic_bench.scoring.legacy",
    "on_unit_scale": "socratic_bench.scoring.legacy",
    "score": "socratic_bench.scoring.score",
    "score_all": "socratic_bench.scoring.score",
}


def __getattr__(name: str) -> Any:
    """Import what the caller asks for, and nothing else: a command starts faster."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
