"""The metric of messages that the reconciler sent again."""

from __future__ import annotations

from collections import Counter

from socratic_bench.hosting.metrics import Metrics
from socratic_curator.entrypoints.container import add_reconciler_metrics
from socratic_curator.reconciling.healer import SentAgain


def test_what_was_sent_again_is_counted_from_nothing() -> None:
    metrics, sent_again = Metrics(), Counter[SentAgain]()
    add_reconciler_metrics(metrics, sent_again)
    value = metrics.registry.get_sample_value
    kinds = ("runs", "responses", "failures", "plans")
    assert [value("socratic_reconciled_total", {"what": kind}) for kind in kinds] == [0, 0, 0, 0]
    sent_again["responses"] += 3
    assert [value("socratic_reconciled_total", {"what": kind}) for kind in kinds] == [0, 3, 0, 0]
