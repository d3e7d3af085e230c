"""Rescoring: the stored responses of an experiment are published again, for another profile.

The judge reads the profile of each event, and the curator folds scores by their profile: a
rescoring takes the way of every score, calls no model, and leaves other scores as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final, Protocol

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run, batches
from socratic_bench.errors import InvalidInput
from socratic_bench.events.codec import Event
from socratic_bench.events.event_types import ResponseRecorded, RunFailed
from socratic_bench.planning.plan import ANSWERS_HELD, Publish, StorePatience
from socratic_bench.planning.reuse import is_whole
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.scoring.profiles import needs_grade
from socratic_bench.scoring.weighted_profile import is_weighted, stored_profile

BATCH: Final = 500
"""Runs that are looked up at once."""


class RescoreStore(Experiments, Responses, Aggregates, Protocol):
    """The roles of the store that tell which stored responses lack a score under a profile."""


@dataclass(frozen=True, slots=True)
class RescoreCounts:
    """What one rescoring published."""

    runs: int = 0
    """Runs with something to score."""

    responses: int = 0
    failures: int = 0
    """Failed runs, which count in the coverage under every profile."""

    already_scored: int = 0
    """Runs that were done under the profile before."""

    def __add__(self, other: RescoreCounts) -> RescoreCounts:
        return RescoreCounts(
            self.runs + other.runs,
            self.responses + other.responses,
            self.failures + other.failures,
            self.already_scored + other.already_scored,
        )


@dataclass(frozen=True, slots=True)
class Rescoring:
    """Has the judge score the stored responses of an experiment under another profile.

    Events and scores are named after run, turn and profile: published any number of times, each
    counts once. A repetition publishes only what still lacks its score.
    """

    experiment: Experiment
    profile: str
    store: RescoreStore
    publish: Publish
    clock: Clock
    source: str
    patience: StorePatience = field(default_factory=StorePatience)

    def __post_init__(self) -> None:
        """Raise InvalidInput for a profile that needs grades, which no rescoring makes, and for one
        with other weights, which has no scores of its own.

        Raises UnknownProfile and BrokenPlugin too.
        """
        if is_weighted(self.profile):
            raise InvalidInput(
                f"profile {self.profile} reads the scores of {stored_profile(self.profile)}: "
                "rescore by that one, and name the weights where results are read"
            )
        if needs_grade(self.profile):
            raise InvalidInput(
                f"profile {self.profile} needs a model's grades, and rescoring calls no model: run "
                "a configuration with use_llm_exploratory, which reuses the stored responses"
            )

    async def request(self, start: int = 0, runs: int | None = None) -> RescoreCounts:
        """Publish what lacks a score of `runs` runs of the plan from its run `start` on, or of all.

        Memory holds one batch of runs at a time; `publish` sets the pace. While the store is
        unavailable, `patience` asks it again; then it raises StoreUnavailable. Errors of `publish`
        pass through.
        """
        counts = RescoreCounts()
        stop = None if runs is None else start + runs
        for batch in batches(islice(self.experiment.runs(), start, stop), BATCH):
            # A broker with room does not wait: between two batches everybody else has a turn.
            await asyncio.sleep(0)
            counts += await self._request(batch)
        return counts

    async def unscored(self, runs: Iterable[Run]) -> list[Run]:
        """Return those of these runs that ended under the experiment's profile, but not this one.

        A run that has not ended yet is left out: nobody knows whether more of it comes.
        """
        ids = [run.run_id for run in runs]
        ended = await self._done(ids, None)
        done = await self._done([id_ for id_ in ids if id_ in ended], self.profile)
        return [run for run in runs if run.run_id in ended - done]

    async def _done(self, run_ids: Sequence[str], profile: str | None) -> set[str]:
        experiment_id = self.experiment.experiment_id
        return await self.patience.ask(
            partial(self.store.done_runs, experiment_id, run_ids, profile)
        )

    async def _request(self, runs: Sequence[Run]) -> RescoreCounts:
        done = await self._done([run.run_id for run in runs], self.profile)
        counts = RescoreCounts(already_scored=len(done))
        for some in batches((run for run in runs if run.run_id not in done), ANSWERS_HELD):
            events = await self._events(some)
            if events:
                await self.publish(events)
            of_runs = {event.subject for event in events}
            responses = sum(isinstance(event, ResponseRecorded) for event in events)
            counts += RescoreCounts(len(of_runs), responses, len(events) - responses)
        return counts

    async def _events(self, runs: Sequence[Run]) -> list[Event]:
        """Return what is stored of these runs as events for this profile."""
        ids = [run.run_id for run in runs]
        stored = await self.patience.ask(partial(self.store.responses, ids))
        events: list[Event] = [
            ResponseRecorded.of(
                each.model_copy(update={"profile": self.profile}), source=self.source
            )
            for responses in stored.values()
            for each in responses
        ]
        cut_short = [id_ for id_ in ids if not is_whole(stored.get(id_, ()))]
        recorded = await self.patience.ask(partial(self.store.recorded_failures, cut_short))
        now = self.clock.now()
        events += [
            RunFailed.of(
                each.failure.model_copy(update={"profile": self.profile}),
                source=self.source,
                time=now,
            )
            for each in recorded.values()
        ]
        return events
