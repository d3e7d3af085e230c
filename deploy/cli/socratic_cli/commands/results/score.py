"""`socratic-bench score`: scores texts or transcripts without a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

import click

from socratic_bench.errors import InvalidInput
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.profiles import profile_named
from socratic_cli.tables.score import print_score_table
from socratic_cli.transcripts import LeftOut, ScoredLine, scored_lines


@click.command()
@click.argument("file", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "jsonl"]),
    default="table",
    show_default=True,
    help="jsonl prints one object per response, in order, with its evidence.",
)
@click.option("--whole", is_flag=True, help="Take plain text as one response, not one per line.")
@click.option(
    "--profile",
    default=CANONICAL,
    show_default=True,
    help="The scorer profile: a built-in one, or one of an installed distribution.",
)
def score(file: str, output: str, whole: bool, profile: str) -> None:
    """Score texts or transcripts, without a model.

    FILE, or standard input with -, may be plain text with one response per line, JSON Lines, a JSON
    array or object, or CSV (.tsv: with tabs) with a header. A file that is no list of answers, such
    as a database or a chat export, is refused.

    A record has `text` (or `response`, `output`, `content`) and optionally `id`, `output_tokens`,
    `status`, `dimension`, `student_message` and `earlier_turns` (a list of {"student": …, "tutor":
    …}). Of rows that name a speaker (`role`, `speaker`, `sender`, `from`, `user`), and of lines
    that begin with `Student:` and `Tutor:`, the tutor's are scored. Of `messages`, each answer of
    the assistant is scored with the turns before it. The answers of one record have its id with #1,
    #2 and so on.

    The command reports each unreadable line and scores the others.
    """
    vectors = profile_named(profile).vectors
    left_out = LeftOut()
    with _opened(file) as lines:
        scored = scored_lines(
            lines, name=_name(file), whole=whole, profile=profile, left_out=left_out
        )
        as_jsonl = output == "jsonl"
        problems = _print_jsonl(scored) if as_jsonl else print_score_table(scored, vectors)
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if left_out:
        click.echo(f"Note: {left_out}", err=True)
    if problems:
        raise click.exceptions.Exit(1)


def _name(file: str) -> str:
    return "standard input" if file == "-" else file


def _opened(file: str) -> AbstractContextManager[IO[bytes]]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}") from None


def _print_jsonl(scored: Iterable[ScoredLine]) -> list[str]:
    problems = []
    for line in scored:
        click.echo(json.dumps(line.figures, allow_nan=False))
        if line.problem:
            problems.append(line.problem)
    return problems
