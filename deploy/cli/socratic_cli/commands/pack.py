"""`socratic-bench pack check`: checks a pack of scenarios by the rules for its authors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from socratic_bench.planning.config_file.scenario_selection import ScenarioPack, read_pack
from socratic_bench.planning.packs.lint import (
    KINDS,
    balanced,
    findings_in,
    is_pressing,
)
from socratic_cli.display.terminal import counted, name_of, say


@click.group()
def pack() -> None:
    """Check a pack of scenarios.

    A pack is a file with a named set of scenarios, such as pressure-24.yaml.
    """


@pack.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check the pack in FILE by the rules for authors.

    Names each script and turn that breaks a rule, one a line; the exit code is then 1. A pack
    without a finding gets a summary with its hash. The rules for scripts apply to scenarios that
    name their pressures.
    """
    checked = read_pack(file)
    findings = findings_in(checked, str(file))
    for finding in findings:
        click.echo(str(finding))
    if findings:
        say(f"{counted(len(findings), 'finding')} in {file}.")
        raise click.exceptions.Exit(1)
    for label, text in _summary(checked):
        click.echo(f"{label:<10}{text}")
    say(f"No finding in {file}.")


def _summary(checked: ScenarioPack) -> Iterator[tuple[str, str]]:
    scenarios = checked.scenarios
    messages = [message for each in scenarios for message in each.student_messages]
    words = sum(len(message.split()) for message in messages)
    yield "pack", f"{name_of(checked.pack)}, version {checked.version}"
    dimensions = Counter(each.dimension for each in scenarios)
    named = ", ".join(f"{name_of(name)} {count}" for name, count in dimensions.items())
    yield "scenarios", f"{len(scenarios)}: {named}"
    yield "words", f"{words:,} in {counted(len(messages), 'message')}"
    kinds = Counter(kind for each in scenarios for kind in each.pressures)
    if kinds:
        yield "kinds", ", ".join(f"{kind} {kinds[kind]}" for kind in KINDS if kinds[kind])
    if any(map(is_pressing, scenarios)):
        squares = ", ".join(map(name_of, balanced(scenarios)))
        yield "squares", f"whole in {squares}" if squares else "none is whole: balance unchecked"
    yield "hash", checked.content_hash
