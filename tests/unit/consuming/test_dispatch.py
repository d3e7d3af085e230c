"""From deliveries to settlements: published first, settled after, and nothing lost on the way."""

import asyncio
from contextlib import aclosing

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.consuming.dispatch import COME_BACK, Dispatcher, to_message
from socratic_bench.consuming.outcomes import Emit, Failed, Handled, Reject, Retry
from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.consuming.settlements import Ack, DeadLetterIt, RetryLater
from socratic_bench.domain.run import Run
from socratic_bench.errors import (
    BrokerClosed,
    BrokerUnavailable,
    StoreBroken,
    StoreUnavailable,
    UnroutableMessage,
)
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.broker import Delivery, Message
from tests.unit.events.examples import RUN, TIME, example_events
from tests.waiting import waiting_for

RECORDED = example_events()["response.recorded"]
POLICY = RetryPolicy(attempts=3, first_delay=1.0, draw=lambda: 1.0)
AT_ONCE = RetryPolicy(attempts=3, draw=lambda: 0.0)
AWAY = [StoreUnavailable("gone"), BrokerUnavailable("gone"), UnroutableMessage("no queue")]


def requested(number: int) -> RunRequested:
    run = Run(**{**RUN.model_dump(), "run_id": f"run-{number}"})
    return RunRequested.of(run, source="test", time=TIME)


def deliveries(count: int, attempt: int = 1) -> list[Delivery]:
    return [Delivery(to_message(requested(n)), attempt, n) for n in range(count)]


class Published:
    """Takes what is published, or breaks."""

    def __init__(self, error: Exception | None = None) -> None:
        self.messages: list[Message] = []
        self.error = error

    async def __call__(self, messages) -> None:
        if self.error:
            raise self.error
        self.messages += messages


async def settle(handler, given, publish=None, event_type=RunRequested, **options):
    options = {"retry_policy": POLICY, **options}
    dispatcher = Dispatcher(handler, event_type, publish or Published(), **options)
    settlements = []
    async with aclosing(dispatcher.dispatch(given)) as batches:
        async for batch in batches:
            settlements += batch
    return settlements


async def test_handled_work_is_acked_after_its_events_are_published():
    order = []

    async def publish(messages):
        order.append(("published", [message.id for message in messages]))

    async def handler(batch):
        yield [Handled(work, (RECORDED,)) for work in batch]

    dispatcher = Dispatcher(handler, RunRequested, publish, POLICY)
    order.extend(
        [
            ("settled", [type(each).__name__ for each in batch])
            async for batch in dispatcher.dispatch(deliveries(2))
        ]
    )
    assert order == [("published", [RECORDED.id] * 2), ("settled", ["Ack", "Ack"])]


async def test_outcomes_are_settled_as_they_come_not_when_the_batch_is_done():
    gate = asyncio.Event()

    async def handler(batch):
        yield [Handled(batch[0])]
        await gate.wait()
        yield [Handled(batch[1])]

    async with (
        aclosing(
            Dispatcher(handler, RunRequested, Published(), POLICY).dispatch(deliveries(2))
        ) as batches,
        waiting_for("the settlements"),
    ):
        first = await anext(batches)
        gate.set()
        second = await anext(batches)
    assert [first[0].delivery.receipt, second[0].delivery.receipt] == [0, 1]


async def test_what_a_handler_says_becomes_the_settlement():
    async def handler(batch):
        yield [
            Emit((RECORDED,)),
            Handled(batch[0]),
            Retry(batch[1], 7.5, "busy"),
            Reject(batch[2], "no such experiment"),
            Failed(batch[3], ValueError("a bug")),
        ]

    given, publish = deliveries(4), Published()
    assert await settle(handler, given, publish) == [
        Ack(given[0]),
        RetryLater(given[1], 7.5, "busy"),
        DeadLetterIt(given[2], "no such experiment"),
        RetryLater(given[3], 1.0, "ValueError: a bug"),
    ]
    assert [message.type for message in publish.messages] == [RECORDED.type]


async def test_a_message_that_is_no_event_is_dead_lettered_and_the_others_go_on():
    async def handler(batch):
        yield [Handled(work) for work in batch]

    good = deliveries(2)
    poison = Delivery(Message("x", RunRequested.model_fields["type"].default, "g", b"{"), 1, 9)
    foreign = Delivery(to_message(RECORDED), 1, 10)
    settled = await settle(handler, [good[0], poison, foreign, good[1]])
    assert [each for each in settled if isinstance(each, Ack)] == [Ack(good[0]), Ack(good[1])]
    reasons = {
        each.delivery.receipt: each.reason for each in settled if isinstance(each, DeadLetterIt)
    }
    assert "Invalid JSON" in reasons[9]
    assert "takes no org.socratic-bench.response.recorded.v1" in reasons[10]


async def test_one_poisonous_event_does_not_take_its_batch_along():
    async def handler(batch):
        if any(work.event.subject == "run-1" for work in batch):
            raise ValueError("cannot digest run-1")
        yield [Handled(work) for work in batch]

    given = deliveries(4)
    settled = await settle(handler, given)
    assert RetryLater(given[1], 1.0, "ValueError: cannot digest run-1") in settled
    assert {each.delivery.receipt for each in settled if isinstance(each, Ack)} == {0, 2, 3}
    assert len(settled) == 4


async def test_a_bug_is_dead_lettered_after_its_last_try():
    async def handler(batch):
        raise ValueError("always")
        yield

    (given,) = deliveries(1, attempt=3)
    assert await settle(handler, [given]) == [DeadLetterIt(given, "ValueError: always")]


@pytest.mark.parametrize("error", AWAY, ids=repr)
async def test_what_is_away_is_waited_for_in_hand_and_costs_no_delivery(error):
    handled = []

    async def handler(batch):
        handled.append(len(batch))
        if len(handled) <= 100:
            raise error
        yield [Handled(work) for work in batch]

    given = deliveries(2)
    assert await settle(handler, given, retry_policy=AT_ONCE) == [Ack(given[0]), Ack(given[1])]
    assert handled == [2] * 101


async def test_only_what_has_to_wait_waits():
    handled = []

    async def handler(batch):
        handled.append([work.event.subject for work in batch])
        for work in batch:
            waits = work.event.subject == "run-1" and len(handled) == 1
            yield [Failed(work, StoreUnavailable("gone")) if waits else Handled(work)]

    given = deliveries(3)
    assert await settle(handler, given, retry_policy=AT_ONCE) == [
        Ack(given[0]),
        Ack(given[2]),
        Ack(given[1]),
    ]
    assert handled == [["run-0", "run-1", "run-2"], ["run-1"]]


async def test_events_that_could_not_be_published_are_made_and_published_again():
    publish = Published(BrokerUnavailable("away"))
    handled = 0

    async def handler(batch):
        nonlocal handled
        handled += 1
        if handled == 3:
            publish.error = None
        yield [Handled(work, (RECORDED,)) for work in batch]

    (given,) = deliveries(1)
    assert await settle(handler, [given], publish, retry_policy=AT_ONCE) == [Ack(given)]
    assert [message.id for message in publish.messages] == [RECORDED.id]


async def test_what_is_away_for_too_long_is_given_back_for_a_while():
    async def handler(batch):
        raise StoreUnavailable("not now")
        yield

    given = deliveries(2, attempt=19)
    assert await settle(handler, given, patience=0.5) == [
        RetryLater(each, COME_BACK, "StoreUnavailable: not now") for each in given
    ]


async def test_a_service_that_drains_waits_for_nothing_that_is_away():
    called = asyncio.Event()

    async def handler(batch):
        called.set()
        raise StoreUnavailable("not now")
        yield

    (given,) = deliveries(1)
    slow = RetryPolicy(first_delay=600.0, longest_delay=600.0, draw=lambda: 1.0)
    dispatcher = Dispatcher(handler, RunRequested, Published(), slow)
    async with (
        waiting_for("work to be given back"),
        aclosing(dispatcher.dispatch([given])) as batches,
    ):
        settling = asyncio.create_task(anext(batches))
        await called.wait()
        dispatcher.drain()
        assert await settling == [RetryLater(given, 0.0, "StoreUnavailable: not now")]


async def test_a_broken_store_ends_the_work_and_settles_nothing():
    async def handler(batch):
        yield [Failed(batch[0], StoreBroken("disk full"))]

    with pytest.raises(StoreBroken, match="disk full"):
        await settle(handler, deliveries(2))


async def test_a_closed_broker_ends_the_work_and_settles_nothing():
    async def handler(batch):
        yield [Handled(work, (RECORDED,)) for work in batch]

    with pytest.raises(BrokerClosed):
        await settle(handler, deliveries(2), Published(BrokerClosed("closed")))


async def test_work_a_handler_forgets_is_not_lost():
    async def handler(batch):
        yield [Handled(work) for work in batch if work.event.subject != "run-1"]

    settled = await settle(handler, deliveries(3))
    kinds = {each.delivery.receipt: type(each) for each in settled}
    assert kinds == {0: Ack, 1: RetryLater, 2: Ack}


async def test_two_deliveries_of_one_event_are_both_settled():
    async def handler(batch):
        yield [Handled(work) for work in batch]

    (one,) = deliveries(1)
    again = Delivery(one.message, 2, 77)
    assert await settle(handler, [one, again]) == [Ack(one), Ack(again)]


async def test_ending_early_ends_the_handler_too():
    ended = asyncio.Event()

    async def handler(batch):
        try:
            yield [Handled(batch[0])]
            yield [Handled(batch[1])]
        finally:
            ended.set()

    dispatcher = Dispatcher(handler, RunRequested, Published(), POLICY)
    async with aclosing(dispatcher.dispatch(deliveries(2))) as batches:
        await anext(batches)
    assert ended.is_set()


async def test_events_of_another_type_never_reach_the_handler():
    async def handler(batch):
        assert all(isinstance(work.event, ResponseRecorded) for work in batch)
        yield [Handled(work) for work in batch]

    settled = await settle(handler, deliveries(1), event_type=ResponseRecorded)
    assert isinstance(settled[0], DeadLetterIt)


class Stubborn(Exception):
    """Raised by a handler for a whole batch."""


@given(
    script=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(["handled", "retry", "reject", "bug", "forgotten", "raises"]),
        ),
        min_size=1,
        max_size=6,
    ),
    away=st.sampled_from(AWAY),
)
async def test_whatever_happens_every_delivery_is_settled_exactly_once(script, away):
    """`script`: for each piece of work how often something is away first, and how it ends."""
    left = {f"run-{n}": [waits, end] for n, (waits, end) in enumerate(script)}

    async def handler(batch):
        for work in batch:
            plan = left[work.event.subject]
            if plan[0]:
                plan[0] -= 1
                if plan[0] % 2:
                    raise away
                yield [Failed(work, away)]
            elif plan[1] == "raises":
                raise Stubborn
            elif plan[1] != "forgotten":
                yield [
                    {
                        "handled": Handled(work),
                        "retry": Retry(work, 1.0, "later"),
                        "reject": Reject(work, "never"),
                        "bug": Failed(work, ValueError("bug")),
                    }[plan[1]]
                ]

    given = deliveries(len(script))
    with structlog.testing.capture_logs():
        settled = await settle(handler, given, retry_policy=AT_ONCE)
    assert sorted(each.delivery.receipt for each in settled) == list(range(len(script)))
    kinds = {"handled": Ack, "reject": DeadLetterIt}
    for each in settled:
        assert type(each) is kinds.get(script[each.delivery.receipt][1], RetryLater)


async def test_a_log_line_about_a_run_says_which():
    async def handler(batch):
        yield [Reject(batch[0], "no such experiment"), Failed(batch[1], ValueError("bug"))]

    with structlog.testing.capture_logs() as lines:
        await settle(handler, deliveries(2))
    experiment_id = RUN.experiment_id
    assert [(line["run_id"], line["correlation_id"]) for line in lines] == [
        ("run-0", experiment_id),
        ("run-1", experiment_id),
    ]
