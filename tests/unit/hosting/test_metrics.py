"""The metrics of the age of work in hand, and of readiness."""

from datetime import UTC, datetime, timedelta

from socratic_bench.errors import StoreUnavailable
from socratic_bench.hosting import metrics as hosting_metrics
from socratic_bench.hosting.http.readiness import Readiness
from socratic_bench.hosting.metrics import MessageMetrics, Metrics, ReadyMetrics
from tests.waiting import until

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


class FixedClock:
    def now(self) -> datetime:
        return NOON


def test_the_oldest_message_is_that_of_all_batches_in_hand():
    metrics = Metrics()
    messages = MessageMetrics(metrics, FixedClock())
    messages.expect(["judge"])

    def oldest() -> float | None:
        return metrics.registry.get_sample_value(
            "socratic_oldest_message_seconds", {"queue": "judge"}
        )

    assert oldest() == 0
    with messages.holding("judge", [NOON, NOON - timedelta(seconds=30)]):
        with messages.holding("judge", [NOON - timedelta(minutes=20)]):
            assert oldest() == 1200
        assert oldest() == 30
    without_zone = (NOON - timedelta(seconds=10)).replace(tzinfo=None)
    with messages.holding("judge", [NOON, without_zone]):
        assert oldest() == 10
    with messages.holding("judge", [NOON + timedelta(seconds=5)]):
        assert oldest() == 0  # the publisher's clock is ahead
    with messages.holding("judge", []):
        assert oldest() == 0
    assert oldest() == 0


async def test_readiness_is_a_metric(monkeypatch):
    monkeypatch.setattr(hosting_metrics, "DEPTH_INTERVAL", 0.01)
    away = False

    async def store() -> None:
        if away:
            raise StoreUnavailable("connection refused")

    metrics, readiness = Metrics(), Readiness({"store": store})

    async def ready() -> float | None:
        return metrics.registry.get_sample_value("socratic_ready")

    async with ReadyMetrics(metrics).watching(readiness):
        assert await ready() == 0
        readiness.start()
        await until(ready, lambda value: value == 1, "being ready")
        away = True
        await until(ready, lambda value: value == 0, "not being ready")
