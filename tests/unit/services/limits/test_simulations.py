"""How well the limit that a gate finds out fits servers that nobody told it about."""

import asyncio

import pytest

from socratic_runner.limits.gate import Gate
from tests.unit.services.limits.simulated_server import Server, call, keep_calling
from tests.unit.services.limits.virtual_time import in_virtual_time, now

WARM = 60.0
END = 300.0


def a_gate(most: int = 250) -> Gate:
    return Gate(most=most, clock=now)


@pytest.mark.parametrize(
    ("capacity", "most_refused"),
    [
        (2, 0.06),
        (4, 0.05),
        (10, 0.03),
        pytest.param(40, 0.01, marks=pytest.mark.long),
        pytest.param(100, 0.003, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_a_server_that_refuses_what_is_too_much_is_used_well(capacity, most_refused, sigma):
    server = Server(capacity, sigma=sigma)
    in_virtual_time(keep_calling(a_gate(), server, 250, END))
    used = sum(server.latencies) / (capacity * END)
    assert used >= 0.8
    assert server.answered_since(WARM) >= 0.8 * capacity * (END - WARM) / (1 + sigma / 4)
    assert server.refused <= most_refused * (server.refused + len(server.answered))


@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_a_server_that_becomes_slow_under_load_is_not_flooded(sigma):
    server = Server(10**6, sigma=sigma, slowdown=lambda in_hand: max(1.0, in_hand / 20))
    gate = a_gate()
    in_virtual_time(keep_calling(gate, server, 250, END))
    assert 15 <= gate.concurrency_limit <= 60
    assert server.answered_since(WARM) >= 0.9 * 20 * (END - WARM) / (1 + sigma / 4)
    typical = sorted(server.latencies[-1000:])[500]
    assert typical <= 2.5, "instead of the 12.5 that 250 calls at once would take"


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_latencies_that_scatter_do_not_lower_the_limit(seed):
    server = Server(10**6, sigma=0.4, seed=seed)
    gate = a_gate(most=32)
    lowest = 32.0

    async def scenario():
        nonlocal lowest
        calling = asyncio.create_task(keep_calling(gate, server, 40, END))
        await asyncio.sleep(WARM)
        while not calling.done():
            lowest = min(lowest, gate.concurrency_limit)
            await asyncio.sleep(1)
        await calling

    in_virtual_time(scenario())
    assert lowest >= 32 * 0.8


@pytest.mark.parametrize("factor", [2.5, 5, 10])
def test_a_model_that_becomes_slower_is_asked_as_much_as_before_after_a_while(factor):
    server = Server(10**6, sigma=0.4, slowdown=lambda _: factor if now() > 100 else 1.0)
    gate = a_gate(most=32)
    in_virtual_time(keep_calling(gate, server, 40, 800))
    assert gate.concurrency_limit == 32


@pytest.mark.parametrize("capacity", [10, pytest.param(40, marks=pytest.mark.long)])
def test_two_gates_before_one_server_come_to_about_equal_shares(capacity):
    server = Server(capacity, sigma=0.3)
    answered = [0, 0]

    async def keep(which, gate):
        async def run():
            while now() < 400:
                if not await call(gate, server):
                    await asyncio.sleep(0.2)
                elif now() > 100:
                    answered[which] += 1

        async with asyncio.TaskGroup() as tasks:
            for _ in range(100):
                tasks.create_task(run())

    async def scenario():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keep(0, a_gate()))
            await asyncio.sleep(30)
            tasks.create_task(keep(1, a_gate()))

    in_virtual_time(scenario())
    assert min(answered) >= 0.75 * max(answered)
    assert sum(answered) >= 0.8 * capacity * 300 / 1.05


def test_after_an_outage_it_comes_back_to_what_it_had():
    server = Server(40)
    gate = a_gate()

    async def scenario():
        calling = asyncio.create_task(keep_calling(gate, server, 100, 400))
        await asyncio.sleep(100)
        server.capacity = 0
        await asyncio.sleep(100)
        assert gate.concurrency_limit < 2
        server.capacity = 40
        await calling

    in_virtual_time(scenario())
    assert gate.concurrency_limit >= 20


def test_twenty_five_models_with_a_ceiling_of_four_are_used_to_the_full():
    runs = 400
    ideal = runs * 0.2 / 4

    async def scenario():
        servers = [Server(4, seconds=0.2) for _ in range(25)]
        gates = [a_gate() for _ in servers]
        for gate in gates:
            gate.set_ceilings(concurrency=4, requests_per_minute=None, tokens_per_minute=None)
        async with asyncio.TaskGroup() as tasks:
            for gate, server in zip(gates, servers, strict=True):
                for _ in range(runs):
                    tasks.create_task(call(gate, server))
        assert sum(server.refused for server in servers) == 0
        return now()

    assert in_virtual_time(scenario()) <= ideal / 0.97
