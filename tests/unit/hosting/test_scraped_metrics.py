"""Metrics of a service's own, read when Prometheus asks."""

import pytest

from socratic_bench.hosting.metrics import Metrics, add_counter, add_gauge


def test_values_are_read_when_they_are_asked_for_and_not_before():
    metrics, waiting, reads = Metrics(), {"a": 1.0}, []

    def read():
        reads.append(1)
        return [([name], value) for name, value in waiting.items()]

    add_gauge(metrics, "socratic_waiting", "What waits", ["name"], read)
    assert reads == []
    waiting["b"] = 2
    value = metrics.registry.get_sample_value
    assert [value("socratic_waiting", {"name": name}) for name in "ab"] == [1, 2]
    del waiting["a"]
    assert value("socratic_waiting", {"name": "a"}) is None


def test_a_counter_is_shown_as_a_total():
    metrics = Metrics()
    add_counter(metrics, "socratic_done", "What was done", ["kind"], lambda: [(["x"], 3)])
    assert b'socratic_done_total{kind="x"} 3.0' in metrics.text()


def test_a_name_is_registered_once():
    metrics = Metrics()
    add_gauge(metrics, "socratic_waiting", "What waits", ["name"], list)
    with pytest.raises(ValueError, match="socratic_waiting"):
        add_counter(metrics, "socratic_waiting", "What waits", ["name"], list)
