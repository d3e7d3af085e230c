"""The window in which a runner may have calls in flight."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from socratic_bench.errors import ModelCallFailed
from socratic_runner.conversations.call_preparation import ALL_TIME, STORING_SECONDS, CallWindow
from socratic_runner.conversations.conversation import TurnPutOff


def a_model(*, deadline: float = 60.0, paused_for: float = 0.0) -> Any:
    return cast(
        "Any", SimpleNamespace(deadline=deadline, limiter=SimpleNamespace(paused_for=paused_for))
    )


def test_a_process_has_all_the_time() -> None:
    assert ALL_TIME.refusal(a_model(deadline=3_000, paused_for=3_000)) is None


def test_a_call_needs_its_deadline_and_the_time_to_store_its_reply() -> None:
    needed = 60 + STORING_SECONDS
    assert CallWindow(left=lambda: needed).refusal(a_model()) is None
    assert isinstance(CallWindow(left=lambda: needed - 1).refusal(a_model()), TurnPutOff)


def test_a_call_that_fits_into_no_invocation_fails_and_names_the_limit_to_set() -> None:
    refusal = CallWindow(left=lambda: 290, whole=290).refusal(a_model(deadline=600))
    assert isinstance(refusal, ModelCallFailed)
    assert not refusal.retryable
    assert "limits.timeout_seconds to 280" in str(refusal)


def test_a_run_of_a_paused_model_comes_back_after_the_pause() -> None:
    window = CallWindow(longest_pause=5)
    assert window.refusal(a_model(paused_for=4)) is None
    assert window.refusal(a_model(paused_for=30)) == TurnPutOff("the model is paused", 30)
