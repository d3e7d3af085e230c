"""`socratic-bench compare`: compares two models on the scenarios of both."""

from __future__ import annotations

import asyncio
import math
from typing import Final

import click
from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.domain.aggregates.difference import MARGIN
from socratic_bench.results.compare.model_difference import (
    ModelDifference,
    Side,
    model_difference,
)
from socratic_bench.results.formats import (
    figure,
    moment,
    p_value,
    room,
    share,
    signed,
    signed_interval,
)
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import counted, name_of, standard_output
from socratic_cli.options.results import profile_option
from socratic_cli.options.store import readable_store, store_option

MOST_SCENARIOS: Final = 5
"""The most scenarios in the table; `--json` has all of them."""

MOST_TO_TELL: Final = 1_000
"""The table says of more scenarios than these, or repeats, that they are more."""

LEAST_DEVIATION: Final = 0.005
"""A smaller standard deviation of a score is shown as 0.00, of which there are no parts to tell."""

_FIGURES = (
    TableColumn("", "left", is_name=True),
    TableColumn("A"),
    TableColumn("B"),
    TableColumn("A \u2212 B"),
    TableColumn("95 % interval", "center"),
)
_SCENARIOS = (
    TableColumn("scenario", "left", is_name=True),
    TableColumn("dimension", "left", drop=1, is_name=True),
    TableColumn("A"),
    TableColumn("B"),
    TableColumn("A \u2212 B"),
)


def difference_table(difference: ModelDifference) -> RenderableType:
    """Make the tables: both models, their figures, and the scenarios that separate them most."""
    figures = [
        (
            name_of(each.name),
            figure(each.first),
            figure(each.second),
            signed(each.difference),
            signed_interval(each.interval),
        )
        for each in difference.figures
    ]
    scenarios = [
        (
            name_of(each.scenario_id),
            name_of(each.dimension),
            figure(each.first),
            figure(each.second),
            signed(each.difference),
        )
        for each in difference.by_scenario[:MOST_SCENARIOS]
    ]
    parts: list[RenderableType] = [
        _side("A", difference.first),
        _side("B", difference.second),
        Text(),
        FittingTable(_FIGURES, figures, "see --json"),
        Text(),
        Text(_finding(difference)),
        *map(Text, _advice(difference)),
        *map(Text, _turns_kept(difference)),
    ]
    if variance := _variance(difference):
        parts.append(Text(variance, style="dim"))
    parts += [Text(each, style="dim") for each in difference.notes]
    if scenarios:
        heading = Text("The scenarios that separate them most:", style="dim")
        parts += [Text(), heading, FittingTable(_SCENARIOS, scenarios, "see --json")]
    return Group(*parts)


def _side(letter: str, side: Side) -> Text:
    title = f"{name_of(side.title)}  " if side.title else ""
    about = f"  {title}{moment(side.created_at)}  {side.experiment_id}"
    return Text.assemble(f"{letter}  ", (name_of(side.model_name), "bold"), (about, "dim"))


def _finding(difference: ModelDifference) -> str:
    overall = difference.figures[0].difference
    if overall is None:
        return "No scenario has a score of both: there is nothing to compare."
    return " ".join(filter(None, [_verdict(difference, overall), _size(difference)]))


def _verdict(difference: ModelDifference, overall: float) -> str:
    if not overall:
        return _same(difference)
    more, less = ("A", "B") if overall > 0 else ("B", "A")
    amount = signed(abs(overall)).lstrip("+")
    tested = f"{p_value(difference.p_value)}, {counted(difference.scenarios, 'scenario')}"
    if difference.is_real:
        return f"{more} scores {amount} more than {less}, more than chance explains ({tested})."
    return f"{more} scores {amount} more than {less}, which may be chance ({tested})."


def _same(difference: ModelDifference) -> str:
    """Say what equal scores leave open."""
    same = f"Both score the same over {counted(difference.scenarios, 'scenario')}."
    bounds, within = difference.figures[0].interval, difference.equivalence
    if within.is_shown:
        return same
    sentences = [f"{same} That is no proof of equality"]
    if bounds is not None:
        sentences[0] += f": the true difference may be up to {room(bounds)} either way"
    if (wanted := within.scenarios_to_show) and wanted > difference.scenarios:
        shown = f"would show that it is less than {within.margin:g}"
        sentences.append(f"{_many(wanted, 'scenarios', about='')} {shown}")
    return f"{'. '.join(sentences)}."


def _size(difference: ModelDifference) -> str:
    """Say whether the difference is too small to matter."""
    found = difference.equivalence
    if not found.is_shown:
        return ""
    tested = p_value(found.p_value)
    return (
        f"The difference is too small to matter: less than {found.margin:g} either way ({tested})."
    )


def _advice(difference: ModelDifference) -> list[str]:
    """Say what would tell, where the present scenarios do not."""
    found, split = difference.equivalence, difference.variance
    if split is None or difference.is_real or found.is_shown:
        return []
    lines = []
    if (needed := difference.scenarios_to_tell) and needed > difference.scenarios:
        told = _many(needed, "scenarios like these would tell a difference of this size")
        repeats = difference.repeats_to_tell
        if repeats is not None and repeats > split.repeats:
            told += f"; or {_many(repeats, 'repeats of these', lower=True)}"
        elif split.repeat is not None:
            told += "; no number of repeats would"
        more = "" if split.buy is None else f" More {split.buy} would lessen the uncertainty most."
        lines.append(f"{told}.{more}")
    wanted = found.scenarios_to_show
    if difference.figures[0].difference and wanted and wanted > difference.scenarios:
        shown = f"would show that equal models differ by less than {found.margin:g}"
        lines.append(f"{_many(wanted, 'scenarios')} {shown}.")
    return lines


def _turns_kept(difference: ModelDifference) -> list[str]:
    """Say how many turns both keep asking, under a profile that counts breaks."""
    found = difference.turns_kept
    if found is None:
        return []
    between = "" if found.interval is None else f", 95 % {signed_interval(found.interval)}"
    explained = "more than chance explains" if found.is_real else "which may be chance"
    if found.is_equivalent:
        explained = "shown to be less than one turn either way"
    kept = f"Turns kept of {found.horizon}: A {found.first:.1f}, B {found.second:.1f}"
    tested = f"{p_value(found.p_value)}, {counted(found.scenarios, 'scenario')}"
    apart = f"A \u2212 B {signed(found.difference)}{between}"
    return [f"{kept}; {apart}, {explained} ({tested})."]


def _many(needed: int, of_what: str, *, about: str = "About ", lower: bool = False) -> str:
    text = f"{about}{needed} {of_what}"
    if needed > MOST_TO_TELL:
        text = f"More than {MOST_TO_TELL:,} {of_what}"
    return text[0].lower() + text[1:] if lower else text


def _variance(difference: ModelDifference) -> str | None:
    """Say where the variance of a score lies."""
    split = difference.variance
    if split is None:
        return None
    total = split.scenario + split.rest + (split.repeat or 0.0)
    if math.sqrt(total) < LEAST_DEVIATION:
        return None
    repeat = (
        "; one run of each scenario does not tell repeats apart"
        if split.repeat is None
        else f", {share(split.repeat / total)} between repeats"
    )
    return (
        f"Variance of a score: {share(split.scenario / total)} between scenarios (alike for both, "
        f"so that pairing takes it out), {share(split.rest / total)} in how A and B differ from "
        f"scenario to scenario{repeat}."
    )


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@store_option
@click.option(
    "--experiment",
    metavar="ID",
    help="The experiment of both. Without it: the newest one that has both models.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=MARGIN,
    show_default=True,
    help="The difference that is too small to matter.",
)
@profile_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every scenario.")
def compare(
    first: str,
    second: str,
    store_url: str,
    experiment: str | None,
    margin: float,
    profile: str | None,
    *,
    as_json: bool,
) -> None:
    """Compare two models on the scenarios of both.

    A and B are MODEL or MODEL@EXPERIMENT: `compare m@exp-1 m@exp-2` compares two prompts, or two
    occasions, of one model.
    """
    difference = asyncio.run(_load(store_url, first, second, experiment, margin, profile))
    if as_json:
        click.echo(difference.model_dump_json())
    else:
        standard_output().print(difference_table(difference))


async def _load(
    store_url: str,
    first: str,
    second: str,
    experiment: str | None,
    margin: float,
    profile: str | None,
) -> ModelDifference:
    async with readable_store(store_url) as store:
        return await model_difference(store, first, second, experiment, margin, profile)
