"""One experiment from its plan to its deletion, over two emulators that other people wrote.

moto's transactions do not exclude each other, and it ignores the token of a repeated one, unlike
DynamoDB: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html.
So the suite with its concurrent writers runs over the first one alone, and one caller tries both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.leases import CallCount, CallEnd, Spending
from socratic_bench.ports.stores.responses import RecordedFailure
from tests.contract.store.facts import (
    MONDAY,
    Facts,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    claim_of,
    contents,
)
from tests.servers import aws_emulator, dynamodb, moto
from tests.servers.discovery import Server

pytestmark = pytest.mark.long

GRANTED, OVER_BUDGET, HELD, ANSWERED, STOPPED = (
    LeaseAnswer.GRANTED,
    LeaseAnswer.OVER_BUDGET,
    LeaseAnswer.HELD,
    LeaseAnswer.ANSWERED,
    LeaseAnswer.STOPPED,
)


@pytest.fixture(params=[aws_emulator.SERVER, moto.SERVER], ids=["ministack", "moto"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[DynamoDBStore]:
    server: Server = request.param
    async with dynamodb.new_table(server) as url:
        store = DynamoDBStore.from_url(url)
        await store.prepare()
        yield store
        await store.close()


async def test_an_experiment_lives_and_goes(store: DynamoDBStore) -> None:
    experiment = await store.register(an_experiment(budget=100))
    id_, runs = experiment.experiment_id, list(experiment.runs())
    failed, *answered = runs

    claims = [claim_of(run, "a", 30) for run in runs[:4]]
    for _ in range(2):
        assert await store.take_leases(claims, "a") == [GRANTED] * 3 + [OVER_BUDGET]
    assert await store.take_leases(claims[:1], "b") == [HELD]
    for _ in range(2):
        await store.end_calls([CallEnd(claims[0].key, billed=False)])
        await store.record([a_response(run, cost=7) for run in runs[1:3]], ["a", "a"])
    assert await store.spending(id_) == Spending(100, 14, 0, exhausted=False, paid=14)
    assert await store.calls(id_) == CallCount(calls=3, turns=3)
    assert await store.take_leases(claims[1:2], "b") == [ANSWERED]

    first = a_response(answered[0], cost=7)
    assert await store.record([a_response(answered[0], "another")]) == [first]
    await store.record([a_response(run, cost=0) for run in answered])
    await store.record_failures([RecordedFailure(a_failure(failed), 0)])
    assert len(await store.unscored_responses(id_, 99)) == len(answered)
    assert await store.unfolded_failures(id_, 9) == [a_failure(failed)]

    failures = (a_failure(failed), a_failure(answered[0]))
    facts = Facts(tuple(map(a_score, answered)), failures)
    await store.fold([], failures)
    before = await store.revision()
    for _ in range(2):
        await store.fold(facts.scores, facts.failures)
    assert contents(await store.cells()) == facts.cells
    assert int(await store.revision()) > int(before)
    assert await store.progress(id_) == Progress(planned=12, done=12, failed=1)
    assert await store.unscored_responses(id_, 99) == []
    assert await store.complete(id_, MONDAY) == MONDAY

    assert await store.change_state(id_, ExperimentState.PAUSED) is ExperimentState.PAUSED
    assert await store.take_leases([claim_of(failed, "b")], "b") == [STOPPED]
    await store.change_state(id_, ExperimentState.DELETED)
    while await store.delete_rows(id_):
        pass
    assert await store.fold(facts.scores, facts.failures) == []
    assert await store.cells() == []
    assert await store.responses([run.run_id for run in runs]) == {}
    assert await store.deletable(None) == []
