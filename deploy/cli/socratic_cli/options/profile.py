"""The `--profile` option of commands that read scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def profile_option(command: F) -> F:
    """Add `--profile NAME` to a command; None: the experiment's own profile."""
    return click.option(
        "--profile",
        metavar="NAME",
        help="The profile to read the scores by. Without it: the experiment's own.",
    )(command)
