"""`socratic-bench gate`: checks an experiment against thresholds, for a pipeline."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import RenderableType

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import UnknownExperiment
from socratic_bench.planning.config_file.changes import Changes
from socratic_bench.planning.config_file.config import read_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.results.gate.falls import Thresholds
from socratic_bench.results.gate.gate_report import GateReport, gate_report
from socratic_bench.results.gate.text_formats import gate_annotations, gate_markdown, junit_text
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import counted, name_of, say, standard_output
from socratic_cli.options.configuration import changes_options
from socratic_cli.options.results import profile_option, whole_file
from socratic_cli.options.store import readable_store, store_option

_COLUMNS = (
    TableColumn("", "left"),
    TableColumn("model", "left", is_name=True),
    TableColumn("check", "left"),
    TableColumn("figures", "left", folds=True),
)


def gate_table(report: GateReport) -> RenderableType:
    """Make a table with a row for each check, the failed ones first."""
    rows = [
        ("ok" if check.passed else "FAILED", name_of(check.model_id), check.name, check.detail)
        for check in sorted(report.checks, key=lambda check: check.passed)
    ]
    return FittingTable(_COLUMNS, rows, "use --json")


SHARE = click.FloatRange(0, 1)
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""The file that a job's summary on GitHub is read from."""


class LeastOverall(click.ParamType[tuple[str | None, float]]):
    """`0.6`, or `MODEL=0.6`."""

    name = "score"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, float]:
        """Return the model's id, or None for all models, and its least score."""
        model, equals, text = str(value).rpartition("=")
        try:
            score = float(text)
        except ValueError:
            score = math.nan
        if not 0 <= score <= 1:
            self.fail(f"{text!r} is no score from 0 to 1: write 0.6, or MODEL=0.6", param, ctx)
        return (model if equals else None), score


@click.command()
@click.argument("experiment")
@store_option
@click.option(
    "--fail-under",
    "least_overall",
    type=LeastOverall(),
    metavar="[MODEL=]SCORE",
    multiple=True,
    help="The least overall score of every real model, or of MODEL.",
)
@click.option(
    "--min-coverage", "least_coverage", type=SHARE, help="The least coverage of every real model."
)
@click.option(
    "--min-turns-kept",
    "least_turns_kept",
    type=click.FloatRange(min=0),
    metavar="TURNS",
    help="The least turns that every real model keeps asking, as `fidelity` shows them.",
)
@click.option(
    "--baseline",
    metavar="ID",
    help="An experiment that no real model may fall below: an id, or the newest of a name or "
    "occasion; main~1 is the one before, weeks:4 all under the same conditions of four weeks.",
)
@click.option(
    "--max-drop",
    "most_drop",
    type=SHARE,
    help="With --baseline: how much the overall score of a model may fall; 0 without it.",
)
@click.option(
    "--min-shared",
    "least_shared",
    type=SHARE,
    help="With --baseline: the least share of its models, and of each model's scenarios and scored "
    "answers, that the experiment still has; without it 1, and 0.8 of the answers.",
)
@click.option(
    "--allow-no-baseline",
    "allows_no_baseline",
    is_flag=True,
    help="With --baseline: pass where there is no such experiment yet.",
)
@click.option(
    "--allow-unfinished", "allows_unfinished", is_flag=True, help="Pass with runs pending."
)
@click.option(
    "--allow-reused",
    "allows_reused",
    is_flag=True,
    help="Pass where all answers of a model are copies from earlier experiments.",
)
@click.option("--fresh-only", is_flag=True, help="Fail where any answer is such a copy.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the checks as JUnit XML, too.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "markdown", "github"]),
    default="table",
    show_default=True,
    help="markdown: for a pull request; github: annotations of a workflow, and the Markdown in the "
    "job's summary.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@profile_option
@changes_options
def gate(
    experiment: str,
    store_url: str,
    profile: str | None,
    least_overall: Sequence[tuple[str | None, float]],
    least_coverage: float | None,
    least_turns_kept: float | None,
    baseline: str | None,
    most_drop: float | None,
    *,
    junit: Path | None,
    least_shared: float | None,
    allows_no_baseline: bool,
    allows_unfinished: bool,
    allows_reused: bool,
    fresh_only: bool,
    output: str,
    as_json: bool,
    changes: Changes,
) -> None:
    """Check an experiment's scores against thresholds.

    EXPERIMENT is the configuration that was run, or an ID, its start, an occasion or a name. A
    configuration means its newest execution under its name, unless --occasion or its `occasion`
    names one; its `weights` are those of the scores. Exit code 1 if a check fails. A model is
    compared with itself in the baseline, on the scenarios that both experiments have. Reference
    tutors are checked only where --fail-under names them.
    """
    config = Path(experiment)
    gated: Experiment | str = experiment
    if _is_file(config):
        configured = read_config(config, RegisteredModels(None), changes)
        gated = configured.experiment(SystemClock().now())
        profile = profile or configured.weighted_profile
    if changes and not isinstance(gated, Experiment):
        raise click.UsageError("--occasion, --set, --model and the like need a configuration")
    thresholds = replace(
        _thresholds(least_overall, least_coverage, least_turns_kept, baseline, most_drop),
        least_shared=_with_baseline(least_shared, baseline),
        allows_no_baseline=allows_no_baseline,
        allows_unfinished=allows_unfinished,
        allows_reused=allows_reused,
        allows_itself=isinstance(gated, str),
        fresh_only=fresh_only,
        profile=profile,
    )
    report = asyncio.run(_report(store_url, gated, config, thresholds))
    if junit is not None:
        with whole_file(junit, option="--junit") as file:
            file.write(junit_text(report))
    _show(report, "json" if as_json else output)
    for note in report.notes:
        say(note)
    failed = sum(not check.passed for check in report.checks)
    say(f"{counted(len(report.checks), 'check')}, {failed or 'none'} failed.")
    if not report.passed:
        raise click.exceptions.Exit(1)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a text longer than a name of a file may be
        return False


def _show(report: GateReport, output: str) -> None:
    if output == "json":
        click.echo(report.model_dump_json())
    elif output == "markdown":
        click.echo(gate_markdown(report), nl=False)
    elif output == "github":
        click.echo(gate_annotations(report), nl=False)
        if summary := os.environ.get(SUMMARY_VARIABLE):
            try:
                with Path(summary).open("a", encoding="utf-8") as file:
                    file.write(gate_markdown(report))
            except OSError as error:
                say(f"{SUMMARY_VARIABLE}: {summary} cannot be written: {error.strerror}")
    else:
        standard_output().print(gate_table(report))


def _with_baseline(least_shared: float | None, baseline: str | None) -> float | None:
    if least_shared is not None and baseline is None:
        raise click.UsageError("--min-shared needs --baseline, the experiment to share with")
    return least_shared


def _thresholds(
    least_overall: Sequence[tuple[str | None, float]],
    least_coverage: float | None,
    least_turns_kept: float | None,
    baseline: str | None,
    most_drop: float | None,
) -> Thresholds:
    of_all = [score for model, score in least_overall if model is None]
    if len(of_all) > 1:
        raise click.UsageError("--fail-under: give one SCORE for all models, others as MODEL=SCORE")
    if most_drop is not None and baseline is None:
        raise click.UsageError("--max-drop needs --baseline, the experiment to fall from")
    if not least_overall and {least_coverage, least_turns_kept, baseline} == {None}:
        raise click.UsageError(
            "nothing to check: give --fail-under, --min-coverage, --min-turns-kept or --baseline"
        )
    return Thresholds(
        least_overall=of_all[0] if of_all else None,
        least_overall_of={model: score for model, score in least_overall if model is not None},
        least_coverage=least_coverage,
        least_turns_kept=least_turns_kept,
        baseline=baseline,
        most_drop=most_drop or 0.0,
    )


async def _report(
    store_url: str, gated: Experiment | str, config: Path, thresholds: Thresholds
) -> GateReport:
    async with readable_store(store_url) as store:
        wanted = gated if isinstance(gated, str) else await _executed(store, gated, config)
        return await gate_report(store, wanted, thresholds, SystemClock().now())


async def _executed(store: Experiments, planned: Experiment, config: Path) -> str:
    """Return the id of a configuration's experiment: without an occasion, of the newest one.

    Raises UnknownExperiment.
    """
    manifest, outlines = planned.manifest, await store.outlines()
    if planned.occasion is None:
        found = [each for each in outlines if each.manifest_id == manifest.manifest_id]
        # One plan may have executions of several names: main's, and that of a change.
        found = [each for each in found if each.name == manifest.name] or found
    else:
        found = [each for each in outlines if each.experiment_id == planned.experiment_id]
    if found:
        return found[0].experiment_id
    raise UnknownExperiment(
        f"the experiment of {config} ({planned.experiment_id}) is not in this store: "
        f"socratic-bench run {config}"
    )
