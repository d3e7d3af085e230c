"""`socratic-bench run`: plans, runs, scores, aggregates and shows; resumes if run again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.concurrency import event_loop
from socratic_bench.domain.experiment.state import stopped_sentence
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import FailureKind, StoreError
from socratic_bench.planning.config_file.changes import Changes
from socratic_bench.planning.config_file.config import BenchmarkConfig, read_config
from socratic_bench.planning.estimate import Prospect, look_into
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.ports.stores.aggregates import FailureCount
from socratic_bench.providers.endpoints import Endpoints
from socratic_bench.results.formats import dollars
from socratic_bench.results.leaderboard.leaderboard import ModelComparison
from socratic_bench.scoring.exchange import UNGRADED
from socratic_cli.benchmark_run import (
    Outcome,
    WaitNotice,
    client_opener,
    opened_benchmark,
    outcome_of,
    stopped_by_interrupt,
)
from socratic_cli.commands.check import show_check
from socratic_cli.commands.leaderboard import show_comparison
from socratic_cli.display.estimate import (
    estimate_as_json,
    estimate_table,
    prospect_sentence,
)
from socratic_cli.display.progress import ProgressDisplay
from socratic_cli.display.terminal import counted, excerpt, how_far, say, standard_output
from socratic_cli.key_approval import access_check, own_endpoints, with_approved_keys, wrong_keys
from socratic_cli.options.configuration import changes_options, fresh_option
from socratic_cli.options.store import (
    database_file,
    prepared_store,
    shown_address,
    store_option,
)
from socratic_runner.conversations.call_outcomes import PASSING, UNOBSERVED
from socratic_runner.troubles import Troubles

_FROM_ENVIRONMENT = ParameterSource.ENVIRONMENT

LONGEST_REASON = 500
"""The most characters of a failure's message, whose end says what to do."""

REASONS_SHOWN = 5
"""The most reasons for unhandled messages in the report, the most frequent first."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--retry-failed", is_flag=True, help="Try failed runs once more.")
@fresh_option
@click.option(
    "--again",
    is_flag=True,
    help="Ask every question again, for a tutor whose code changed: an occasion named by the time.",
)
@changes_options
@click.option(
    "--estimate", "only_estimate", is_flag=True, help="Show calls, tokens and cost, and stop."
)
@click.option("--check", "only_check", is_flag=True, help="Ask each model once, and stop.")
def run(
    config: Path,
    *,
    store_url: str,
    as_json: bool,
    retry_failed: bool,
    fresh: bool,
    again: bool,
    changes: Changes,
    only_estimate: bool,
    only_check: bool,
) -> None:
    """Run the benchmark in CONFIG and show the leaderboard.

    CONFIG is YAML or JSON. The same command continues an interrupted benchmark: it asks for no
    stored response twice. It also reuses the answers that another experiment in the store got to
    the same questions within 30 days. On another --occasion it asks every question again.

    --estimate makes no call and needs no key: it shows the calls, tokens and cost of the remaining
    runs, likely and at most. --check asks each model the first scenario once and stores nothing: it
    shows the outcome, latency, tokens and cost. Its exit code is 1 if a model gives no answer that
    can be scored.

    Exit code 1 if the benchmark is unfinished, for example for lack of budget, or if a model has no
    score at all.
    """
    if only_check and only_estimate:
        raise click.UsageError("--estimate makes no call, --check does: take one of them")
    models = RegisteredModels(None if only_estimate else access_check(own_endpoints()))
    if again:
        changes = _on_a_new_occasion(changes)
    benchmark_config = read_config(config, models, changes)
    for unused in benchmark_config.unused:
        say(f"Note: {unused}")
    if only_estimate:
        for sentence in wrong_keys(benchmark_config):
            say(f"Note: {sentence}")
        _show_estimate(benchmark_config, store_url, as_json=as_json, fresh=fresh)
        return
    if only_check:
        endpoints = with_approved_keys(own_endpoints(), benchmark_config)
        opened = client_opener(benchmark_config, endpoints)
        outcome = show_check(benchmark_config, opened, as_json=as_json)
    else:
        if click.get_current_context().get_parameter_source("store_url") is _FROM_ENVIRONMENT:
            say(f"Results go to {shown_address(store_url)}, which SOCRATIC_STORE_URL names.")
        outcome = execute(
            benchmark_config,
            store_url=store_url,
            as_json=as_json,
            retry_failed=retry_failed,
            fresh=fresh,
        )
    if outcome:
        raise click.exceptions.Exit(outcome)


def _on_a_new_occasion(changes: Changes) -> Changes:
    if "occasion" in changes.fields:
        raise click.UsageError("--again makes an occasion, --occasion names one: take one of them")
    occasion = f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"
    say(f"A new execution: --occasion {occasion} continues it.")
    return replace(changes, fields={**changes.fields, "occasion": occasion})


def _show_estimate(config: BenchmarkConfig, store_url: str, *, as_json: bool, fresh: bool) -> None:
    prospect = asyncio.run(_prospect(config, store_url, fresh=fresh))
    if as_json:
        click.echo(json.dumps(estimate_as_json(prospect)))
        return
    outlook = prospect.outlook
    if outlook.new < outlook.planned or outlook.first < outlook.new:
        click.echo(prospect_sentence(prospect))
    standard_output().print(estimate_table(prospect.estimate))


async def _prospect(config: BenchmarkConfig, store_url: str, *, fresh: bool) -> Prospect:
    """Return the remaining work, or all of it without a store."""
    file = database_file(store_url)
    experiment = config.experiment(SystemClock().now())
    if file is not None and not file.exists():
        return Prospect.from_nothing(experiment)
    try:
        async with prepared_store(store_url) as store:
            return await look_into(store, experiment, fresh=fresh, adopt=False)
    except StoreError as error:
        say(f"Note: this counts every run, since the store cannot be read: {error}")
        return Prospect.from_nothing(experiment)


def execute(
    config: BenchmarkConfig,
    *,
    store_url: str,
    as_json: bool = False,
    retry_failed: bool = False,
    fresh: bool = False,
) -> int:
    """Carry out a benchmark and show its results; returns the exit code.

    Raises UnlistedEndpoint for a key that would go to an address without approval.
    """
    endpoints = with_approved_keys(own_endpoints(), config)
    done = event_loop.run(
        _execute(config, endpoints, store_url, retry_failed=retry_failed, fresh=fresh)
    )
    if as_json:
        click.echo(json.dumps(_as_json(done)))
    elif not done.result.stopped:
        show_comparison(done.comparison, done.reasons, output="table", detail=False)
    return _report(done, store_url)


async def _execute(
    config: BenchmarkConfig,
    endpoints: Endpoints,
    store_url: str,
    *,
    retry_failed: bool,
    fresh: bool,
) -> Outcome:
    async def present() -> Sequence[Trouble]:
        return troubles.present()

    async with opened_benchmark(
        config, endpoints, store_url, retry_failed=retry_failed, fresh=fresh
    ) as (benchmark, prospect):
        say(prospect_sentence(prospect))
        display = ProgressDisplay(benchmark.experiment, benchmark.store, present)
        troubles, notice = Troubles(UNOBSERVED, display.tell), WaitNotice()
        benchmark.on_progress, benchmark.on_wait = display.update, notice.update
        benchmark.troubles = troubles
        with display, stopped_by_interrupt(benchmark, notice):
            result = await benchmark.execute()
        return await outcome_of(benchmark, prospect, result, config.weighted_profile)


def _as_json(done: Outcome) -> dict[str, object]:
    result, prospect = done.result, done.prospect
    comparison, spending = done.comparison, done.spending
    return {
        "experiment_id": result.experiment.experiment_id,
        "manifest_id": result.experiment.manifest.manifest_id,
        "planned": result.progress.planned,
        "done": result.progress.done,
        "failed": result.progress.failed,
        "reused": prospect.outlook.reused,
        "model_calls": result.calls,
        "stopped": result.stopped,
        "spending": spending.model_dump(mode="json"),
        "leaderboard": comparison.model_dump(mode="json"),
    }


def _report(done: Outcome, store_url: str) -> int:
    """Report problems on standard error; returns the exit code."""
    result, comparison, spending = done.result, done.comparison, done.spending
    progress = result.progress
    for model_id, sentence in _failure_sentences(done.failures, comparison).items():
        say(f"{model_id}: {sentence}")
    for (queue, reason), count in Counter(
        (letter.queue, letter.reason) for letter in result.dead_letters
    ).most_common(REASONS_SHOWN):
        say(f"{queue} could not handle {count} messages: {excerpt(reason, 200)}")
    grader = result.experiment.manifest.use_llm_exploratory
    ungraded = sum(model.statuses.get(UNGRADED, 0) for model in comparison.models)
    if grader is not None and ungraded:
        say(
            f"{grader.model.id} gave no grade for {counted(ungraded, 'response')}: without a grade "
            "there is no score, and this experiment grades no response twice."
        )
    unfinished = progress.planned - progress.done
    say(
        f"{how_far(progress)}, {counted(result.calls, 'call')} made"
        f"{f', {spending.told}' if spending.is_known else ''}. "
        f"Results: {shown_address(store_url)}"
    )
    if unfinished and not result.state.calls_may_begin:
        sentence = stopped_sentence(result.experiment.experiment_id, result.state)
        say(f"{_are_left(unfinished)}: {sentence}. Then the same command continues.")
    elif unfinished and spending.exhausted:
        say(
            f"The budget of {dollars(spending.budget_usd or 0)} is too small for the next call: "
            f"{spending.told}. {_are_left(unfinished)}. "
            "Raise `budget` in the configuration, and the same command continues."
        )
    elif result.stopped or unfinished:
        left = _are_left(unfinished) if unfinished else "Some failed runs were not retried"
        say(f"{left}: the same command continues from here.")
    unscored = [model.model_id for model in comparison.models if not model.scored_responses]
    return 1 if result.stopped or unfinished or unscored or result.dead_letters else 0


def _are_left(runs: int) -> str:
    return f"{counted(runs, 'run')} {'is' if runs == 1 else 'are'} left"


def _failure_sentences(
    failures: Sequence[FailureCount], comparison: ModelComparison
) -> dict[str, str]:
    """Return a sentence for each model with failures: their counts by kind, and one message."""
    by_model: defaultdict[str, list[FailureCount]] = defaultdict(list)
    for failure in failures:
        by_model[failure.model_id].append(failure)
    planned = {model.model_id: model.planned_runs for model in comparison.models}
    sentences = {}
    for model_id, kinds in sorted(by_model.items()):
        listed = ", ".join(f"{each.kind} {each.runs}" for each in kinds)
        sentences[model_id] = (
            f"{sum(each.runs for each in kinds)} of {planned.get(model_id, 0)} runs failed "
            f"({listed}), for example: {_ended(excerpt(kinds[0].message, LONGEST_REASON))}"
            f"{_advice({FailureKind(each.kind) for each in kinds})}"
        )
    return sentences


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."


def _advice(kinds: AbstractSet[FailureKind]) -> str:
    """Return the advice to try again, where that helps: at once, or after a change of the world.

    Another option makes another plan, and its runs are new.
    """
    if kinds & PASSING:
        return " --retry-failed tries them again."
    if kinds & {FailureKind.AUTH, FailureKind.TLS, FailureKind.NOT_FOUND}:
        return " Once that is mended, --retry-failed tries them again."
    return ""
