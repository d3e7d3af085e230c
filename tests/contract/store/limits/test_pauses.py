"""The pause of a model holds for every runner that shares a store."""

from __future__ import annotations

import asyncio

import pytest

from socratic_bench.domain.pause import NONE, PauseNews, PushBack
from socratic_bench.ports.stores.limits import PauseAnswer
from socratic_bench.ports.stores.store import Store
from tests.contract.store.adapters import Database
from tests.contract.store.facts import StoppedClock
from tests.waiting import waiting_for

SCOPE = "openai/gpt"


def pushed(seen: int, *, asked: float | None = None, scope: str = SCOPE) -> PauseNews:
    pushed_back = PushBack(2.0, 30.0, 1.0, asked, "rate_limited", "HTTP 429: slow down")
    return PauseNews(scope, seen, pushed_back=pushed_back)


async def told(store: Store, news: PauseNews) -> PauseAnswer:
    return (await store.pauses([news]))[news.scope]


async def wants(store: Store, seen: int) -> bool:
    return (await told(store, PauseNews(SCOPE, seen, wants_call=True))).may_call


async def test_a_model_that_never_pushed_back_is_not_paused(store: Store) -> None:
    looks = await store.pauses([PauseNews("a", 0), PauseNews("b", 0, wants_call=True)])
    assert looks == {"a": PauseAnswer(NONE, may_call=True), "b": PauseAnswer(NONE, may_call=True)}
    assert await store.pauses([]) == {}


@pytest.mark.smoke
async def test_a_pause_that_one_began_holds_for_another_by_the_stores_clock(
    database: Database,
) -> None:
    clock = StoppedClock()
    one, two = database(clock), database(clock)
    await one.prepare()
    began = await told(one, pushed(0))
    assert (began.pause.number, began.pause.until, began.may_call) == (1, 2.0, False)
    clock.pass_by(1.5)
    seen = await told(two, PauseNews(SCOPE, 0))
    assert (seen.pause.number, seen.pause.until, seen.may_call) == (1, 0.5, False)
    assert (seen.pause.kind, seen.pause.reason) == ("rate_limited", "HTTP 429: slow down")
    late = await told(two, pushed(0))
    assert late == seen, "a call that had begun before is no second push-back"
    clock.pass_by(1)
    again = await told(two, pushed(1))
    assert (again.pause.number, again.pause.until) == (2, 4.0)
    clock.pass_by(4)
    assert not (await told(two, PauseNews(SCOPE, 2))).may_call
    await told(one, PauseNews(SCOPE, 2, replied=True))
    assert (await told(two, PauseNews(SCOPE, 2))).may_call
    await one.close()
    await two.close()


async def test_of_many_that_want_the_one_call_after_a_pause_one_may_make_it(
    database: Database,
) -> None:
    clock = StoppedClock()
    stores = [database(clock) for _ in range(6)]
    await stores[0].prepare()
    for seen in (0, 1):
        await told(stores[0], pushed(seen))
    for _ in range(3):
        clock.pass_by(4)
        async with waiting_for("the answers of six stores"):
            answers = await asyncio.gather(*(wants(each, 2) for each in stores))
        assert sorted(answers) == [False] * 5 + [True]
    for each in stores:
        await each.close()


async def test_of_many_push_backs_at_once_one_counts(database: Database) -> None:
    clock = StoppedClock()
    stores = [database(clock) for _ in range(6)]
    await stores[0].prepare()
    async with waiting_for("the answers of six stores"):
        answers = await asyncio.gather(*(told(each, pushed(0)) for each in stores))
    assert {answer.pause.number for answer in answers} == {1}
    assert {answer.pause.in_a_row for answer in answers} == {1}
    for each in stores:
        await each.close()


async def test_many_models_are_told_of_at_once_in_any_order(store: Store) -> None:
    news = [pushed(0, scope=f"model-{number}") for number in range(50)]
    answers = await asyncio.gather(store.pauses(news), store.pauses(news[::-1]))
    for answer in answers:
        assert {each.pause.number for each in answer.values()} == {1}
    looks = await store.pauses([PauseNews(each.scope, 0) for each in news])
    assert len(looks) == 50
    assert not any(each.may_call for each in looks.values())
