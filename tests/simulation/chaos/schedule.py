"""A schedule: the benchmark and the faults of a run, drawn from a seed; its repr replays it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tests.simulation.chaos.benchmark import QUICK, SHAPES, Pace
from tests.simulation.chaos.chance import stream
from tests.simulation.chaos.faults import KINDS, Fault

MOST_FAULTS: Final = 8
LENGTHS: Final = (30.0, 120.0, 400.0)
"""Seconds in which the faults of a run begin; one of them is drawn."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that decides about a run."""

    seed: int
    """What the run itself draws from, such as the latencies."""

    shape: int
    pace: Pace
    faults: tuple[Fault, ...] = ()

    @classmethod
    def quiet(cls, shape: int) -> Schedule:
        return cls(0, shape, QUICK)

    @classmethod
    def drawn(cls, seed: int) -> Schedule:
        """Draw a schedule."""
        chance = stream(seed, "schedule")
        length = chance.choice(LENGTHS)
        # Without a loss there is nothing to heal, which shows more.
        harmless = chance.random() < 0.4
        kinds = [name for name, kind in KINDS.items() if kind.harmless or not harmless]
        chosen = [chance.choice(kinds) for _ in range(chance.randint(1, MOST_FAULTS))]
        drawn = [
            Fault(round(chance.uniform(0.0, length), 3), kind, KINDS[kind].drawn(chance))
            for kind in chosen
        ]
        return cls(
            seed=seed,
            shape=chance.randrange(SHAPES),
            pace=Pace.drawn(chance),
            faults=tuple(sorted(drawn, key=lambda fault: fault.at)),
        )

    @property
    def is_harmless(self) -> bool:
        """Whether no message can be lost, and nobody is away for long."""
        return all(KINDS[fault.kind].harmless for fault in self.faults)

    def script(self) -> str:
        """Return a program that replays this run."""
        faults = "".join(f"        {fault!r},\n" for fault in self.faults)
        return (
            "from tests.simulation.chaos.benchmark import Pace\n"
            "from tests.simulation.chaos.command import replay\n"
            "from tests.simulation.chaos.faults import Fault\n"
            "from tests.simulation.chaos.schedule import Schedule\n\n"
            "replay(\n"
            f"    Schedule(\n        seed={self.seed}, shape={self.shape}, pace={self.pace!r},\n"
            f"        faults=(\n    {faults.replace(chr(10) + ' ', chr(10) + '     ')}"
            "        ),\n    )\n)\n"
        )


def shrunk(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """Return a schedule that still fails, and none of whose faults can be left out."""
    size = max(1, len(schedule.faults) // 2)
    while True:
        start = 0
        while start < len(schedule.faults):
            rest = schedule.faults[:start] + schedule.faults[start + size :]
            shorter = replace(schedule, faults=rest)
            if fails(shorter):
                schedule = shorter
            else:
                start += size
        if size == 1:
            return schedule
        size //= 2
