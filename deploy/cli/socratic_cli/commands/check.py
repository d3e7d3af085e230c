"""`socratic-bench run --check`: ask each model once, and show the outcomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.grading import Grading
from socratic_bench.domain.money import nanodollars
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.trouble import about, one_line
from socratic_bench.errors import InvalidInput, ModelCallFailed
from socratic_bench.planning.config_file.config import BenchmarkConfig
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.costs import usd
from socratic_bench.results.formats import MISSING, dollars
from socratic_bench.scoring.exchange import Status
from socratic_bench.service_settings import load_settings
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import counted, excerpt, name_of, say, standard_output
from socratic_judge.handlers import judge
from socratic_runner.checking import Checked, check_models, most_a_check_costs
from socratic_runner.conversations.call_outcomes import MAY_BE_BILLED
from socratic_runner.model_pool import OpenClient
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import why_without_text

SENTENCE = 400
"""The most characters of a sentence about a model."""

_NOT_SCORED = {
    Status.TRUNCATED: "the answer was cut off, and has no score: raise `max_tokens`",
    Status.REFUSED: "the model declined to answer, which has no score",
}


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one model."""

    checked: Checked
    result: str
    """`ok`, another status, or the class of the failure."""

    problem: str | None
    """The reason why a run of this model would have no score; None: it would have one."""

    cost: int | None
    """In nanodollars; None if unknown."""

    @property
    def simulated(self) -> bool:
        """True if its cost is not real."""
        return is_reference(self.checked.model)

    @property
    def response(self) -> Response | None:
        """None if the call failed."""
        result = self.checked.result
        return None if isinstance(result, ModelCallFailed) else result

    @property
    def latency_ms(self) -> int:
        """The model's latency as its client reports it, or the time until the call failed."""
        told = None if self.response is None else self.response.latency_ms
        return round(self.checked.seconds * 1000) if told is None else told


def rows_of(checked: Sequence[Checked]) -> list[Row]:
    """Return a row per model."""
    return [_row(each) for each in checked]


def _row(checked: Checked) -> Row:
    result = checked.result
    if isinstance(result, ModelCallFailed):
        cost = None if result.kind in MAY_BE_BILLED else 0
        return Row(checked, str(result.kind), one_line(str(result)), cost)
    if not checked.is_tutor:
        # Its client takes a reply of no use for a failed call.
        return Row(checked, str(result.status), None, result.cost_nanodollars)
    # The runner adds a grade to each response that needs one.
    scored = judge(result.model_copy(update={"grading": Grading(score=0)})).overall is not None
    problem = None if scored else _NOT_SCORED.get(result.status, "the answer has no score")
    if result.status is Status.EMPTY:
        problem = f"the answer is empty, and has no score: {why_without_text(result)}"
    return Row(checked, str(result.status), problem, result.cost_nanodollars)


def check_table(rows: Sequence[Row]) -> RenderableType:
    """Make a table: a row per model, the reasons of failures, and the cost of the check."""
    kinds = any(row.simulated for row in rows)
    columns = (
        TableColumn("model", "left", is_name=True),
        *([TableColumn("kind", "left", drop=3)] if kinds else []),
        TableColumn("result", "left"),
        TableColumn("latency", drop=4),
        TableColumn("tokens in", drop=1),
        TableColumn("tokens out", drop=1),
        TableColumn("cost", drop=3),
        TableColumn("version served", "left", drop=2, is_name=True),
    )
    table = FittingTable(columns, [_cells(row, kinds=kinds) for row in rows], "see --json")
    problems = [
        Text(excerpt(about(row.checked.model.id, row.problem), SENTENCE))
        for row in rows
        if row.problem is not None
    ]
    return Group(table, *([Text(), *problems] if problems else []), Text(), Text(_total(rows)))


def _cells(row: Row, *, kinds: bool) -> tuple[Text | str, ...]:
    result = Text(excerpt(row.result), style="green" if row.problem is None else "bold red")
    usage = Usage() if row.response is None else row.response.usage
    version = None if row.response is None else row.response.model_version
    return (
        name_of(row.checked.model.id),
        *([Text("reference" if row.simulated else "", style="dim italic")] if kinds else []),
        result,
        f"{row.latency_ms:,} ms",
        _tokens(usage.input_tokens),
        _tokens(usage.output_tokens),
        MISSING if row.cost is None else dollars(usd(row.cost)),
        name_of(version or MISSING),
    )


def _tokens(count: int | None) -> str:
    return MISSING if count is None else f"{count:,}"


def _total(rows: Sequence[Row]) -> str:
    """Return the sentence about the cost. Reference tutors' costs are simulated."""
    paid, unknown = _paid(rows)
    if unknown:
        named = ", ".join(excerpt(row.checked.model.id) for row in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        return f"The check cost {dollars(usd(paid))}, and an unknown amount for {named}{more}."
    return f"The check cost {dollars(usd(paid))}. Nothing was stored."


def _paid(rows: Sequence[Row]) -> tuple[int, list[Row]]:
    """Return the paid nanodollars, and the models with unknown cost."""
    real = [row for row in rows if not row.simulated]
    return sum(row.cost or 0 for row in real), [row for row in real if row.cost is None]


def check_as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the same as JSON with money in USD; null is unknown, never zero."""
    paid, unknown = _paid(rows)
    return {
        "models": [_as_json(row) for row in rows],
        "cost_usd": usd(paid),
        "cost_unknown": [row.checked.model.id for row in unknown],
    }


def _as_json(row: Row) -> dict[str, Any]:
    usage = Usage() if row.response is None else row.response.usage
    return {
        "model_id": row.checked.model.id,
        "kind": "reference" if row.simulated else "model",
        "ok": row.problem is None,
        "result": row.result,
        "problem": row.problem,
        "latency_ms": row.latency_ms,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": None if row.cost is None else usd(row.cost),
        "model_version": None if row.response is None else row.response.model_version,
    }


def show_check(config: BenchmarkConfig, open_client: OpenClient, *, as_json: bool) -> int:
    """Ask the models of a benchmark, and show a row each; returns the exit code."""
    clock = SystemClock()
    experiment = config.experiment(clock.now())
    _fit_into_budget(experiment)
    say(f"Asking {counted(len(config.manifest.called_models), 'model')} once ...")
    rows = rows_of(
        asyncio.run(
            check_models(
                experiment,
                open_client,
                load_settings(RunnerSettings),
                clock,
            )
        )
    )
    if as_json:
        click.echo(json.dumps(check_as_json(rows)))
    else:
        standard_output().print(check_table(rows))
    return 1 if any(row.problem is not None for row in rows) else 0


def _fit_into_budget(experiment: Experiment) -> None:
    """Raise InvalidInput if asking each model once might cost more than the whole budget."""
    budget, most = experiment.manifest.budget, most_a_check_costs(experiment)
    if budget is not None and most > nanodollars(budget):
        raise InvalidInput(
            f"the check may cost up to {dollars(usd(most))}, more than the budget of "
            f"{dollars(float(budget))}: raise `budget`, or lower `max_tokens`"
        )
