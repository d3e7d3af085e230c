"""How PostgreSQL is used: by several processes at once that never wait for each other crosswise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asyncpg.transaction import Transaction
from sqlalchemy import text

from socratic_bench.adapters.stores.records import record_of
from socratic_bench.adapters.stores.sql.database import Database, backend_for
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.aggregates.cell import Cell, key_of_score
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.leases import CallCount, Spending
from tests.contract.store.adapters import opened
from tests.contract.store.facts import (
    EXPERIMENT_ID,
    Facts,
    StoppedClock,
    a_failure,
    a_response,
    a_run,
    a_score,
    an_experiment,
    claim_of,
    contents,
    failures_in,
    record_unleased,
)
from tests.integration.sql.processes import at_once
from tests.servers import postgresql
from tests.waiting import until

pytestmark = pytest.mark.connected

WORK_AS_ONE_OF_MANY = """
import asyncio, json, random, sys
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.leasing import LeaseAnswer
from tests.contract.store.facts import a_response, claim_of
from tests.integration.sql.postgresql.test_postgresql import EXPERIMENT, facts

async def main():
    url, name = sys.argv[1:]
    chance = random.Random(name)
    known = facts()
    runs = list(EXPERIMENT.runs())
    store = SqlStore.from_url(url)
    await store.prepare()
    granted = set()

    async def curate():
        for _ in range(25):
            await store.fold(chance.sample(known.scores, 60), chance.sample(known.failures, 8))

    async def carry_out():
        for _ in range(25):
            some = chance.sample(runs, 40)
            answers = await store.take_leases([claim_of(run, name) for run in some], name)
            taken = [
                run for run, answer in zip(some, answers) if answer is LeaseAnswer.GRANTED
            ]
            granted.update(taken)
            await store.record([a_response(run, name) for run in taken], [name] * len(taken))

    print("ready", flush=True)
    sys.stdin.readline()
    await asyncio.gather(curate(), curate(), carry_out())
    await store.close()
    print(json.dumps(sorted(run.run_id for run in granted)))

asyncio.run(main())
"""

PROCESSES = 2
EXPERIMENT = an_experiment(models=4, scenarios=5, repeats=6, follow_ups=["Why?"])


def facts() -> Facts:
    """Two turns of every run; some of them failed."""
    runs = list(EXPERIMENT.runs())
    scores = [a_score(run, turn=turn, last_turn=turn == 2) for run in runs for turn in (1, 2)]
    failures = [a_failure(run, turn=1 + number % 2) for number, run in enumerate(runs[::3])]
    return Facts(tuple(scores), tuple(failures))


@pytest.mark.long
async def test_several_curators_and_runners_at_once_lose_nothing_and_count_nothing_twice(
    url: str,
) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        granted = [
            run_id
            for printed in await asyncio.to_thread(
                at_once, WORK_AS_ONE_OF_MANY, url, processes=PROCESSES
            )
            for run_id in json.loads(printed)
        ]
        assert len(granted) == len(set(granted))
        calls = await store.calls(EXPERIMENT.experiment_id)
        assert calls == CallCount(len(granted), len(granted))
        assert set(await store.responses([run.run_id for run in EXPERIMENT.runs()])) == set(granted)
        rows = [row async for page in store.score_rows(EXPERIMENT.experiment_id) for row in page]
        failures = await failures_in(store, EXPERIMENT.experiment_id)
        assert contents(await store.cells()) == Facts(tuple(rows), tuple(failures)).cells
        known = facts()
        await store.fold(known.scores, known.failures)
        assert contents(await store.cells()) == known.cells


@asynccontextmanager
async def _blocked(url: str, lock: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """`work` begun, and waiting for a lock that another session lets go of at the end."""
    async with postgresql.connected(url) as other, other.transaction():
        await other.execute(lock)
        task = asyncio.ensure_future(work())
        await postgresql.until_something_waits_for_a_lock(url)
        yield task
    await task


async def test_a_turn_whose_response_comes_while_its_lease_is_being_taken_is_not_granted(
    url: str,
) -> None:
    run, other_run, clock = a_run(), a_run(2), StoppedClock()
    async with (
        opened(lambda: SqlStore.from_url(url, clock)) as slow,
        opened(lambda: SqlStore.from_url(url, clock)) as eager,
    ):
        await slow.take_leases([claim_of(run, "slow")], "slow")
        clock.pass_by(500)
        claims = [claim_of(run, "eager"), claim_of(other_run, "eager")]
        async with _blocked(
            url, "SELECT * FROM calls FOR UPDATE", lambda: eager.take_leases(claims, "eager")
        ) as leasing:
            await _answer(url, run)
        assert leasing.result() == [LeaseAnswer.ANSWERED, LeaseAnswer.GRANTED]
        assert await eager.calls(EXPERIMENT_ID) == CallCount(calls=2, turns=2)


@pytest.mark.long
async def test_the_budget_of_a_turn_that_was_answered_meanwhile_goes_to_the_next(url: str) -> None:
    clock = StoppedClock()
    async with (
        opened(lambda: SqlStore.from_url(url, clock)) as slow,
        opened(lambda: SqlStore.from_url(url, clock)) as eager,
    ):
        experiment = await slow.register(an_experiment(budget=10))
        id_, (run, other_run, *_) = experiment.experiment_id, experiment.runs()
        await slow.take_leases([claim_of(run, "slow")], "slow")
        clock.pass_by(500)
        claims = [claim_of(run, "eager", 7), claim_of(other_run, "eager", 7)]
        async with _blocked(
            url, "SELECT * FROM calls FOR UPDATE", lambda: eager.take_leases(claims, "eager")
        ) as leasing:
            await _answer(url, run)
        assert leasing.result() == [LeaseAnswer.ANSWERED, LeaseAnswer.GRANTED]
        assert await eager.spending(id_) == Spending(10, 7, 7, exhausted=False)


async def _answer(url: str, run: Run) -> None:
    """Store a response as a version does that ends no leases: it waits for none of their locks."""
    await postgresql.execute(
        url,
        "INSERT INTO responses (run_id, turn, record) VALUES "
        f"('{run.run_id}', 1, '{record_of(a_response(run))}')",
    )


async def test_a_removal_of_rows_keeps_no_fold_from_counting_its_change(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        experiment = await store.register(an_experiment())
        id_ = experiment.experiment_id
        await store.fold([a_score(next(experiment.runs()))], [])
        await store.change_state(id_, ExperimentState.DELETED)
        await postgresql.execute(
            url,
            "INSERT INTO changes SELECT shard, 0 FROM generate_series(0, 63) AS shards (shard) "
            "ON CONFLICT DO NOTHING",
        )

        async def remove_rows() -> None:
            while await store.delete_rows(id_):
                pass

        async with _blocked(url, "SELECT * FROM cells FOR UPDATE", remove_rows):
            free = "SELECT * FROM changes FOR UPDATE SKIP LOCKED"
            assert len(await postgresql.execute(url, free)) == 64


@pytest.mark.long
async def test_time_is_judged_by_the_clock_of_the_server(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.take_leases([claim_of(a_run(), "lease", seconds=60)], "runner")
        await store.heartbeat("runner", [])
        [(left, age)] = await _rows(
            url,
            "SELECT leased_until / 1e6 - extract(epoch from clock_timestamp()),"
            " extract(epoch from clock_timestamp()) - seen_at / 1e6 FROM calls, owners",
        )
        assert 0 < left <= 60
        assert 0 <= age < 60


async def test_who_waits_for_a_cell_that_another_is_making_holds_none_after_it(url: str) -> None:
    first, second = a_score(a_run(scenario="a")), a_score(a_run(scenario="b"))
    empty = Cell(key_of_score(first), first.run.dimension)
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([second], [])
        async with postgresql.connected(url) as other, other.transaction():
            await other.execute(
                "INSERT INTO cells VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, $7)",
                *empty.key,
                empty.dimension,
                empty.to_json(),
            )
            folding = asyncio.ensure_future(store.fold([first, second], []))
            await postgresql.until_something_waits_for_a_lock(url)
            await other.execute("SELECT * FROM cells WHERE scenario_id = 'b' FOR UPDATE NOWAIT")
        assert contents(await folding) == Facts((first, second)).cells


async def test_what_waits_for_a_lock_is_cancelled_without_a_trace(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([a_score(a_run())], [])
        for _ in range(8):  # more often than there are connections
            with pytest.raises(asyncio.CancelledError):
                async with _blocked(
                    url,
                    "SELECT * FROM cells FOR UPDATE",
                    lambda: store.fold([a_score(a_run(2))], []),
                ) as folding:
                    folding.cancel()
        [cell] = await store.cells()
        assert cell.responses == 1
        [cell] = await store.fold([a_score(a_run(2))], [])
        assert cell.responses == 2


async def test_one_reading_sees_one_state_and_writes_nothing(url: str) -> None:
    database = Database(backend_for(url))
    await database.prepare()
    count = text("SELECT count(*) FROM responses")

    async def responses(transaction: Any) -> Any:
        return (await transaction.execute(count))[0][0]

    async with opened(lambda: SqlStore.from_url(url)) as store, database.read() as reading:
        assert await responses(reading) == 0
        await record_unleased(store, [a_response(a_run())])
        assert await responses(reading) == 0
        async with database.read() as other:
            assert await responses(other) == 1
    with pytest.raises(Exception, match="it is read-only"):
        async with database.read() as reading:
            await reading.execute(text("DELETE FROM responses"))
    await database.close()


@pytest.mark.long
async def test_a_look_up_begins_no_transaction_and_leaves_later_ones_as_they_are(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Transaction] = []
    start = Transaction.start

    async def counted(transaction: Transaction) -> None:
        begun.append(transaction)
        await start(transaction)

    monkeypatch.setattr(Transaction, "start", counted)
    database = Database(backend_for(url))
    await database.prepare()
    count = text("SELECT count(*) FROM responses")
    await database.look_up(count)
    begun.clear()  # the engine asks a new server for its version
    for _ in range(8):  # more often than there are connections
        assert (await database.look_up(count))[0][0] == 0
    assert not begun
    with pytest.raises(Exception, match="it is read-only"):
        await database.look_up(text("DELETE FROM responses"))
    async with database.read() as reading:
        [(isolation,)] = await reading.execute(text("SHOW transaction_isolation"))
    assert (isolation, len(begun)) == ("repeatable read", 1)
    await database.close()


async def _rows(url: str, statement: str) -> Sequence[Any]:
    return await postgresql.execute(url, statement)


@pytest.mark.long
async def test_connections_are_few_bear_our_name_and_are_closed_at_the_end(url: str) -> None:
    names = """
    SELECT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
    """
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await asyncio.gather(
            *(record_unleased(store, [a_response(a_run(n))]) for n in range(1, 50))
        )
        await asyncio.gather(*(store.responses([a_run(n).run_id]) for n in range(1, 50)))
        used = [row["application_name"] for row in await _rows(url, names)]
        assert set(used) == {"socratic-bench"}
        assert len(used) <= 8
    # A session ends a little later than its connection.
    await until(lambda: _rows(url, names), lambda rows: not rows, "the end of all sessions")


async def test_keys_sort_by_code_point_whatever_the_collation_of_the_database(url: str) -> None:
    await _prepared(url)
    collations = """
    SELECT DISTINCT collation_name FROM information_schema.key_column_usage
    JOIN information_schema.columns USING (table_name, column_name)
    WHERE data_type = 'text' AND table_name <> 'alembic_version'
    """
    assert [row["collation_name"] for row in await _rows(url, collations)] == ["C"]


async def _prepared(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)):
        pass
