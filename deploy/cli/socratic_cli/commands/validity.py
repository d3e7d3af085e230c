"""`socratic-bench validity`: compares scores with people's labels."""

from __future__ import annotations

from pathlib import Path

import click

from socratic_bench.errors import InvalidInput
from socratic_bench.research.building import validity_report
from socratic_bench.research.labelled import LabelledSet, read_set
from socratic_bench.research.validity_report import validity_page
from socratic_bench.scoring.profile import CANONICAL
from socratic_cli.display.terminal import counted, say
from socratic_cli.options.results import whole_file


@click.command()
@click.argument(
    "data", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to FILE: a page if it ends with .html, data if it ends with .json.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    default=(CANONICAL, "socratic-v2"),
    show_default=True,
    help="A scorer profile, once for each; the others are compared with the first.",
)
@click.option(
    "--resamples",
    type=click.IntRange(20, 100_000),
    default=1_000,
    show_default=True,
    help="The resamples of the bootstrap over groups.",
)
@click.option("--summary", is_flag=True, help="Keep the columns of the first table alone.")
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of the bootstrap.")
def validity(
    data: tuple[Path, ...],
    out: Path,
    profiles: tuple[str, ...],
    resamples: int,
    summary: bool,
    seed: int,
) -> None:
    """Compare scores with people's labels, and write a report.

    DATA are files of JSON lines: `text` or the `messages` of a dialogue, `labels`
    ({"question": 0 or 1}) and `group`, optionally `student_message`, `context`, `ordinal`,
    `source`, `tutor`, `judges` and `columns` ({"question": "guide"}: what is meant for a label).

    The command reports each line that it cannot read, one with an unknown field too, and leaves it
    out; its exit code is then 1.
    """
    if out.suffix not in {".html", ".json"}:
        raise InvalidInput(f"--out: {out} must end with .html or .json")
    # Opened first: a folder that is not there must not cost the work.
    with whole_file(out) as file:
        sets = [_read(path) for path in data]
        report = validity_report(sets, profiles, resamples=resamples, seed=seed)
        if summary:
            report = report.summary()
        is_page = out.suffix == ".html"
        file.write(validity_page(report) if is_page else report.model_dump_json(indent=1) + "\n")
    responses = sum(len(each.responses) for each in sets)
    say(f"Wrote the figures of {counted(responses, 'labelled response')} to {out}.")
    problems = [problem for each in sets for problem in each.problems]
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if problems:
        raise click.exceptions.Exit(1)


def _read(path: Path) -> LabelledSet:
    try:
        with path.open("rb") as lines:
            return read_set(path.stem, str(path), lines)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from None
