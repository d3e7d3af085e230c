"""`socratic-bench score`: scores texts or transcripts without a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

import click
from rich.text import Text

from socratic_bench.errors import InvalidInput
from socratic_bench.results.formats import figure
from socratic_bench.scoring.profile import CANONICAL, OVERALL
from socratic_bench.scoring.profiles import profile_named
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import excerpt, standard_output
from socratic_cli.reading.logs import opened_log
from socratic_cli.reading.transcripts import ScoredLine, UnscoredRows, scored_lines, scored_log


def print_score_table(lines: Iterable[ScoredLine], vectors: Sequence[str]) -> list[str]:
    """Print one row per line and the means; returns the mistakes with their lines."""
    names = (*vectors, OVERALL)
    rows: list[list[str | Text]] = []
    values: dict[str, list[float]] = {name: [] for name in names}
    problems = []
    for line in lines:
        figures = [line.figures.get(name) for name in names]
        for name, value in zip(names, figures, strict=True):
            if value is not None and line.scored:
                values[name].append(value)
        rows.append(
            [
                str(line.number),
                *(_in_words(line, name) for name in names),
                str(line.figures["status"]),
                excerpt(line.text),
            ]
        )
        if line.problem:
            problems.append(line.problem)
    if len(rows) > 1:
        means = [sum(column) / len(column) if column else None for column in values.values()]
        counted = f"of {len(values[OVERALL])} scored"
        last = ["mean", *(figure(mean) for mean in means), "", counted]
        rows.append([Text(cell, "bold") for cell in last])
    standard_output().print(FittingTable(_columns(vectors), rows, "see --format jsonl"))
    return problems


def _columns(vectors: Sequence[str]) -> list[TableColumn]:
    """Return the columns; the last vectors are left out first where the terminal is narrow."""
    return [
        TableColumn("line"),
        *(TableColumn(name, drop=len(vectors) - place) for place, name in enumerate(vectors)),
        TableColumn(OVERALL),
        TableColumn("status", "left"),
        TableColumn("response", "left", is_name=True),
    ]


def _in_words(line: ScoredLine, name: str) -> str:
    """Return a figure, with the profile's word for it below."""
    value = line.figures.get(name)
    facts = (line.figures.get("evidence") or {}).get("facts", {})
    word = facts.get(name, {}).get("word") if value is not None else None
    return f"{figure(value)}\n{word}" if word else figure(value)


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
    array or object, or CSV (.tsv: with tabs) with a header, or any file that `socratic-bench
    import` reads, such as a log of Inspect AI or a chat export. Another file that is no list of
    answers, such as a database, is refused.

    A record has `text` (or `response`, `output`, `content`) and optionally `id`, `output_tokens`,
    `status`, `dimension`, `student_message`, `earlier_turns` (a list of {"student": …, "tutor":
    …}) and `answer_key` (a list of strings). Of rows that name a speaker (`role`, `speaker`,
    `sender`, `from`, `user`), and of lines that begin with `Student:` and `Tutor:`, the tutor's are
    scored. Of `messages`, each answer of the assistant is scored with the turns before it. The
    answers of one record have its id with #1, #2 and so on.

    The command reports each unreadable line and scores the others.
    """
    vectors = profile_named(profile).vectors
    left_out = UnscoredRows()
    log = None if file == "-" or whole else opened_log(Path(file))
    with _opened(file) as lines:
        scored = (
            scored_lines(lines, name=_name(file), whole=whole, profile=profile, left_out=left_out)
            if log is None
            else scored_log(log, profile)
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
