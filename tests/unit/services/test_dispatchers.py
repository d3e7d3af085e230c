"""A dispatcher alone does a service's work: no worker, no consumer, no broker."""

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.outcomes import Ack
from socratic_bench.events.codec import Message, decode, to_message
from socratic_bench.events.event_types import RunRequested
from socratic_bench.ports.broker import Delivery
from socratic_curator.bootstrap import curator_dispatchers
from socratic_judge.bootstrap import judge_dispatcher
from socratic_runner.bootstrap import runner_dispatcher, unwatched
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.models.registry import open_client
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles, tell_the_log
from tests.unit.events.examples import TIME
from tests.unit.services.two_runs import EXPERIMENT

NO_EVENT = Message("x", "no.event", "g", b"{")


class Function:
    """A function's work on a batch: returns the receipts of the failed messages."""

    def __init__(self) -> None:
        self.published: list[Message] = []

    async def publish(self, messages):
        self.published += messages

    async def call(self, dispatcher, messages):
        given = [Delivery(message, 1, receipt) for receipt, message in enumerate(messages)]
        settlements = await dispatcher.settlements(given)
        done = {each.delivery.receipt for each in settlements if isinstance(each, Ack)}
        return [each.receipt for each in given if each.receipt not in done]

    def kinds(self):
        return [decode(message.body).type.split(".", 2)[2] for message in self.published]


async def test_the_three_services_pass_an_experiment_on_as_functions(store):
    requests = [
        to_message(RunRequested.of(run, source="test", time=TIME)) for run in EXPERIMENT.runs()
    ]
    runner, judge, curator = Function(), Function(), Function()
    clock = SystemClock()

    async with runner_dispatcher(
        runner.publish,
        store,
        clock,
        open_client,
        RunnerSettings(),
        owner="function",
        limits=store,
        observer=UNOBSERVED,
        troubles=Troubles(UNOBSERVED, tell_the_log),
        watch=unwatched,
    ) as dispatcher:
        assert await runner.call(dispatcher, [*requests, NO_EVENT]) == [2]
    assert runner.kinds() == ["response.recorded.v1"] * 2
    assert len(await store.responses([run.run_id for run in EXPERIMENT.runs()])) == 2

    scoring = judge_dispatcher(judge.publish, clock)
    assert await judge.call(scoring, [NO_EVENT, *runner.published]) == [0]
    assert judge.kinds() == ["response.scored.v1"] * 2

    scores, failures = curator_dispatchers(curator.publish, store, clock)
    assert await curator.call(scores, [*judge.published, NO_EVENT]) == [2]
    assert await curator.call(failures, [NO_EVENT]) == [0]
    assert curator.kinds() == ["aggregate.updated.v1", "experiment.completed.v1"]
    assert (await store.progress(EXPERIMENT.experiment_id)).done == 2
