"""The cost of simulated chaos: hours of virtual time per second, and processor time per run.

python -m tests.benchmarks.simulated_chaos [SEEDS]
"""

from __future__ import annotations

import sys

from tests.simulation.chaos.benchmark import SHAPES
from tests.simulation.chaos.command import Totals, of_seed
from tests.simulation.chaos.run import quiet


def main(seeds: int = 50) -> None:
    for shape in range(SHAPES):
        quiet(shape)
    totals = Totals()
    for seed in range(seeds):
        totals.add(of_seed(seed))
    print(f"simulated chaos: {totals}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
