"""`socratic-bench run`: plan, run, score, aggregate, show; resumes if run again."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.run import RunFailure
from socratic_bench.planning.config import BenchmarkConfig, read_config
from socratic_bench.planning.estimate import estimate
from socratic_bench.reporting.comparison import ModelComparison, model_comparison
from socratic_bench.reporting.costs import SpendingFigures, dollars
from socratic_embedded.commands.leaderboard import show_comparison
from socratic_embedded.commands.store_option import (
    database_file,
    prepared_store,
    shown_address,
    store_option,
)
from socratic_embedded.estimate_table import estimate_as_json, estimate_table
from socratic_embedded.model_catalogue import RegisteredModels
from socratic_embedded.pipeline import Benchmark, BenchmarkResult
from socratic_embedded.progress_display import ProgressDisplay
from socratic_embedded.store_lock import store_lock
from socratic_embedded.terminal import excerpt, say, standard_output
from socratic_runner.models.registry import open_client

REASONS_SHOWN = 5
"""Different reasons for unhandled messages that are printed, the most frequent first."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--retry-failed", is_flag=True, help="Try runs that failed before once more.")
@click.option("--estimate", "only_estimate", is_flag=True, help="Show what it will take, and stop.")
def run(
    config: Path, store_url: str, as_json: bool, retry_failed: bool, only_estimate: bool
) -> None:
    """Run the benchmark in CONFIG and show the leaderboard.

    CONFIG is YAML or JSON. The same command run again goes on where it stopped: no stored
    response is asked for twice.

    With --estimate nothing is run and no key is needed: calls, tokens and cost are shown, likely
    and at most.

    Exit code 1 if it could not be finished, be it that the budget does not suffice, or a model has
    not a single score.
    """
    benchmark_config = read_config(config, RegisteredModels(runs_here=not only_estimate))
    for unused in benchmark_config.unused:
        say(f"Note: {unused}")
    if only_estimate:
        _show_estimate(benchmark_config, as_json=as_json)
        return
    outcome = execute(
        benchmark_config, store_url=store_url, as_json=as_json, retry_failed=retry_failed
    )
    if outcome:
        raise click.exceptions.Exit(outcome)


def _show_estimate(config: BenchmarkConfig, *, as_json: bool) -> None:
    expected = estimate(config.manifest)
    if as_json:
        click.echo(json.dumps(estimate_as_json(expected)))
    else:
        standard_output().print(estimate_table(expected))


def execute(
    config: BenchmarkConfig, *, store_url: str, as_json: bool = False, retry_failed: bool = False
) -> int:
    """Carry out a benchmark and show what came of it; returns the exit code."""
    with store_lock(database_file(store_url)):
        done = asyncio.run(_execute(config, store_url, retry_failed=retry_failed))
    if as_json:
        click.echo(json.dumps(_as_json(done)))
    elif not done.result.stopped:
        show_comparison(done.comparison, output="table", detail=False)
    return _report(done, store_url)


class _Done(NamedTuple):
    """What came of a benchmark."""

    result: BenchmarkResult
    comparison: ModelComparison
    failures: Sequence[RunFailure]
    spending: SpendingFigures


async def _execute(config: BenchmarkConfig, store_url: str, *, retry_failed: bool) -> _Done:
    clock = SystemClock()
    experiment = Experiment(
        manifest=config.manifest, occasion=config.occasion, created_at=clock.now()
    )
    async with prepared_store(store_url) as store:
        with ProgressDisplay(experiment, store) as display:
            benchmark = Benchmark(
                experiment=experiment,
                store=store,
                open_client=lambda model: open_client(model, base_folder=config.base_folder),
                clock=clock,
                on_progress=display.update,
                retry_failed=retry_failed,
                alone=database_file(store_url) is not None,  # whoever holds its lock is
            )
            with _stopped_by_interrupt(benchmark):
                result = await benchmark.execute()
        comparison = await model_comparison(store, experiment.experiment_id)
        failures = await store.failure_rows(experiment.experiment_id)
        spending = await store.spending(experiment.experiment_id)
        figures = SpendingFigures.of(spending, experiment.manifest)
        return _Done(result, comparison, failures, figures)


@contextmanager
def _stopped_by_interrupt(benchmark: Benchmark) -> Iterator[None]:
    """The first Ctrl-C finishes what is in flight and stores it; the second ends at once."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        say("Stopping: calls in flight are finished and stored (Ctrl-C: at once).")
        loop.remove_signal_handler(signal.SIGINT)
        benchmark.stop()

    try:
        loop.add_signal_handler(signal.SIGINT, stop)
        loop.add_signal_handler(signal.SIGTERM, benchmark.stop)
    except NotImplementedError:  # Windows: Ctrl-C interrupts at once there
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


def _as_json(done: _Done) -> dict[str, object]:
    result, comparison, _, spending = done
    return {
        "experiment_id": result.experiment.experiment_id,
        "manifest_id": result.experiment.manifest.manifest_id,
        "planned": result.progress.planned,
        "done": result.progress.done,
        "failed": result.progress.failed,
        "model_calls": result.calls,
        "stopped": result.stopped,
        "spending": spending.model_dump(mode="json"),
        "leaderboard": comparison.model_dump(mode="json"),
    }


def _report(done: _Done, store_url: str) -> int:
    """Say on standard error what a person should know; returns the exit code."""
    result, comparison, failures, spending = done
    progress = result.progress
    for model_id, sentence in _failure_sentences(failures, comparison).items():
        say(f"{model_id}: {sentence}")
    for (queue, reason), count in Counter(
        (letter.queue, letter.reason) for letter in result.dead_letters
    ).most_common(REASONS_SHOWN):
        say(f"{queue} could not handle {count} messages: {excerpt(reason, 200)}")
    unfinished = progress.planned - progress.done
    say(
        f"{progress.done} of {progress.planned} runs done, {progress.failed} of them failed; "
        f"{result.calls} model calls now. Results: {shown_address(store_url)}"
    )
    if unfinished and spending.exhausted:
        say(
            f"The budget of {dollars(spending.budget_usd or 0)} does not suffice: "
            f"{dollars(spending.spent_usd or 0)} of it are spent, {unfinished} runs are left. "
            "Raise `budget` in the configuration, and the same command goes on."
        )
    elif result.stopped or unfinished:
        left = f"{unfinished} runs are left" if unfinished else "Not every run was tried again"
        say(f"{left}: the same command goes on where this stopped.")
    unscored = [model.model_id for model in comparison.models if not model.scored_responses]
    return 1 if result.stopped or unfinished or unscored or result.dead_letters else 0


def _failure_sentences(
    failures: Sequence[RunFailure], comparison: ModelComparison
) -> dict[str, str]:
    """For each model with failures: how many of which kind, and the last message."""
    by_model: defaultdict[str, list[RunFailure]] = defaultdict(list)
    for failure in failures:
        by_model[failure.run.model_id].append(failure)
    planned = {model.model_id: model.planned_runs for model in comparison.models}
    sentences = {}
    for model_id, failed in sorted(by_model.items()):
        kinds = Counter(failure.kind for failure in failed)
        listed = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        sentences[model_id] = (
            f"{len(failed)} of {planned.get(model_id, 0)} runs failed ({listed}); the last: "
            f"{excerpt(failed[-1].message, 160)}. --retry-failed tries them again."
        )
    return sentences
