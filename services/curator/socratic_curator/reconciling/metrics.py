"""Metrics of the reconciler, read when Prometheus asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from socratic_bench.hosting.metrics.process_metrics import Metrics
from socratic_bench.hosting.metrics.scraped_metrics import add_counter
from socratic_curator.reconciling.healer import SentAgain


def add_reconciler_metrics(metrics: Metrics, sent_again: Mapping[SentAgain, int]) -> None:
    """Register the reconciler's counts by kind; a kind that was never sent again counts 0."""

    def read() -> Iterator[tuple[Sequence[str], float]]:
        for what in get_args(SentAgain):
            yield [what], sent_again.get(what, 0)

    add_counter(
        metrics,
        "socratic_reconciled",
        "What was sent again because the broker had lost it, by kind",
        ["what"],
        read,
    )
