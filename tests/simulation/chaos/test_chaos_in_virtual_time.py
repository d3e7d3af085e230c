"""Benchmarks under faults in virtual time; README.md says how to add to them."""

import hashlib
import os
import subprocess
import sys

import pytest

from tests.lengths import at_length
from tests.simulation.chaos.command import of_seed, report
from tests.simulation.chaos.faults import KINDS, Fault
from tests.simulation.chaos.invariants import INVARIANTS
from tests.simulation.chaos.mutations import MUTATIONS, StaleMutation
from tests.simulation.chaos.run import run
from tests.simulation.chaos.schedule import Schedule, shrunk

MOST_SEEDS = 200
SEEDS = at_length(50, MOST_SEEDS)
QUICK = "double_fold"
PARTS = 4
"""Tests that share the seeds, so that several processes can."""

TRACE = """
from hashlib import sha256
from tests.simulation.chaos.run import run
from tests.simulation.chaos.schedule import Schedule
for seed in ({seeds}):
    trace = run(Schedule.drawn(seed), trace=True).trace
    print(sha256("\\n".join(trace).encode()).hexdigest())
"""


@pytest.mark.two_lengths
@pytest.mark.parametrize("part", range(PARTS))
def test_a_benchmark_survives_the_faults_of_each_seed(part):
    for seed in range(part, SEEDS, PARTS):
        outcome = of_seed(seed)
        assert not outcome.broken, report(outcome)


def test_a_seed_has_the_same_trace_in_another_process_with_another_order_of_sets():
    seeds = (3, 17, 97)
    traces = ["\n".join(run(Schedule.drawn(seed), trace=True).trace) for seed in seeds]
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    program = TRACE.format(seeds=",".join(map(str, seeds)))
    other = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert other.stdout.split() == [hashlib.sha256(trace.encode()).hexdigest() for trace in traces]


def test_seeds_draw_every_kind_of_fault():
    drawn = {fault.kind for seed in range(MOST_SEEDS) for fault in Schedule.drawn(seed).faults}
    assert drawn == KINDS.keys()


def test_a_script_replays_its_schedule():
    schedule = Schedule.drawn(5)
    replayed = []
    program = schedule.script().replace("replay(", "replayed.append(", 1)
    program = "\n".join(line for line in program.splitlines() if "command" not in line)
    exec(program, {"replayed": replayed})
    assert replayed == [schedule]


def test_shrinking_leaves_the_faults_that_matter():
    schedule = Schedule(1, 1, Schedule.quiet(1).pace, tuple(Fault(at, "drain") for at in range(9)))
    needed = {2, 7}

    def fails(shorter):
        return needed <= {fault.at for fault in shorter.faults}

    assert {fault.at for fault in shrunk(schedule, fails).faults} == needed


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_applies_to_the_product(name):
    MUTATIONS[name].check()


def test_a_mutation_that_applies_no_longer_says_so():
    with pytest.raises(StaleMutation, match="0 times"):
        MUTATIONS["double_fold"].applied("nothing of it")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.long][: each != QUICK]) for each in MUTATIONS]
)
def test_a_fault_put_back_is_found(name):
    found = subprocess.run(
        [sys.executable, "-m", "tests.simulation.chaos.mutations", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert any(invariant in found.stdout for invariant in INVARIANTS)
