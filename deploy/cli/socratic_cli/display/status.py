"""The progress of experiments, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from socratic_bench.domain.run import NORMAL
from socratic_bench.domain.trouble import Trouble
from socratic_bench.results.costs import SpendingFigures
from socratic_bench.results.experiment_status import ExperimentStatus, ModelProgress, State
from socratic_bench.results.formats import cost, dollars, moment
from socratic_bench.results.pending import PendingRun, WaitsFor
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import excerpt, name_of

SENTENCE = 400
"""The most characters of a sentence about a failure."""

NOTES = 2_000
"""The most characters of the notes, in all."""

LISTED = 20
"""The most lines about failures."""

_REMEDY = "see --json"

_STYLES = {
    State.COMPLETE: "green",
    State.RUNNING: "",
    State.PAUSED: "yellow",
    State.CANCELLED: "yellow",
    State.OVERDUE: "bold red",
    State.OUT_OF_BUDGET: "bold red",
}


def experiments_table(statuses: Iterable[ExperimentStatus]) -> FittingTable:
    """Make a table: a row per experiment, with names if any has one."""
    statuses = tuple(statuses)
    named = any(status.name for status in statuses)
    columns = (
        TableColumn("experiment", "left", is_name=True),
        *([TableColumn("name", "left", drop=4, is_name=True)] if named else []),
        TableColumn("created", "left", drop=2),
        TableColumn("occasion", "left", drop=1, is_name=True),
        TableColumn("models", drop=0),
        TableColumn("planned", drop=3),
        TableColumn("done"),
        TableColumn("failed"),
        TableColumn("state", "left"),
    )
    rows: list[tuple[str | Text, ...]] = [
        (
            status.experiment_id,
            *([name_of(status.name or "")] if named else []),
            moment(status.created_at),
            name_of(status.occasion or ""),
            str(status.models),
            str(status.planned),
            str(status.done),
            str(status.failed),
            _state(status),
        )
        for status in statuses
    ]
    return FittingTable(columns, rows, _REMEDY)


def status_table(status: ExperimentStatus, stop: str | None = None) -> Table:
    """Make the lines about one experiment as a whole; `stop` tells of its `stop_when`."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in (
        ("experiment", status.experiment_id),
        ("name", excerpt(status.name or "")),
        ("notes", excerpt(status.notes or "", NOTES)),
        ("occasion", excerpt(status.occasion or "")),
        ("state", _state(status)),
        ("priority", "" if status.priority == NORMAL else status.priority),
        ("created", moment(status.created_at)),
        ("deadline", moment(status.deadline_at)),
        ("completed", moment(status.completed_at)),
        ("planned", str(status.planned)),
        ("done", str(status.done)),
        ("failed", str(status.failed)),
        ("left", str(status.left)),
        ("repeats", stop or ""),
        ("cost", _cost(status.spending)),
    ):
        if value:
            table.add_row(name, value)
    return table


def _cost(spending: SpendingFigures) -> str:
    """Return the cost and the budget; empty without a price and a budget."""
    if spending.budget_usd is None:
        return spending.told if spending.is_known else ""
    return f"{spending.told}; budget {dollars(spending.budget_usd)}"


def models_table(models: Sequence[ModelProgress]) -> FittingTable:
    """Make a table: a row per model, with costs and reasons of failure if any."""
    costs = any(model.total_cost_usd is not None for model in models)
    simulated = any(map(_is_simulated, models))
    failures = any(model.failures for model in models)
    columns = (
        TableColumn("model", "left", is_name=True),
        *([TableColumn("kind", "left", drop=2)] if simulated else []),
        TableColumn("planned", drop=1),
        TableColumn("done"),
        TableColumn("failed"),
        *([TableColumn("cost", drop=2)] if costs else []),
        *([TableColumn("failed for", "left", folds=True)] if failures else []),
    )
    rows: list[tuple[str | Text, ...]] = [
        (
            name_of(model.model_id),
            *([Text(_kind(model), style="dim italic")] if simulated else []),
            str(model.planned),
            str(model.done),
            str(model.failed),
            *([cost(model.total_cost_usd, model.cost_known)] if costs else []),
            *([_reasons(model.failures)] if failures else []),
        )
        for model in models
    ]
    return FittingTable(columns, rows, _REMEDY)


def _is_simulated(model: ModelProgress) -> bool:
    return model.total_cost_usd is not None and model.kind == "reference"


def _kind(model: ModelProgress) -> str:
    return "simulated cost" if _is_simulated(model) else ""


def _reasons(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{excerpt(kind)} {count}" for kind, count in failures.items())


def batch_lines(sentences: Sequence[str]) -> list[Text]:
    """Return a sentence for each provider's batch, under a heading."""
    return _listed("in batches", [excerpt(each, SENTENCE) for each in sentences])


def trouble_lines(troubles: Sequence[Trouble]) -> list[Text]:
    """Return a sentence for each model whose calls fail now, under a heading."""
    return _listed("in trouble", [excerpt(each.sentence, SENTENCE) for each in troubles])


def failure_lines(models: Sequence[ModelProgress]) -> list[Text]:
    """Return one failed run's message for each model and kind of failure."""
    told = [
        excerpt(f"{model.model_id}: {kind} {model.failures[kind]}: {message}", SENTENCE)
        for model in models
        for kind, message in model.failure_examples.items()
    ]
    more = [f"… and {len(told) - LISTED} more: --json"] if len(told) > LISTED else []
    return _listed("failed, for example", told[:LISTED] + more)


def _listed(heading: str, lines: Sequence[str]) -> list[Text]:
    return [Text(), Text(heading, style="bold"), *map(Text, lines)] if lines else []


def pending_table(runs: Iterable[PendingRun]) -> FittingTable:
    """Make a table: a row per pending run."""
    columns = (
        TableColumn("model", "left", is_name=True),
        TableColumn("scenario", "left", is_name=True),
        TableColumn("repeat", drop=2),
        TableColumn("run", "left", drop=1, is_name=True),
        TableColumn("waits for", "left"),
    )
    rows: list[tuple[str | Text, ...]] = [
        (
            name_of(run.model_id),
            name_of(run.scenario_id),
            str(run.repeat),
            run.run_id,
            f"{run.waits_for}{_turn(run)}",
        )
        for run in runs
    ]
    return FittingTable(columns, rows, _REMEDY)


def _turn(run: PendingRun) -> str:
    """Return the next turn of a dialogue."""
    if run.turns == 1 or run.waits_for != WaitsFor.RESPONSE:
        return ""
    return f" {run.turns_answered + 1} of {run.turns}"


def _state(status: ExperimentStatus) -> Text:
    return Text(status.state.replace("_", " "), style=_STYLES[status.state])
