"""How far experiments are, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from socratic_bench.reporting.experiment_status import ExperimentStatus, ModelProgress, State
from socratic_bench.reporting.undone import UndoneRun, WaitsFor
from socratic_embedded.terminal import excerpt, moment

_STYLES = {State.COMPLETE: "green", State.AT_WORK: "", State.OVERDUE: "bold red"}


def experiments_table(statuses: Iterable[ExperimentStatus]) -> Table:
    """A row an experiment."""
    table = _table("experiment", "created", "occasion", counts=("planned", "done", "failed"))
    table.add_column("state", no_wrap=True)
    for status in statuses:
        table.add_row(
            status.experiment_id,
            moment(status.created_at),
            excerpt(status.occasion or ""),
            str(status.planned),
            str(status.done),
            str(status.failed),
            _state(status),
        )
    return table


def status_table(status: ExperimentStatus) -> Table:
    """What there is to say of one experiment as a whole, a line each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in (
        ("experiment", status.experiment_id),
        ("occasion", excerpt(status.occasion or "")),
        ("state", _state(status)),
        ("created", moment(status.created_at)),
        ("deadline", moment(status.deadline_at)),
        ("completed", moment(status.completed_at)),
        ("planned", str(status.planned)),
        ("done", str(status.done)),
        ("failed", str(status.failed)),
        ("left", str(status.left)),
    ):
        if value:
            table.add_row(name, value)
    return table


def models_table(models: Iterable[ModelProgress]) -> Table:
    """A row a model."""
    table = _table("model", counts=("planned", "done", "failed"))
    for model in models:
        table.add_row(
            excerpt(model.model_id), str(model.planned), str(model.done), str(model.failed)
        )
    return table


def undone_table(runs: Iterable[UndoneRun]) -> Table:
    """A row a run that is not done."""
    table = _table("model", "scenario", counts=("repeat",))
    table.add_column("run", no_wrap=True)
    table.add_column("waits for", no_wrap=True)
    for run in runs:
        turn = f" {run.turns_answered + 1} of {run.turns}" if run.turns > 1 else ""
        table.add_row(
            excerpt(run.model_id),
            excerpt(run.scenario_id),
            str(run.repeat),
            run.run_id,
            f"{run.waits_for}{turn if run.waits_for == WaitsFor.RESPONSE else ''}",
        )
    return table


def _table(*names: str, counts: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=name == "experiment", overflow="fold")
    for count in counts:
        table.add_column(count, justify="right")
    return table


def _state(status: ExperimentStatus) -> Text:
    return Text(status.state.replace("_", " "), style=_STYLES[status.state])
