"""Reuse: an experiment adopts conversations that an earlier one paid for.

docs/design/reuse-and-control.md has the conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run, batches
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.responses import NO_LEASE, Responses
from socratic_bench.scoring.exchange import Status

MAX_AGE: Final = timedelta(days=30)
"""The greatest age of an adopted answer."""

MOST_SOURCES: Final = 10
"""The number of earlier experiments that a search covers, the newest first."""

BATCH: Final = 100
"""Runs whose answers are in memory at a time: answers of long conversations are large."""


class ReuseStore(Experiments, Responses, Aggregates, Protocol):
    """The roles of the store that conversations are found in and taken over into."""


@dataclass(slots=True)
class Outlook:
    """The work that an experiment still needs, given the stored rows."""

    planned: int
    done: int = 0
    """Runs that are done."""

    answered: int = 0
    """Runs with all answers stored, which wait for their scores."""

    reused: int = 0
    """Runs whose answers come from other experiments."""

    reused_nanodollars: int = 0
    """The known cost of those answers."""

    unscored_responses: int = 0
    """Responses of the answered and the reused runs."""

    left: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of runs to ask, by model and scenario."""

    first: int = 0
    """Runs to ask before the next look at the intervals; all where nothing may stop repeats."""

    @property
    def new(self) -> int:
        """Runs to ask."""
        return self.left.total()


async def look_ahead(
    experiment: Experiment,
    store: ReuseStore,
    *,
    reuse: Reuse | None,
    adopt: bool,
    retry_failed: bool = False,
) -> Outlook:
    """Return the outlook of an experiment; with `adopt`, store the copies that `reuse` finds.

    With `stop_when` it adopts only for the repeats that have begun. `retry_failed` counts failed
    runs among those to ask. Without `reuse` the experiment adopts nothing. An interrupted adoption
    is repeated from the start. Raises StoreError.
    """
    stored_one = await store.experiment(experiment.experiment_id)
    is_new, ended = stored_one is None, 0
    if stored_one is not None and experiment.manifest.stop_when is not None:
        ended = (await store.progress(experiment.experiment_id)).done
        experiment = experiment.up_to(stored_one.manifest.due_repeats)
    begun = experiment.manifest.begun_repeats(ended)
    outlook = Outlook(experiment.manifest.planned_runs)
    for batch in batches(experiment.runs(), BATCH):
        ids = [run.run_id for run in batch]
        done = set() if is_new else await store.done_runs(experiment.experiment_id, ids)
        if retry_failed:
            done -= await store.failed_runs(experiment.experiment_id, ids)
        due = [run for run in batch if run.run_id not in done]
        stored = {} if is_new else await store.responses([run.run_id for run in due])
        untouched = [run for run in due if run.run_id not in stored]
        copies = {} if reuse is None else await reuse.copies(untouched)
        if adopt:
            begun_ones = [run.run_id for run in batch if run.repeat <= begun]
            adopted = [each for run_id in begun_ones for each in copies.get(run_id, ())]
            await store.record(adopted, [NO_LEASE] * len(adopted))
        outlook.done += len(done)
        outlook.reused += len(copies)
        outlook.reused_nanodollars += sum(map(_cost, copies.values()))
        outlook.unscored_responses += sum(map(len, copies.values()))
        for run in due:
            if is_whole(responses := stored.get(run.run_id, ())):
                outlook.answered += 1
                outlook.unscored_responses += len(responses)
            elif run.run_id not in copies:
                outlook.left[run.model_id, run.scenario_id] += 1
                outlook.first += run.repeat <= begun
    return outlook


class Reuse:
    """Finds conversations of an experiment among the answers of other experiments."""

    def __init__(self, experiment: Experiment, store: ReuseStore, now: datetime) -> None:
        """Takes answers that are at most MAX_AGE old at `now`."""
        self._experiment = experiment
        self._store = store
        self._oldest = now - MAX_AGE
        self._asked_in: dict[str, Sequence[str]] = {}

    async def copies(self, runs: Sequence[Run]) -> dict[str, list[Response]]:
        """Return copies of whole conversations, by the ids of these runs; some may have none."""
        sources = await self._sources(runs)
        copies: dict[str, list[Response]] = {}
        for rank in range(MOST_SOURCES):
            wanted = {
                run_id(sources[run.run_id][rank], run.model_id, run.scenario_id, run.repeat): run
                for run in runs
                if run.run_id not in copies and rank < len(sources[run.run_id])
            }
            if not wanted:
                break
            for source, responses in (await self._store.responses(wanted)).items():
                if self._may_be_copied(responses):
                    run = wanted[source]
                    copies[run.run_id] = [self._copy(each, run) for each in responses]
        return copies

    def _may_be_copied(self, responses: Sequence[Response]) -> bool:
        """Whether these are all answers of a run, without errors, and recent enough."""
        if not is_whole(responses) or responses[-1].recorded_at < self._oldest:
            return False
        return all(each.status is not Status.ERROR for each in responses)

    async def _sources(self, runs: Sequence[Run]) -> Mapping[str, Sequence[str]]:
        """Return the other experiments with the conversation of each run."""
        keys = {run.run_id: self._key(run) for run in runs}
        if unknown := set(keys.values()) - self._asked_in.keys():
            found = await self._store.asked_in(unknown, MOST_SOURCES + 1)
            own = self._experiment.experiment_id
            self._asked_in |= {
                key: [each for each in found.get(key, ()) if each != own] for key in unknown
            }
        return {id_: self._asked_in[key] for id_, key in keys.items()}

    def _key(self, run: Run) -> str:
        return self._experiment.conversation_keys[run.model_id, run.scenario_id]

    def _copy(self, response: Response, run: Run) -> Response:
        manifest = self._experiment.manifest
        return response.model_copy(
            update={
                "run": run,
                "profile": manifest.profile,
                "answer_key": manifest.scenarios_by_id[run.scenario_id].key,
                "adopted_from": response.adopted_from or response.run.run_id,
            }
        )


def is_whole(responses: Sequence[Response]) -> bool:
    """Whether these responses, in the order of their turns, make a whole run."""
    turns = [each.turn for each in responses]
    return bool(turns) and responses[-1].last_turn and turns == list(range(1, len(turns) + 1))


def _cost(responses: Collection[Response]) -> int:
    return sum(each.cost_nanodollars or 0 for each in responses)
