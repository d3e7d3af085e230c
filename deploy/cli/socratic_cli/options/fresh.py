"""The `--fresh` option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def fresh_option(command: F) -> F:
    """Add `--fresh` to a command."""
    return click.option("--fresh", is_flag=True, help="Reuse no answers of other experiments.")(
        command
    )
