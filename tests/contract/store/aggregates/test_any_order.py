"""The same facts in any order, in any batches, however often, give the same bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL
from tests.contract.store.adapters import Database, StoreAdapter
from tests.contract.store.facts import Facts, a_failure, a_run, a_score, contents

Fact = ScoredResponse | RunFailure


@st.composite
def _facts_of_a_run(draw: st.DrawFn, repeat: int, profile: str) -> list[Fact]:
    """Some of the turns of a run, and perhaps failures, of tries one after another."""
    run = a_run(repeat, scenario=draw(st.sampled_from(["scenario-0", "scenario-1"])))
    turns = draw(st.integers(1, 3))
    facts: list[Fact] = []
    for turn in sorted(draw(st.sets(st.integers(1, turns)))):
        overall = draw(st.sampled_from([0.0, 1 / 3, 0.7, 1.0]))
        counts = draw(st.sampled_from([{}, {"lapsed": 0}, {"lapsed": 3, "at_risk": 1}]))
        scored = a_score(
            run,
            turn=turn,
            last_turn=turn == turns,
            overall=overall,
            profile=profile,
            counts=counts,
        )
        if draw(st.booleans()):
            unscored = {"status": Status.REFUSED, "vectors": None, "overall": None}
            scored = scored.model_copy(update=unscored)
        facts.append(scored)
    failed_at = draw(st.sets(st.integers(1, turns), max_size=2))
    facts.extend(a_failure(run, turn=turn, profile=profile) for turn in failed_at)
    return facts


@st.composite
def deliveries(draw: st.DrawFn) -> list[list[Fact]]:
    """Facts of a few runs: shuffled, some of them again, cut into batches."""
    facts = [
        fact
        for repeat in range(1, draw(st.integers(1, 4)) + 1)
        for profile in (CANONICAL, "other-v1")
        for fact in draw(_facts_of_a_run(repeat, profile))
    ]
    again = draw(st.lists(st.sampled_from(facts), max_size=8)) if facts else []
    order = draw(st.permutations(facts + again))
    cuts = sorted(draw(st.sets(st.integers(0, len(order)), max_size=6)))
    return [order[start:end] for start, end in pairwise([0, *cuts, len(order)])]


def _facts(delivered: Sequence[Fact]) -> Facts:
    """The delivered facts, each once."""
    once = list({fact.model_dump_json(): fact for fact in delivered}.values())
    return Facts(
        tuple(fact for fact in once if isinstance(fact, ScoredResponse)),
        tuple(fact for fact in once if isinstance(fact, RunFailure)),
    )


def _of_experiment(fact: Fact, experiment_id: str) -> Fact:
    """The same fact of another experiment, so that one database serves every example."""
    run = fact.run.model_copy(
        update={"experiment_id": experiment_id, "run_id": f"{experiment_id} {fact.run.run_id}"}
    )
    return fact.model_copy(update={"run": run})


async def _fold_and_compare(
    store: Store, experiment_id: str, batches: Sequence[Sequence[Fact]]
) -> None:
    delivered: list[Fact] = []
    for batch in batches:
        facts = [_of_experiment(fact, experiment_id) for fact in batch]
        delivered += facts
        await store.fold(
            [fact for fact in facts if isinstance(fact, ScoredResponse)],
            [fact for fact in facts if isinstance(fact, RunFailure)],
        )
        assert contents(await store.cells([experiment_id])) == _facts(delivered).cells


@pytest.mark.two_lengths
def test_cells_are_the_fold_of_their_facts_after_every_batch(
    adapter: StoreAdapter, database: Database
) -> None:
    numbers = count()
    with asyncio.Runner() as loop:
        store = database()
        loop.run(store.prepare())

        @settings(max_examples=adapter.examples)
        @given(batches=deliveries())
        def hold(batches: list[list[Fact]]) -> None:
            loop.run(_fold_and_compare(store, f"exp-{next(numbers)}", batches))

        try:
            hold()
        finally:
            loop.run(store.close())
