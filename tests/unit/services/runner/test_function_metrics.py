"""A function writes a line of metrics for each model that an invocation called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind
from socratic_bench.hosting.functions.embedded_metrics import EmbeddedMetrics
from socratic_runner.metrics.function_calls import FunctionCallMetrics

REPLY = Usage(visible_output_tokens=20, input_tokens=100)


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_calls_tokens_cost_and_refused_writes_stand_in_a_line_for_each_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = 3
    calls = FunctionCallMetrics(EmbeddedMetrics("runner", "test"), lambda: refused)
    calls.replied("a/one", 1.5, REPLY, 2_500_000_000)
    calls.replied("a/one", 0.5, REPLY, None)
    calls.failed("a/one", 1.0, FailureKind.RATE_LIMITED)
    calls.failed("b/two", 0.25, FailureKind.AUTH)
    refused = 5
    calls.write()
    one, two = written(capsys)
    assert (one["model"], two["model"]) == ("a/one", "b/two")
    assert one["outcomes"] == {"ok": 2, "rate_limited": 1}
    assert (one["Calls"], one["FailedCalls"], one["CallUSD"]) == (3, 1, 2.5)
    assert (one["input_tokens"], one["output_tokens"], one["refused_writes"]) == (200, 40, 2)
    assert (two["outcomes"], two["FailedCalls"], two["CallUSD"]) == ({"auth": 1}, 1, 0.0)
    [told] = one["_aws"]["CloudWatchMetrics"]
    assert told["Dimensions"] == [["Stage", "Service"]]
    units = {each["Name"]: each["Unit"] for each in told["Metrics"]}
    assert units == {"Calls": "Count", "FailedCalls": "Count", "CallUSD": "None"}


def test_the_next_invocation_counts_anew_and_writes_nothing_without_calls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = FunctionCallMetrics(EmbeddedMetrics("runner", "test"), lambda: 0)
    calls.replied("a/one", 1.0, REPLY, 1)
    calls.write()
    calls.write()
    assert len(written(capsys)) == 1
