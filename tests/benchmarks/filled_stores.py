"""A store of a thousand runs and one of a million, and the API over each.

The big one has one large experiment, and many small ones before it. A model answers a scenario in
one of eight ways, and one run in a hundred fails. All is written through the store's roles, a
million runs in some minutes.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from multiprocessing.connection import Connection
from random import Random
from typing import Final
from unittest import mock

from starlette.applications import Starlette

from socratic_api.answers import ready_bytes
from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.hosting.http.server import serving
from socratic_bench.hosting.process import quiet_garbage_collector, stop_signals
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure
from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL
from socratic_judge.handlers import judge
from tests.servers import postgresql

PENDING: Final = 20
"""The last runs of the first experiment, which are not done."""

POSTGRESQL: Final = "postgresql"
REST_AFTER: Final = 2
"""The API serves an answer for twice as long as it took to make."""

_VARIANTS: Final = 8
_RUNS_AT_ONCE: Final = 2_000
_SMALL_REPEATS: Final = 5
_NEWEST: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
_ASKING: Final = "What might have changed in the weeks before? Perhaps it depends on your readers. "
_TELLING: Final = "You should always write the plan first. The answer is to ask ten customers. "
_CHANGE: Final = """
INSERT INTO changes VALUES (0, 1) ON CONFLICT (shard) DO UPDATE SET changes = changes.changes + 1
"""

Answers = Mapping[tuple[str, str], Sequence[tuple[Response, ScoredResponse]]]
"""The answers of each model to each scenario, and their scores."""

Build = Callable[[Store], Awaitable[Starlette]]
"""Makes an app over a store; a function of a module, since another process calls it."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a store."""

    runs: int
    experiments: int
    models: int = 25

    def __str__(self) -> str:
        return f"{self.runs:,} runs, {self.experiments} experiments"


SMALL: Final = Size(1_125, 1)
"""One experiment of 25 models, 15 scenarios and 3 repeats."""

BIG: Final = Size(1_000_000, 200)


def experiments_of(size: Size) -> list[Experiment]:
    """Return the experiments of a store, newest first: the first has most of the runs.

    The others have five repeats each, or fewer, and share a tenth to a third of the runs.
    """
    scenarios = tuple(load_pack())
    a_repeat = size.models * len(scenarios)
    others = size.experiments - 1
    repeats = min(_SMALL_REPEATS, max(1, size.runs // (2 * a_repeat * max(1, others))))
    left = size.runs - others * repeats * a_repeat
    first = _experiment(size, scenarios, math.ceil(left / a_repeat), 0)
    return [first, *(_experiment(size, scenarios, repeats, week) for week in range(1, others + 1))]


def _experiment(
    size: Size, scenarios: tuple[Scenario, ...], repeats: int, weeks: int
) -> Experiment:
    at = _NEWEST - timedelta(weeks=weeks)
    week = at.isocalendar()
    return Experiment(
        manifest=Manifest(
            models=tuple(map(_model, range(size.models))), scenarios=scenarios, repeats=repeats
        ),
        occasion=f"{week.year}-W{week.week:02}",
        created_at=at,
    )


def _model(number: int) -> TutorModel:
    return TutorModel(
        id=f"provider-{number % 7}/tutor-{number}",
        name=f"Tutor {number}",
        price=Price(input_per_million=Decimal(1), output_per_million=Decimal(number + 1)),
    )


async def fill(store: Store, experiments: Sequence[Experiment]) -> None:
    """Register experiments, and carry out their runs, but for the last ones of the first."""
    answers = _answers(experiments[0])
    for place, experiment in enumerate(experiments):
        await store.register(experiment)
        left = 0 if place else PENDING
        remaining = islice(experiment.runs(), experiment.manifest.planned_runs - left)
        while runs := list(islice(remaining, _RUNS_AT_ONCE)):
            await _carry_out(store, runs, answers)
        if place:
            at = experiment.created_at + timedelta(hours=1)
            await store.complete(experiment.experiment_id, at)


async def _carry_out(store: Store, runs: Sequence[Run], answers: Answers) -> None:
    responses, scores, failures = [], [], []
    for run in runs:
        digits = int(run.run_id[-4:], 16)
        if digits % 100 == 0:
            failures.append(_failure(run))
            continue
        response, score = answers[run.model_id, run.scenario_id][digits % _VARIANTS]
        responses.append(response.model_copy(update={"run": run}))
        scores.append(score.model_copy(update={"run": run}))
    await store.record(responses, [NO_LEASE] * len(responses))
    await store.record_failures([RecordedFailure(failure, 0) for failure in failures])
    await store.fold(scores, failures)


def _answers(experiment: Experiment) -> Answers:
    """The answers to the runs of an experiment, and of others with its models and scenarios."""
    return {
        (model.id, scenario.id): [
            (response, judge(response))
            for number in range(_VARIANTS)
            for response in [_response(experiment, model, scenario, number)]
        ]
        for model in experiment.manifest.models
        for scenario in experiment.manifest.scenarios
    }


def _response(
    experiment: Experiment, model: TutorModel, scenario: Scenario, number: int
) -> Response:
    chance = Random(f"{model.id} {scenario.id} {number}")
    skill = Random(model.id).uniform(0.1, 0.9)
    sentences = [_ASKING if chance.random() < skill else _TELLING for _ in range(7)]
    text = "".join(sentences) + ("What do you think?" if chance.random() < skill else "Do that.")
    tokens = len(text) // 4
    price = model.price
    return Response(
        run=experiment.run(model.id, scenario, 1),
        turn=1,
        last_turn=True,
        profile=experiment.manifest.profile,
        student_message=scenario.prompt,
        text=text,
        status=Status.OK,
        usage=Usage(visible_output_tokens=tokens, input_tokens=120),
        latency_ms=round(chance.uniform(300, 1800)),
        cost_nanodollars=None if price is None else price.cost_nanodollars(120, tokens),
        stop_reason="end_turn",
        model_version="tutor-2026-01",
        recorded_at=_NEWEST,
    )


def _failure(run: Run) -> RunFailure:
    return RunFailure(
        run=run,
        turn=1,
        profile=CANONICAL,
        kind="rate_limited",
        message="429: slow down",
        attempts=5,
    )


@dataclass(frozen=True, slots=True)
class FilledStore:
    """A store of a known size, and the address of the API over it."""

    url: str
    size: Size
    experiments: tuple[Experiment, ...]
    """Newest first."""

    address: str

    async def change(self) -> None:
        """Give the store another revision, so that the API makes its next answers anew."""
        if not self.url.startswith("sqlite"):
            await postgresql.execute(self.url, _CHANGE)
            return
        path = self.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
            connection.execute(_CHANGE)


@asynccontextmanager
async def filled_stores(
    place: str, sizes: Sequence[Size] = (SMALL, BIG)
) -> AsyncIterator[list[FilledStore]]:
    """Fill a store of each size, unless it is filled, and serve the API over it.

    `place` is a folder for the stores of SQLite, or the word postgresql.
    """
    async with AsyncExitStack() as stack:
        stores = []
        for size in sizes:
            experiments = tuple(experiments_of(size))
            if place == POSTGRESQL:
                url = await stack.enter_async_context(postgresql.new_database())
            else:
                url = f"sqlite:///{place}/{size.runs}-runs.db"
            store = SqlStore.from_url(url)
            await store.prepare()
            if not await store.progress_of([experiments[-1].experiment_id]):
                await fill(store, experiments)
            await store.close()
            if place == POSTGRESQL:
                await postgresql.execute(url, "VACUUM (ANALYZE)")
            address = await stack.enter_async_context(served(url, build_api))
            stores.append(FilledStore(url, size, experiments, address))
        yield stores


async def build_api(store: Store) -> Starlette:
    """The API, which looks for a change of its store at each request."""
    return build_app(store, ApiSettings(freshness_ms=0))


@asynccontextmanager
async def served(url: str, build: Build) -> AsyncIterator[str]:
    """Serve an app over a store in a process of its own; yields its address."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(url, build, sending), daemon=True)
    process.start()
    sending.close()  # a process that dies before it serves ends the wait below
    try:
        yield await asyncio.to_thread(receiving.recv)
    finally:
        process.terminate()
        process.join(10)


def _serve(url: str, build: Build, ready: Connection) -> None:
    # An answer is waited for until it is made: a reader in haste would get the one before.
    with quiet_garbage_collector(), mock.patch.object(ready_bytes, "_STALE_AFTER", 60.0):
        asyncio.run(_serve_until_stopped(url, build, ready))


async def _serve_until_stopped(url: str, build: Build, ready: Connection) -> None:
    store = SqlStore.from_url(url)
    await store.prepare()
    app = await build(store)
    with stop_signals() as stop:
        async with serving(app, "127.0.0.1", 0, shutdown_timeout=1) as address:
            ready.send(address)
            await stop.wait()
    await store.close()
