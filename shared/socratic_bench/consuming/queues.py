"""The work queues: one event type, one handler, one dead-letter queue each."""

from __future__ import annotations

from typing import Final

from socratic_bench.events import event_types
from socratic_bench.ports.broker import WorkQueue

# D-143: larger batches leave a second runner without work, smaller ones cost the broker.
RUNNER_RUN_REQUESTED: Final = WorkQueue(
    "runner-run-requested", event_types.RUN_REQUESTED, separate_groups=True, batch=25
)
JUDGE_RESPONSE_RECORDED: Final = WorkQueue(
    "judge-response-recorded", event_types.RESPONSE_RECORDED, batch=50
)
CURATOR_RESPONSE_SCORED: Final = WorkQueue(
    "curator-response-scored", event_types.RESPONSE_SCORED, batch=200
)
CURATOR_RUN_FAILED: Final = WorkQueue("curator-run-failed", event_types.RUN_FAILED)

WORK_QUEUES: Final = (
    RUNNER_RUN_REQUESTED,
    JUDGE_RESPONSE_RECORDED,
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
)
"""All work queues. Every service declares all of them, so that each event has a queue."""

BROADCASTS: Final = (event_types.AGGREGATE_UPDATED, event_types.EXPERIMENT_COMPLETED)
"""Event types that the broker broadcasts to listeners; without a listener they are dropped."""
