"""The options of commands that read results: filters, a profile, and a file to write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE
from typing import IO, Any, Final, Literal, TypeVar

import click

from socratic_bench.errors import InvalidInput
from socratic_bench.results.filters import written_time

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


def where_option(command: F) -> F:
    """Add `--where FIELD=VALUE` to a command, once for each condition; none: all scenarios."""
    return click.option(
        "--where",
        metavar="FIELD=VALUE",
        multiple=True,
        help="Scenarios with this metadata alone, such as grade=7; all of several conditions hold.",
    )(command)


def time_options(command: F) -> F:
    """Add `--since TIME` and `--until TIME` to a command; None: no limit."""
    until = click.option(
        "--until",
        metavar="TIME",
        callback=partial(time_of, "until"),
        help="Experiments created before this time, and of a date before its end.",
    )
    since = click.option(
        "--since",
        metavar="TIME",
        callback=partial(time_of, "since"),
        help="Experiments created at this time or later: 2026-11-23, or 2026-11-23T12:00Z.",
    )
    return since(until(command))


def time_of(
    name: Literal["since", "until", "changed"],
    _ctx: click.Context,
    _param: click.Parameter,
    text: str | None,
) -> datetime | None:
    """Return the time that an option gives. Raises BadParameter."""
    if text is None:
        return None
    try:
        return written_time(name, text)
    except InvalidInput as error:
        raise click.BadParameter(str(error).removeprefix(f"{name}: ")) from None


def profile_option(command: F) -> F:
    """Add `--profile NAME` to a command; None: the experiment's own profile."""
    return click.option(
        "--profile",
        metavar="NAME",
        help="The profile to read the scores by. Without it: the experiment's own.",
    )(command)


@contextmanager
def whole_file(path: Path, *, option: str = "--out") -> Iterator[IO[str]]:
    """Open a file for UTF-8 text that replaces `path` at the end of the context.

    An error leaves `path` as it was. Raises InvalidInput, which names `option`, if the file cannot
    be written.
    """
    with _part_of(path, option) as part, part.open("a", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def whole_binary_file(path: Path, *, option: str = "--out") -> Iterator[IO[bytes]]:
    """Open a file for bytes, as `whole_file` does for text."""
    with _part_of(path, option) as part, part.open("ab") as file:
        yield file


_OF_SHELL: Final = re.compile(r"/dev/(stdout|stderr|fd/\d+)$|/proc/[^/]+/fd/\d+$")
"""The paths of files that this process has open."""


@contextmanager
def _part_of(path: Path, option: str) -> Iterator[Path]:
    """Yield the path of a file that replaces `path` at the end, and is removed after an error.

    A link is followed, and a replaced file's mode stays. A pipe or a device is never replaced, nor
    is a file that the shell opened, as /dev/stdout: it is its own part, and gets more at its end.
    """
    try:
        if _OF_SHELL.match(str(path.absolute())) or (path.exists() and not path.is_file()):
            yield path
            return
        target = path.resolve()
        with _beside(target) as part:
            yield part
            part.replace(target)
    except OSError as error:
        raise InvalidInput(f"{option}: {path} cannot be written: {error.strerror}") from None


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yield a new file in the folder of `target`, with its mode; remove the file at the end."""
    part = target.with_name(f".{token_hex(8)}.part")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        if target.exists():
            with suppress(OSError):  # only root may give a file away
                os.chown(part, target.stat().st_uid, target.stat().st_gid)
            part.chmod(S_IMODE(target.stat().st_mode))
        yield part
    finally:
        part.unlink(missing_ok=True)
