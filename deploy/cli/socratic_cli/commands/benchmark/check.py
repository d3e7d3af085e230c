"""`socratic-bench run --check`: ask each model once, and show the outcomes."""

from __future__ import annotations

import asyncio
import json

import click

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.money import nanodollars
from socratic_bench.errors import InvalidInput
from socratic_bench.planning.config_file.config import BenchmarkConfig
from socratic_bench.reporting.costs import usd
from socratic_bench.reporting.formats import dollars
from socratic_bench.service_settings import load_settings
from socratic_cli.display.terminal import counted, say, standard_output
from socratic_cli.tables.check import check_as_json, check_table, rows_of
from socratic_runner.checking import check_models, most_a_check_costs
from socratic_runner.model_pool import OpenClient
from socratic_runner.settings import RunnerSettings


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
