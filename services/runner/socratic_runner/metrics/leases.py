"""The store's answers to claims of leases, read when Prometheus asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.hosting.metrics.process_metrics import Metrics
from socratic_bench.hosting.metrics.scraped_metrics import add_counter


def add_lease_metrics(metrics: Metrics, answers: Mapping[LeaseAnswer, int]) -> None:
    """Register the counts of the answers; answers that never came count 0."""

    def read() -> Iterator[tuple[Sequence[str], float]]:
        for answer in LeaseAnswer:
            yield [answer.name.lower()], answers.get(answer, 0)

    add_counter(
        metrics,
        "socratic_lease_answers",
        "Answers of the store to claims of leases: granted, held by another runner, answered "
        "already, over_budget, stopped",
        ["answer"],
        read,
    )
