"""The options of commands that show a part of the results: `--model`, `--dimension` and a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeVar

import click

from socratic_bench.errors import InvalidInput
from socratic_bench.reporting.filters import written_time

F = TypeVar("F", bound=Callable[..., Any])


def models_option(command: F) -> F:
    """Add `--model ID` to a command, once for each; none: all models."""
    return click.option(
        "--model",
        "models",
        metavar="ID",
        multiple=True,
        help="A model to show, once for each. Without it: all.",
    )(command)


def dimension_option(command: F) -> F:
    """Add `--dimension NAME` to a command; None: all dimensions."""
    return click.option(
        "--dimension", metavar="NAME", help="One dimension: its scenarios alone. Without it: all."
    )(command)


def time_options(command: F) -> F:
    """Add `--since TIME` and `--until TIME` to a command; None: no limit."""
    until = click.option(
        "--until",
        metavar="TIME",
        callback=partial(_time, "until"),
        help="Experiments created before this time, and of a date before its end.",
    )
    since = click.option(
        "--since",
        metavar="TIME",
        callback=partial(_time, "since"),
        help="Experiments created at this time or later: 2026-11-23, or 2026-11-23T12:00Z.",
    )
    return since(until(command))


def _time(
    name: Literal["since", "until"], _ctx: click.Context, _param: click.Parameter, text: str | None
) -> datetime | None:
    if text is None:
        return None
    try:
        return written_time(name, text)
    except InvalidInput as error:
        raise click.BadParameter(str(error).removeprefix(f"{name}: ")) from None
