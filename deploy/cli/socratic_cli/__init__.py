"""All services in one process over the in-process broker, and the `socratic-bench` command.

`from socratic_cli import run` gives the same benchmark to a notebook: `await run("mine.yaml")`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from socratic_cli.notebook import load, run

__all__ = ["load", "run"]


def __getattr__(name: str) -> Any:
    """Import a name for a notebook at its first use: the command starts faster."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from socratic_cli import notebook  # noqa: PLC0415 - see above

    value = globals()[name] = getattr(notebook, name)
    return value
