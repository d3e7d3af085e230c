"""What has to hold after every run, whatever broke.

`@invariant` adds a function: it yields a sentence for each contradiction, and nothing if all is
well. It runs after the end of all processes, and may look at everything in the world.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from itertools import zip_longest
from typing import Final

from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.events.codec import event_of
from socratic_bench.events.event_types import ExperimentCompleted
from socratic_bench.results.verification import verify
from tests.simulation.chaos.benchmark import MOST_A_CALL
from tests.simulation.chaos.world import World

Invariant = Callable[[World, bytes | None], AsyncIterator[str]]

INVARIANTS: Final[dict[str, Invariant]] = {}


def invariant(check: Invariant) -> Invariant:
    """Add an invariant, by the name of its function."""
    INVARIANTS[check.__name__] = check
    return check


async def broken(world: World, expected: bytes | None) -> list[tuple[str, str]]:
    """Return the broken invariants of a run, each with its contradiction."""
    return [
        (name, sentence)
        for name, check in INVARIANTS.items()
        async for sentence in check(world, expected)
    ]


async def cells(world: World) -> bytes:
    """Return the cells of the experiment, byte by byte."""
    found = await world.store.store.cells([world.experiment_id])
    return json.dumps([[*cell.key, cell.dimension, cell.to_json()] for cell in found]).encode()


@invariant
async def nothing_broke_meanwhile(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """No process ended by itself, and nothing was published after the end."""
    for sentence in world.broken:
        yield sentence


@invariant
async def it_completes(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """The experiment is complete within the bound of quiet time, exactly once for everybody."""
    store = world.store.store
    stored = await store.experiment(world.experiment_id)
    if stored is None or stored.completed_at is None:
        known = await store.progress_of([world.experiment_id])
        yield f"the experiment is not complete: {known.get(world.experiment_id)}"
        return
    progress = await store.progress(world.experiment_id)
    if progress.done != progress.planned:
        yield f"complete with {progress.done} of {progress.planned} runs"
    for message in world.completions:
        event = event_of(message)
        assert isinstance(event, ExperimentCompleted)
        said = (event.time, event.data.planned, event.data.failed)
        if said != (stored.completed_at, progress.planned, progress.failed):
            yield f"the announced completion {said} is not the stored one"


@invariant
async def cells_are_those_of_a_quiet_run(
    world: World, expected: bytes | None
) -> AsyncIterator[str]:
    """Every figure is the same, byte by byte."""
    found = await cells(world)
    if expected is not None and found != expected:
        pairs = zip_longest(json.loads(found), json.loads(expected))
        has, needs = next(pair for pair in pairs if pair[0] != pair[1])
        yield f"the first cell that differs is {has}, and should be {needs}"
    for finding in await verify(world.store.store, world.experiment_id):
        yield str(finding)


@invariant
async def each_turn_is_paid_once(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """No turn is paid twice but those whose call was in flight at a kill, or lost by the provider.

    Each such call excuses one further call, which may be the one beside it.
    """
    paid: Counter[tuple[str, int]] = Counter(call.turn for call in world.provider.calls)
    excuses = defaultdict[tuple[str, int], list[str]](list)
    for call in world.provider.calls:
        if call.excuse:
            excuses[call.turn].append(call.excuse)
    for turn, times in sorted(paid.items()):
        if times > 1 + len(excuses[turn]):
            calls = [
                f"{call.process} at {call.begun_at:.3f} ({call.excuse or 'no excuse'})"
                for call in world.provider.calls
                if call.turn == turn
            ]
            yield f"turn {turn[1]} of {turn[0]} was paid {times} times: {', '.join(calls)}"


@invariant
async def nothing_paid_is_lost(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """Every paid reply is stored and scored, and every stored failure is folded."""
    state = world.store.store._state
    facts = state.facts_of(world.experiment_id)
    for call in world.provider.calls:
        run_id, turn = call.turn
        if turn not in state.responses.get(run_id, {}):
            yield f"turn {turn} of {run_id} was paid and is not stored"
    if unscored := [
        f"{each.run.run_id}/{each.turn}" for each in state.unscored(world.experiment_id)
    ]:
        yield f"stored and not scored: {', '.join(unscored)}"
    for run_id, recorded in facts.recorded.items():
        if recorded.failure.run.run_id not in {key.run_id for key in facts.failures}:
            yield f"the failure of run {run_id} is stored and not folded"


@invariant
async def the_money_is_accounted_for(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """What is committed is the cost of the stored replies, and of calls that ended without one.

    The reservation of a lease that nobody ends stays committed, for a kill may be paid for.
    """
    state = world.store.store._state
    spent = sum(
        response.cost_nanodollars or 0
        for turns in state.responses.values()
        for response in turns.values()
    )
    account = state.account_of(world.experiment_id)
    unanswered = sum(bool(call.excuse) for call in world.provider.calls)
    most = spent + unanswered * MOST_A_CALL
    if account.committed < spent or (account.committed > most and not world.left_leases):
        yield f"{account.committed} nanodollars are committed, and {spent} were spent"
    if account.budget is not None and account.committed > account.budget:
        yield f"{account.committed} nanodollars are committed, and the budget is {account.budget}"


@invariant
async def rate_limits_hold(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """All runners together call a model as often in a minute as it allows.

    A runner may call once as it begins, before it knows of the others' calls. Calls that waited for
    a store that took nothing begin together.
    """
    most = world.pace.requests_per_minute
    if most is None:
        return
    most += sum(process.kind == "runner" for process in world.all_processes)
    for model in world.experiment.manifest.models_by_id:
        times = sorted(at for at, called in world.provider.requests if called == model)
        for number, first in enumerate(times[:-most]):
            waited = any(0 <= first - again < 60.0 for again in world.writable_again)
            if times[number + most] < first + 60.0 and not waited:
                yield f"{model} got more than {most} calls in the minute from {first:.1f} on"
                break


@invariant
async def only_losses_are_healed(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """The reconciler sends nothing again where no message was lost and nobody was away for long.

    What heals after minutes would hide a message that the services lose by themselves. A failure
    that waits in a runner for room in a queue looks lost.
    """
    held_up = {"failures"} if world.had_full_queues else set()
    for process in world.all_processes if world.is_harmless else ():
        if process.reconciler is None:
            continue
        sent = {what: n for what, n in process.reconciler.sent_again.items() if n}
        if sent.keys() - held_up:
            yield f"{process.name} sent again: {dict(sent)}"


@invariant
async def only_poison_is_dead(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """Every dead letter is poison, and no poison is lost but in a queue that lost everything."""
    for letter in await world.dead_letters():
        if letter.message.id not in world.poison:
            yield f"a dead letter in {letter.queue}: {letter.message.id}: {letter.reason}"


@invariant
async def nothing_is_left_over(world: World, expected: bytes | None) -> AsyncIterator[str]:
    """No queue holds a message, no lease is open, and no process has a task."""
    for queue in WORK_QUEUES:
        if left := world.broker.outstanding_in(queue.name):
            yield f"{left} messages are left in {queue.name}"
    state = world.store.store._state
    for turn, calls in state.facts_of(world.experiment_id).calls.items():
        held = calls.open(state.owners, world.store.store._clock())
        if held is not None and not (held.is_over or held.holder.is_dead):
            yield f"turn {turn.turn} of {turn.run_id} is still leased to {calls.owner}"
    for task in world.left_tasks():
        yield f"a task is left: {task}"
