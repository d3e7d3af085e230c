"""`socratic-bench import`: takes the answers that another tool kept into the store, and scores
them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import InvalidInput
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.rescoring import RescoreStore, Rescoring
from socratic_bench.results.experiment_status import why_unscored
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.profiles import needs_grade, profile_named
from socratic_cli.commands.leaderboard import show_comparison
from socratic_cli.commands.rescore import GOES_ON, SOURCE, end_of_work, scored
from socratic_cli.display.terminal import counted, say
from socratic_cli.imported_answers import store_answers
from socratic_cli.importing import FilePlan, planned
from socratic_cli.options.store import prepared_store, store_option
from socratic_cli.reading.logged_runs import MOST_TURNS_KEPT
from socratic_cli.reading.logs import Log, opened_log, opened_records
from socratic_cli.scoring_workers import scoring_broker

MOST_UNREAD_TOLD: Final = 20
"""The most unreadable parts of a file that are told one by one."""


@click.command("import")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
)
@store_option
@click.option("--name", help="The experiment's name.  [default: that of the file]")
@click.option(
    "--profile", default=CANONICAL, show_default=True, help="The profile that scores the answers."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was imported as JSON.")
def import_(
    files: tuple[Path, ...], store_url: str, name: str | None, profile: str, *, as_json: bool
) -> None:
    """Import answers that another tool kept, and score them.

    Calls no model. FILE may be a log of Inspect AI (.eval, .json), results of promptfoo (JSON,
    JSONL), samples of lm-evaluation-harness, the logs.db of llm, observations of Langfuse, answers
    for AlpacaEval, chats or batch results in OpenAI's format, a chat export, a tutoring set, or a
    file that `score` reads. Each file is an experiment of its own, whose tutors are called
    imported/TOOL/MODEL. The same file again adds nothing.

    An error of the other tool is a failed run, never a score. Exit code 1 if a part of a file
    cannot be read; the rest is imported.
    """
    profile_named(profile)
    if needs_grade(profile):
        raise InvalidInput(f"profile {profile} needs a model's grades, and import calls no model")
    logs = [opened_log(path) or opened_records(path) for path in files]
    told = False
    for log in logs:
        plan = planned(log, name=name, profile=profile, now=SystemClock().now())
        try:
            asyncio.run(_import(log, plan, store_url, as_json=as_json))
        except KeyboardInterrupt:
            say(GOES_ON)
            raise
        told = told or bool(plan.unread)
    if told:
        raise click.exceptions.Exit(1)


async def _import(log: Log, plan: FilePlan, store_url: str, *, as_json: bool) -> None:
    _tell(plan)
    async with prepared_store(store_url) as store:
        known = await store.experiments([each.experiment_id for each in plan.experiments])
        complete = {each.experiment_id for each in known if each.completed_at is not None}
        if len(complete) == len(plan.experiments):
            say(f"{', '.join(sorted(complete))} has them already: nothing was added.")
        else:
            for experiment in plan.experiments:
                await store.register(experiment)
            await store_answers(log, plan, store, SystemClock().now())
            async with scoring_broker(store, SystemClock()) as broker:
                for experiment in plan.experiments:
                    await _score(store, broker, experiment)
        if as_json:
            click.echo(json.dumps(_as_json(plan)))
            return
        for experiment in plan.experiments:
            comparison = await model_comparison(store, experiment.experiment_id)
            reasons = await why_unscored(store, comparison)
            show_comparison(comparison, reasons, output="table", detail=False)


async def _score(store: RescoreStore, broker: MemoryBroker, experiment: Experiment) -> None:
    """Have the stored answers scored and the experiment marked as complete."""

    async def publish(events: Sequence[Event]) -> None:
        await broker.publish([to_message(event) for event in events])

    clock, profile = SystemClock(), experiment.manifest.profile
    rescoring = Rescoring(experiment, profile, store, publish, clock, SOURCE)
    await rescoring.request()
    if (problem := await scored(rescoring, lambda: end_of_work(broker))) is not None:
        say(problem)
        raise click.exceptions.Exit(1)
    await store.mark_planned(experiment.experiment_id, clock.now())
    await store.complete(experiment.experiment_id, clock.now())


def _tell(plan: FilePlan) -> None:
    """Report what the file has, and what of it is missing."""
    kinds = ", ".join(f"{count:,} {status}" for status, count in sorted(plan.statuses.items()))
    unscored = f"; not scored: {kinds}" if kinds else ""
    failed = f"; {counted(plan.failed, 'run')} failed there" if plan.failed else ""
    say(
        f"{plan.source}: {counted(plan.runs, 'run')} with {counted(plan.answers, 'answer')}"
        f"{failed}{unscored}."
    )
    if plan.facts.planned is not None and plan.facts.planned > plan.runs:
        say(f"Note: the log plans {plan.facts.planned:,} runs and has {plan.runs:,}.")
    for remark in plan.facts.remarks:
        say(f"Note: {remark}.")
    for place in plan.cut:
        say(f"Note: {place} is cut: the import keeps the first {MOST_TURNS_KEPT} answers of each.")
    for part in plan.unread[:MOST_UNREAD_TOLD]:
        say(f"Error: {part.place}: {part.problem}")
    if len(plan.unread) > MOST_UNREAD_TOLD:
        say(f"Error: {len(plan.unread) - MOST_UNREAD_TOLD:,} more parts cannot be read.")


def _as_json(plan: FilePlan) -> dict[str, object]:
    return {
        "file": str(plan.path),
        "tool": plan.facts.tool,
        "version": plan.facts.version,
        "experiment_ids": [each.experiment_id for each in plan.experiments],
        "runs": plan.runs,
        "answers": plan.answers,
        "planned": plan.facts.planned,
        "failed": plan.failed,
        "unscored": dict(plan.statuses),
        "unread": [{"place": each.place, "problem": each.problem} for each in plan.unread],
    }
