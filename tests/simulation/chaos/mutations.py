"""Faults put back into the product, one at a time: the simulation has to find each.

    python -m tests.simulation.chaos.mutations                # all, each until a seed fails
    python -m tests.simulation.chaos.mutations double_fold --seeds 0:2000

A mutation replaces a piece of one module's source while Python imports it, in a process of its own;
no file changes. One whose piece is gone, or stands there twice, does not apply any more: the
command fails, and somebody writes it anew.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Final

from socratic_bench.errors import SocraticBenchError


class StaleMutation(SocraticBenchError):
    """A mutation that no longer applies to its module."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A fault of the product as a change of one module's source."""

    what: str
    """The fault, and the commit that mended it, if it was one of the project's own."""

    module: str
    old: str
    new: str
    seed: int
    """A seed that found it; another one may, once there are other kinds of faults."""

    def applied(self, source: str) -> str:
        """Return the faulty source. Raises StaleMutation."""
        if (times := source.count(self.old)) != 1:
            raise StaleMutation(
                f"{self.module}: the mutation replaces a piece of source that stands there "
                f"{times} times; write the mutation anew:\n{self.old}"
            )
        return source.replace(self.old, self.new)

    def check(self) -> None:
        """Raise StaleMutation if it does not apply."""
        self.applied(_file_of(self.module).read_text(encoding="utf-8"))


MUTATIONS: Final = {
    "lost_republication": Mutation(
        "A redelivered request of an answered run publishes nothing, though the runner that stored "
        "the response died before it published it (e98011d8).",
        "socratic_runner.handling.request_sorting",
        "sorted_.settled.append(self.outcomes.of_answered(work, responses))",
        "sorted_.settled.append(Handled(work))",
        seed=55,
    ),
    "lapsing_lease": Mutation(
        "A runner with calls in flight sends no heartbeats: its leases lapse, though it is alive "
        "and has replies to store (4a21b490).",
        "socratic_runner.leases.heartbeat",
        "if self._in_hand or self._held or self._told_of_troubles:",
        "if self._told_of_troubles:",
        seed=81,
    ),
    "double_fold": Mutation(
        "A score that comes twice counts twice.",
        "socratic_bench.adapters.stores.memory.facts",
        "is_new=score_of(scored) not in stored",
        "is_new=True",
        seed=3,
    ),
    "counted_redelivery": Mutation(
        "A redelivery counts as an attempt (8baf73b5).",
        "socratic_bench.adapters.brokers.memory.queue",
        "again = waiting._replace(redeliveries=redeliveries)",
        "again = waiting._replace(redeliveries=redeliveries, attempts=waiting.attempts + 1)",
        seed=1410,
    ),
    "settled_too_early": Mutation(
        "A message is settled before the broker has what follows from it (f7c29a74).",
        "socratic_bench.consuming.publication",
        """\
                await self._publish_patiently([each for one in ready for each in one.messages])
                await self._settle([each for one in ready for each in one.settlements])
""",
        """\
                await self._settle([each for one in ready for each in one.settlements])
                await self._publish_patiently([each for one in ready for each in one.messages])
""",
        seed=830,
    ),
    "stolen_lease": Mutation(
        "A turn whose call is in flight is leased to another runner.",
        "socratic_bench.domain.leasing",
        "return held.is_over and held.holder is not Holder.OVERDUE",
        "return True",
        seed=9,
    ),
    "kept_reservation": Mutation(
        "A lease that is given back unused keeps its part of the budget.",
        "socratic_bench.adapters.stores.memory.leases",
        "settle(state, lease, 0, begun=False)",
        "settle(state, lease, None, begun=False)",
        seed=8,
    ),
    "forgotten_resume": Mutation(
        "A resumed experiment is not requested again, though its runners settled its requests.",
        "socratic_curator.reconciling.reconciler",
        "if running.state is not ExperimentState.RESUMED:",
        "if running.state is not ExperimentState.DELETED:",
        seed=120,
    ),
}


class _MutatingLoader(importlib.machinery.SourceFileLoader):
    """Compiles the faulty source of a module."""

    def __init__(self, mutation: Mutation, path: str) -> None:
        super().__init__(mutation.module, path)
        self._mutation = mutation

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self._mutation.applied(self.get_data(path).decode())
        return self.source_to_code(source.encode(), path)


class _MutatingFinder(importlib.abc.MetaPathFinder):
    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutation.module:
            return None
        sys.meta_path.remove(self)
        path = str(_file_of(fullname))
        loader = _MutatingLoader(self._mutation, path)
        return importlib.util.spec_from_file_location(fullname, path, loader=loader)


def _file_of(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise StaleMutation(f"{module}: there is no such module; write the mutation anew")
    return Path(spec.origin)


def apply(mutation: Mutation) -> None:
    """Put a fault into a module that nobody in this process has imported yet."""
    assert mutation.module not in sys.modules, f"{mutation.module} is imported already"
    sys.meta_path.insert(0, _MutatingFinder(mutation))


def seeds_until_found(name: str, seeds: Sequence[int]) -> str | None:
    """Return which seed finds a mutation, and how; None if none of them does."""
    apply(MUTATIONS[name])
    from tests.simulation.chaos.command import of_seed  # it imports the product, mutated now

    for number, seed in enumerate(seeds, start=1):
        if broken := of_seed(seed).broken:
            invariant, reason = broken[0]
            return f"seed {seed}, after {number} seeds: {invariant}: {reason[:120]}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Find faults that were put back")
    parser.add_argument("name", nargs="?", choices=MUTATIONS)
    parser.add_argument("--seeds", help="in place of a seed that found it, and 0:2000 after that")
    given = parser.parse_args(arguments)
    first, _, end = (given.seeds or "0:2000").partition(":")
    if given.name is not None:
        known = [] if given.seeds else [MUTATIONS[given.name].seed]
        found = seeds_until_found(given.name, [*known, *range(int(first), int(end))])
        print(f"{given.name}: {found or 'NOT FOUND'}", flush=True)
        return found is None
    seeds = ["--seeds", given.seeds] if given.seeds else []
    command = [sys.executable, "-m", __spec__.name]
    return max(
        subprocess.run([*command, each, *seeds], check=False).returncode for each in MUTATIONS
    )


if __name__ == "__main__":
    sys.exit(main())
