"""`socratic-bench init`: writes a first configuration."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path

import click

from socratic_bench.errors import InvalidInput
from socratic_cli.display.terminal import say


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=Path("mine.yaml"))
def init(file: Path) -> None:
    """Write a commented configuration to FILE (mine.yaml).

    It runs unchanged and without a key: replace its models and scenarios. An existing file is never
    overwritten.
    """
    text = resources.files("socratic_cli.configs").joinpath("quickstart.yaml").read_bytes()
    try:
        with file.open("xb") as opened:
            opened.write(text)
    except FileExistsError:
        raise InvalidInput(
            f"{file} already exists and was not overwritten: name another file"
        ) from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}") from None
    say(f"Wrote {file}. Next: socratic-bench run {shlex.quote(str(file))}")
