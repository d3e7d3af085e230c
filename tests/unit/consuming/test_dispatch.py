"""From deliveries to settlements: published first, settled after, and nothing lost on the way."""

import asyncio

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.dispatch import REDELIVERY_DELAY, Dispatcher
from socratic_bench.consuming.outcomes import (
    Ack,
    DeadLetterIt,
    Emit,
    Failed,
    Handled,
    Postponed,
    Rejected,
    RetryLater,
)
from socratic_bench.consuming.publication import Ready
from socratic_bench.domain.run import Run
from socratic_bench.errors import (
    BrokerUnavailable,
    StoreBroken,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
    UnroutableMessage,
)
from socratic_bench.events.codec import Message, to_message
from socratic_bench.events.event_types import ResponseRecorded, RunRequested
from socratic_bench.ports.broker import Delivery
from tests.unit.events.examples import RUN, TIME, example_events
from tests.waiting import waiting_for

RECORDED = example_events()["response.recorded"]
POLICY = RetryPolicy(attempts=3, first_delay=1.0, draw=lambda: 1.0)
AT_ONCE = RetryPolicy(attempts=3, draw=lambda: 0.0)
UNAVAILABLE = [StoreUnavailable("gone"), BrokerUnavailable("gone"), UnroutableMessage("no queue")]


def requested(number: int) -> RunRequested:
    run = Run(**{**RUN.model_dump(), "run_id": f"run-{number}"})
    return RunRequested.of(run, source="test", time=TIME)


def deliveries(count: int, attempt: int = 1) -> list[Delivery]:
    return [Delivery(to_message(requested(n)), attempt, n) for n in range(count)]


async def dispatch(handler, given, event_type=RunRequested, **options):
    """The outcomes, in the order of their readiness."""
    ready = []
    options = {"retry_policy": POLICY, **options}
    await Dispatcher(handler, event_type, **options).dispatch(given, ready.append)
    return ready


async def settle(handler, given, event_type=RunRequested, **options):
    ready = await dispatch(handler, given, event_type, **options)
    return [settlement for each in ready for settlement in each.settlements]


async def test_work_is_settled_with_the_events_that_it_needs_published():
    async def handler(batch):
        yield [Handled(work, (RECORDED,)) for work in batch]

    given = deliveries(2)
    [ready] = await dispatch(handler, given)
    assert [message.id for message in ready.messages] == [RECORDED.id] * 2
    assert ready.settlements == [Ack(given[0]), Ack(given[1])]


async def test_outcomes_are_settled_as_they_come_not_when_the_batch_is_done():
    limiter = asyncio.Event()

    async def handler(batch):
        yield [Handled(batch[0])]
        await limiter.wait()
        yield [Handled(batch[1])]

    ready = asyncio.Queue()
    dispatching = Dispatcher(handler, RunRequested).dispatch(deliveries(2), ready.put_nowait)
    async with waiting_for("the settlements"), asyncio.TaskGroup() as tasks:
        tasks.create_task(dispatching)
        first = await ready.get()
        limiter.set()
        second = await ready.get()
    assert [each.settlements[0].delivery.receipt for each in (first, second)] == [0, 1]


async def test_what_a_handler_says_becomes_the_settlement():
    async def handler(batch):
        yield [
            Emit((RECORDED,)),
            Handled(batch[0]),
            Postponed(batch[1], 7.5, "busy"),
            Rejected(batch[2], "no such experiment"),
            Failed(batch[3], ValueError("a bug")),
        ]

    given = deliveries(4)
    [ready] = await dispatch(handler, given)
    assert ready.settlements == [
        Ack(given[0]),
        RetryLater(given[1], 7.5, "busy", counted=False),
        DeadLetterIt(given[2], "no such experiment"),
        RetryLater(given[3], 1.0, "ValueError: a bug", counted=True),
    ]
    assert [message.type for message in ready.messages] == [RECORDED.type]


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
    assert "is not JSON" in reasons[9]
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


@pytest.mark.parametrize("error", UNAVAILABLE, ids=repr)
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


async def test_what_is_away_for_too_long_is_given_back_for_a_while():
    async def handler(batch):
        raise StoreUnavailable("not now")
        yield

    given = deliveries(2, attempt=19)
    assert await settle(handler, given, patience=0.5) == [
        RetryLater(each, REDELIVERY_DELAY, "StoreUnavailable: not now", counted=False)
        for each in given
    ]


async def test_a_service_that_drains_waits_for_nothing_that_is_away():
    called = asyncio.Event()

    async def handler(batch):
        called.set()
        raise StoreUnavailable("not now")
        yield

    (given,) = deliveries(1)
    slow = RetryPolicy(first_delay=600.0, longest_delay=600.0, draw=lambda: 1.0)
    dispatcher = Dispatcher(handler, RunRequested, slow)
    ready = []
    async with waiting_for("work to be given back"), asyncio.TaskGroup() as tasks:
        tasks.create_task(dispatcher.dispatch([given], ready.append))
        await called.wait()
        dispatcher.drain()
    reason = "StoreUnavailable: not now"
    assert ready == [Ready((), [RetryLater(given, 0.0, reason, counted=False)])]


async def test_a_dispatcher_says_what_its_work_waits_for():
    read_only, seen = StoreNotWritable("read-only"), []

    async def handler(batch):
        seen.append(dispatcher.waits.error)
        if len(seen) < 3:
            raise read_only
        yield [Handled(batch[0])]
        seen.append(dispatcher.waits.error)
        yield [Handled(batch[1])]

    dispatcher = Dispatcher(handler, RunRequested, AT_ONCE)
    with structlog.testing.capture_logs() as lines:
        await dispatcher.dispatch(deliveries(2), lambda _: None)
    assert seen == [None, read_only, read_only, None]
    assert dispatcher.waits.error is None
    assert [line["log_level"] for line in lines] == ["critical", "debug"]


async def test_what_the_store_refuses_is_not_tried_again():
    async def handler(batch):
        raise StoreRefused("a number is too large")
        yield

    (given,) = deliveries(1)
    reason = "StoreRefused: a number is too large"
    assert await settle(handler, [given]) == [DeadLetterIt(given, reason)]


async def test_after_a_failed_batch_the_others_do_not_wait_for_the_culprit():
    done = asyncio.Event()

    async def handler(batch):
        if len(batch) > 1:
            raise ValueError("together")
        if batch[0].event.subject == "run-0":
            await done.wait()
        elif batch[0].event.subject == "run-2":
            done.set()
        yield [Handled(work) for work in batch]

    async with waiting_for("the settlements"):
        assert len(await settle(handler, deliveries(3))) == 3


async def test_a_broken_store_ends_the_work_and_settles_nothing():
    async def handler(batch):
        yield [Failed(batch[0], StoreBroken("disk full"))]

    with pytest.raises(StoreBroken, match="disk full"):
        await settle(handler, deliveries(2))


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


async def test_a_cancelled_dispatcher_ends_the_handler_too():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def handler(batch):
        try:
            yield [Handled(batch[0])]
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    dispatching = asyncio.create_task(
        Dispatcher(handler, RunRequested).dispatch(deliveries(2), lambda _: None)
    )
    async with waiting_for("the handler"):
        await begun.wait()
        dispatching.cancel()
        await asyncio.wait([dispatching])
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
    away=st.sampled_from(UNAVAILABLE),
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
                        "retry": Postponed(work, 1.0, "later"),
                        "reject": Rejected(work, "never"),
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
        yield [Rejected(batch[0], "no such experiment"), Failed(batch[1], ValueError("bug"))]

    with structlog.testing.capture_logs() as lines:
        await settle(handler, deliveries(2))
    experiment_id = RUN.experiment_id
    assert [(line["run_id"], line["correlation_id"]) for line in lines] == [
        ("run-0", experiment_id),
        ("run-1", experiment_id),
    ]
