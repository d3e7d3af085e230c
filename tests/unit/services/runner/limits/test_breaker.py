"""A model that cannot be used costs one call, and then one a minute."""

import pytest
from structlog.testing import capture_logs

from socratic_bench.errors import FailureKind, FaultScope, ModelCallFailed, ModelUnusable
from socratic_runner.limits.breaker import (
    BUSY_SILENCE,
    COOL_DOWN,
    LONGEST_GAP,
    SILENCE,
    SILENT_CALLS,
    Breaker,
)

WRONG_KEY = ModelUnusable(FailureKind.AUTH, "401: the key is wrong")


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def breaker(time):
    return Breaker("openai/gpt", time)


def test_calls_are_admitted_until_it_is_tripped(breaker):
    assert breaker.refusal is None
    assert [breaker.admit() for _ in range(3)] == [None, None, None]


def test_a_refused_call_fails_like_the_one_that_tripped_it_and_is_not_tried_again(breaker):
    breaker.trip(WRONG_KEY)
    refused = breaker.admit()
    assert type(refused) is ModelCallFailed
    assert refused.kind == FailureKind.AUTH
    assert str(refused) == "not called: stopped after 401: the key is wrong"
    assert not refused.retryable
    assert str(breaker.refusal) == str(refused)


def test_after_the_cool_down_one_call_alone_probes(breaker, time):
    breaker.trip(WRONG_KEY)
    time.now += COOL_DOWN - 0.1
    assert breaker.admit() is not None
    time.now += 0.1
    assert breaker.refusal is None, "to look is not to probe"
    assert breaker.admit() is None
    assert breaker.admit() is not None
    assert breaker.refusal is not None


def test_an_answered_probe_lets_everybody_through(breaker, time):
    breaker.trip(WRONG_KEY)
    time.now += COOL_DOWN
    breaker.admit()
    breaker.replied()
    assert [breaker.admit(), breaker.admit()] == [None, None]


def test_a_failed_probe_starts_the_cool_down_anew(breaker, time):
    breaker.trip(WRONG_KEY)
    time.now += COOL_DOWN
    breaker.admit()
    breaker.trip(WRONG_KEY, 10.0)
    assert breaker.admit() is not None
    time.now += 10.0
    assert breaker.admit() is None


def test_after_an_abandoned_probe_the_next_call_probes(breaker, time):
    breaker.trip(WRONG_KEY)
    time.now += COOL_DOWN
    breaker.admit()
    breaker.abandoned()
    assert breaker.admit() is None
    assert breaker.admit() is not None


def test_an_abandoned_call_does_not_shorten_the_cool_down(breaker):
    breaker.trip(WRONG_KEY)
    breaker.abandoned()
    assert breaker.admit() is not None


def test_a_reply_to_a_call_that_began_before_does_not_end_it(breaker):
    assert breaker.admit() is None
    assert breaker.admit() is None
    breaker.trip(WRONG_KEY)
    breaker.replied()
    assert breaker.admit() is not None


def test_it_is_told_once_which_model_stopped_and_why(breaker, time):
    with capture_logs() as told:
        breaker.trip(WRONG_KEY)
        breaker.trip(WRONG_KEY)
        time.now += COOL_DOWN
        breaker.admit()
        breaker.trip(WRONG_KEY)
        time.now += COOL_DOWN
        breaker.admit()
        breaker.replied()
        breaker.replied()
        breaker.trip(WRONG_KEY)
    assert [(entry["event"], entry["log_level"]) for entry in told] == [
        ("model stopped", "warning"),
        ("model goes on", "info"),
        ("model stopped", "warning"),
    ]
    assert told[0]["model"] == "openai/gpt"
    assert told[0]["kind"] == "auth"
    assert told[0]["reason"] == "401: the key is wrong"


HANGING = ModelCallFailed(FailureKind.TIMEOUT, "no answer within 120 s", retryable=True)
OVERLOADED = ModelCallFailed(FailureKind.OVERLOADED, "overloaded", retryable=True)
FILTERED = ModelCallFailed(FailureKind.REFUSED, "filtered", retryable=False)


def fail(breaker, time, calls, seconds, failure=HANGING):
    """Have so many calls fail one after the other, the last one so many seconds after the first."""
    for call in range(calls):
        with breaker.admitted():
            if call:
                time.now += seconds / (calls - 1)
            breaker.failed(failure)


def test_a_model_that_answers_nobody_for_long_is_stopped(breaker, time):
    fail(breaker, time, SILENT_CALLS, SILENCE)
    refused = breaker.refusal
    assert (refused.kind, refused.retryable) == (FailureKind.TIMEOUT, False)


@pytest.mark.parametrize(("calls", "seconds"), [(SILENT_CALLS - 1, SILENCE), (500, SILENCE - 1)])
def test_neither_a_few_slow_failures_nor_many_quick_ones_stop_it(breaker, time, calls, seconds):
    fail(breaker, time, calls, seconds)
    assert breaker.refusal is None


@pytest.mark.parametrize("answer", [Breaker.replied, lambda it: it.failed(FILTERED)])
def test_any_answer_ends_the_silence(breaker, time, answer):
    fail(breaker, time, SILENT_CALLS, SILENCE - 1)
    answer(breaker)
    fail(breaker, time, SILENT_CALLS, SILENCE - 1)
    assert breaker.refusal is None


def test_a_single_failure_before_a_long_rest_counts_for_little_after_it(breaker, time):
    fail(breaker, time, 1, 0, OVERLOADED)
    time.now += 10 * BUSY_SILENCE
    fail(breaker, time, 50, BUSY_SILENCE - LONGEST_GAP - 1, OVERLOADED)
    assert breaker.refusal is None


def test_a_silent_model_is_asked_once_a_minute_until_it_answers(breaker, time):
    fail(breaker, time, SILENT_CALLS, SILENCE)
    time.now += COOL_DOWN
    assert breaker.admit() is None
    breaker.failed(HANGING)
    assert breaker.refusal is not None
    time.now += COOL_DOWN
    assert breaker.admit() is None
    breaker.replied()
    assert breaker.refusal is None


REFUSED = ModelCallFailed(
    FailureKind.BAD_REQUEST, "400: blocked", retryable=False, scope=FaultScope.CONVERSATION
)


def test_refusals_of_one_scenario_are_not_the_models(breaker):
    for _ in range(100):
        breaker.refused(REFUSED, "one", 1)
    assert breaker.refusal is None


def test_refusals_of_several_scenarios_in_a_row_are_the_models(breaker):
    for scenario in ("one", "two"):
        breaker.refused(REFUSED, scenario, 1)
    breaker.replied()
    for scenario in ("one", "two", "three"):
        assert breaker.refusal is None
        breaker.refused(REFUSED, scenario, 1)
    assert breaker.is_open


def test_replies_to_first_turns_do_not_hide_that_every_second_turn_is_refused(breaker):
    for scenario in ("one", "two", "three"):
        breaker.replied(1)
        breaker.refused(REFUSED, scenario, 2)
    assert breaker.is_open


def test_a_model_that_refuses_every_scenario_of_a_small_experiment_stops(time):
    breaker = Breaker("openai/gpt", time, scenarios=1)
    breaker.refused(REFUSED, "one", 1)
    assert breaker.is_open


def test_runs_wait_for_a_key_that_was_accepted_before(breaker, time):
    breaker.trip(WRONG_KEY, patience=600.0)
    assert breaker.held_for is None, "the key never worked"
    time.now += COOL_DOWN
    breaker.admit()
    breaker.replied()
    breaker.trip(WRONG_KEY, patience=600.0)
    assert breaker.held_for == COOL_DOWN
    while breaker.held_for is not None:
        time.now += COOL_DOWN
        assert breaker.admit() is None
        breaker.trip(WRONG_KEY, patience=600.0)
    assert time.now == 1000.0 + COOL_DOWN + 600.0
    assert breaker.refusal is not None
