"""The work queues: one event type, one handler, one dead-letter queue each."""

from __future__ import annotations

from typing import Final

from socratic_bench.events import (
    aggregate_updated,
    experiment_completed,
    response_recorded,
    response_scored,
    run_failed,
    run_requested,
)
from socratic_bench.ports.broker import WorkQueue

# D-143: larger batches leave a second runner without work, smaller ones cost the broker.
RUNNER_RUN_REQUESTED: Final = WorkQueue(
    "runner-run-requested", run_requested.TYPE, separate_groups=True, batch=25
)
JUDGE_RESPONSE_RECORDED: Final = WorkQueue(
    "judge-response-recorded", response_recorded.TYPE, batch=50
)
CURATOR_RESPONSE_SCORED: Final = WorkQueue(
    "curator-response-scored", response_scored.TYPE, batch=200
)
CURATOR_RUN_FAILED: Final = WorkQueue("curator-run-failed", run_failed.TYPE)

WORK_QUEUES: Final = (
    RUNNER_RUN_REQUESTED,
    JUDGE_RESPONSE_RECORDED,
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
)
"""All work queues. Every service declares all of them, so that each event has a queue."""

BROADCASTS: Final = (aggregate_updated.TYPE, experiment_completed.TYPE)
"""Event types that the broker broadcasts to listeners; without a listener they are dropped."""
