"""The store in memory is the specification: after any history every store gives its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.pause import PauseNews, PushBack
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.leases import CallEnd, Lease, ModelInHand
from socratic_bench.ports.stores.limits import ShareClaim
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure
from socratic_bench.ports.stores.store import Store
from tests.contract.store.adapters import Database, StoreAdapter
from tests.contract.store.facts import (
    MONDAY,
    StoppedClock,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    claim_of,
)

Step: TypeAlias = tuple[Any, ...]
"""The name of an operation, and what it is given."""

RUNS = 4

_RUN = st.integers(0, RUNS - 1)
_TURN = st.integers(1, 2)
_OWNER = st.sampled_from("abc")
_MONEY = st.integers(0, 6)
_CLAIM = st.integers(0, 12)
_CLAIMS = st.lists(_CLAIM, max_size=3)
_WANTED = st.lists(st.tuples(_RUN, _MONEY, st.integers(1, 60)), max_size=RUNS + 1)
_FACTS = st.lists(st.tuples(_RUN, _TURN), max_size=3)
_STATES = st.sampled_from(sorted(set(ExperimentState) - {ExperimentState.DELETED}))

_LEASING = st.one_of(
    st.tuples(st.just("take"), _OWNER, st.booleans(), _WANTED),
    st.tuples(st.just("take again"), _OWNER, _CLAIMS),
    st.tuples(st.just("record"), _RUN, st.none() | _CLAIM, st.none() | _MONEY),
    st.tuples(st.just("end"), _CLAIMS, st.booleans()),
    st.tuples(st.just("give back"), _CLAIMS),
    st.tuples(st.just("beat"), _OWNER, st.booleans()),
    st.tuples(st.just("wait"), st.integers(1, 40)),
)
_OTHERS = st.one_of(
    st.tuples(st.just("leave"), _OWNER),
    st.tuples(st.just("leave others"), _OWNER),
    st.tuples(st.just("budget"), st.none() | st.integers(0, 20)),
    st.tuples(st.just("exhaust"), _MONEY),
    st.tuples(st.just("state"), _STATES),
    st.tuples(st.just("share"), _OWNER, st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("pause"), st.integers(0, 3), st.booleans(), st.none() | st.integers(0, 9)),
    st.tuples(st.just("fold"), _FACTS, _FACTS),
    st.tuples(st.just("fail"), _RUN, _TURN, st.integers(0, 2)),
    st.tuples(st.just("complete")),
)
HISTORIES = st.lists(st.one_of(_LEASING, _OTHERS), max_size=25)


class History:
    """The same steps on the specification and on another store."""

    def __init__(self, stores: Sequence[Store], clock: StoppedClock, name: str) -> None:
        self._stores = stores
        self._clock = clock
        self._name = name
        self._experiment = an_experiment(models=1, scenarios=2, budget=12, occasion=name)
        self._runs = list(self._experiment.runs())
        self._claims: list[Lease] = []

    async def play(self, steps: Sequence[Step], *, is_deleted: bool) -> None:
        end: list[Step] = [("state", ExperimentState.DELETED), ("delete",)] if is_deleted else []
        # Nobody gives a call of a deleted experiment up for lack of money: each is stopped before.
        late = [step for step in steps if is_deleted and step[0] != "exhaust"]
        for step in (("budget", 12), *steps, *end, *late):
            self._prepare(step)
            specified, given = [await self._answer(store, step) for store in self._stores]
            assert given == specified, step
            specified, given = [await self._seen(store) for store in self._stores]
            assert given == specified, step

    def _prepare(self, step: Step) -> None:
        """Let the time pass, or make the claims of a step: once, for all stores."""
        match step:
            case ("wait", seconds):
                self._clock.pass_by(seconds)
            case ("take", _, _, wanted):
                for run, reserve, seconds in wanted:
                    name = f"lease {len(self._claims)}"
                    claim = claim_of(self._runs[run], name, reserve, seconds=seconds)
                    self._claims.append(claim)

    async def _answer(self, store: Store, step: Step) -> object:
        try:
            return await self._do(store, step)
        except StoreError as error:
            return type(error)

    async def _do(self, store: Store, step: Step) -> object:  # noqa: C901, PLR0911, PLR0912
        id_ = self._experiment.experiment_id
        match step:
            case ("take", owner, may_judge, wanted):
                claims = self._claims[len(self._claims) - len(wanted) :]
                return list(
                    await store.take_leases(claims, self._owner(owner), may_judge=may_judge)
                )
            case ("take again", owner, numbers):
                return list(await store.take_leases(self._claimed(numbers), self._owner(owner)))
            case ("record", run, number, cost):
                lease_id = NO_LEASE
                for claim in [] if number is None else self._claimed([number]):
                    run, lease_id = self._run_of(claim), claim.key.lease_id
                return list(await store.record([self._response(run, cost)], [lease_id]))
            case ("end", numbers, billed):
                ends = {claim.key for claim in self._claimed(numbers)}
                await store.end_calls([CallEnd(key, billed) for key in ends])
            case ("give back", numbers):
                await store.give_back_leases([each.key for each in self._claimed(numbers)])
            case ("beat", owner, overdue):
                hand = [ModelInHand(id_, "reference/tutor-0")]
                await store.heartbeat(self._owner(owner), hand, overdue=overdue)
            case ("leave", owner):
                await store.leave(self._owner(owner))
            case ("leave others", owner):
                await store.leave_others(self._owner(owner))
            case ("budget", budget):
                return await store.register(
                    an_experiment(models=1, scenarios=2, budget=budget, occasion=self._name)
                )
            case ("exhaust", reserve):
                await store.exhaust(id_, reserve)
            case ("state", state):
                return await store.change_state(id_, state)
            case ("share", owner, total, wants):
                wish = ShareClaim(f"limit {self._name}", total, wants)
                return dict(await store.share([wish], self._owner(owner), 30))
            case ("pause", seen, wants_call, asked):
                pushed_back = None if asked is None else PushBack(1, 60, 1, asked or None, "", "")
                news = PauseNews(
                    f"model {self._name}",
                    seen,
                    replied=asked == 1,
                    pushed_back=pushed_back,
                    wants_call=wants_call,
                )
                [(pause, may_call)] = (await store.pauses([news])).values()
                times = [round(each, 3) for each in (pause.until, pause.next_call, pause.gap)]
                return pause.number, pause.in_a_row, times, may_call
            case ("fold", scores, failures):
                return list(
                    await store.fold(
                        [self._score(*each) for each in scores],
                        [self._failure(*each) for each in failures],
                    )
                )
            case ("fail", run, turn, retry):
                failed = RecordedFailure(self._failure(run, turn), retry)
                await store.record_failures([failed])
            case ("complete",):
                return await store.complete(id_, MONDAY)
            case ("delete",):
                while await store.delete_rows(id_):
                    pass
        return None

    async def _seen(self, store: Store) -> object:
        """What readers see of the experiment."""
        id_ = self._experiment.experiment_id
        runs = [run.run_id for run in self._runs]
        unscored = await store.unscored_responses(id_, 9)
        return (
            await store.spending(id_),
            await store.calls(id_),
            await store.progress(id_),
            dict(await store.models_in_hand(id_)),
            list(await store.cells([id_])),
            await store.done_runs(id_, runs),
            dict(await store.responses(runs)),
            sorted(each.run.run_id for each in unscored),
            dict(await store.recorded_failures(runs)),
            list(await store.unfolded_failures(id_, 9)),
            list(await store.failure_kinds(id_)),
        )

    def _owner(self, name: str) -> str:
        """Owners are those of this history: the clock and the owners are everybody's."""
        return f"{self._name} {name}"

    def _claimed(self, numbers: Sequence[int]) -> list[Lease]:
        return [self._claims[each % len(self._claims)] for each in numbers if self._claims]

    def _run_of(self, claim: Lease) -> int:
        return [run.run_id for run in self._runs].index(claim.key.run_id)

    def _score(self, run: int, turn: int) -> ScoredResponse:
        turn, last = min(turn, _turns(run)), _turns(run)
        return a_score(self._runs[run], turn=turn, last_turn=turn == last)

    def _failure(self, run: int, turn: int) -> RunFailure:
        return a_failure(self._runs[run], turn=min(turn, _turns(run)))

    def _response(self, run: int, cost: int | None) -> Response:
        """The response of a run's first turn."""
        return a_response(self._runs[run], last_turn=_turns(run) == 1, cost=cost)


def _turns(run: int) -> int:
    """Half of the runs have one turn, the others two."""
    return run % 2 + 1


@pytest.mark.two_lengths
def test_after_any_history_a_store_answers_as_the_one_in_memory(
    adapter: StoreAdapter, database: Database, clock: StoppedClock
) -> None:
    numbers = count()
    with asyncio.Runner() as loop:
        stores = MemoryStore(now=clock), database(clock)
        loop.run(stores[1].prepare())

        @settings(max_examples=adapter.examples)
        @given(steps=HISTORIES, is_deleted=st.booleans())
        @example(
            steps=[
                ("take", "a", True, [(0, 3, 9), (0, 3, 9), (1, 3, 9)]),
                ("record", 0, None, 2),
                ("take again", "a", [0, 1, 2]),
                ("take", "b", True, [(0, 3, 9), (1, 3, 9)]),
                ("wait", 16),
                ("take", "b", False, [(1, 3, 9)]),
                ("end", [0, 2], True),
            ],
            is_deleted=True,
        )
        def hold(steps: list[Step], is_deleted: bool) -> None:
            history = History(stores, clock, f"history {next(numbers)}")
            loop.run(history.play(steps, is_deleted=is_deleted))

        try:
            hold()
        finally:
            loop.run(stores[1].close())
