"""Latency is compared as a median with the best that was sustained, and chance does not count."""

import random
from itertools import repeat

from socratic_bench.domain.response import Usage
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.exchange import Status
from socratic_runner.limits.adaptive_limit import Latency, LatencyTrend, latency_of


def verdicts(trend, *values, limit=8.0, is_first_token=True):
    """The verdicts on replies with these latencies; windows that are not full give none."""
    found = [trend.add(Latency(is_first_token, value), limit) for value in values]
    return [each for each in found if each is not None]


def reply(first_token_ms=None, latency_ms=None, written=None):
    usage = Usage(visible_output_tokens=written)
    return Reply("Why?", Status.OK, usage, latency_ms=latency_ms, first_token_ms=first_token_ms)


def test_the_time_to_the_first_token_is_taken_where_it_is_known():
    assert latency_of(reply(first_token_ms=400, latency_ms=9000)) == Latency(True, 400)


def test_otherwise_long_answers_compare_with_short_ones():
    short = latency_of(reply(latency_ms=2000, written=50))
    long = latency_of(reply(latency_ms=11000, written=500))
    assert not short.is_first_token
    assert short.value == long.value


def test_replies_without_a_latency_say_nothing():
    assert latency_of(reply(written=50)) is None


def test_latencies_that_this_process_makes_itself_are_all_alike():
    assert latency_of(reply(first_token_ms=1)) == latency_of(reply(first_token_ms=49))
    assert latency_of(reply(latency_ms=0, written=7)) == latency_of(reply(latency_ms=49, written=7))


def test_twice_the_latency_is_too_much_and_a_little_less_is_not():
    trend = LatencyTrend()
    assert verdicts(trend, *repeat(100, 24)) == [False]
    assert verdicts(trend, *repeat(199, 24)) == [False]
    assert verdicts(trend, *repeat(205, 24)) == [True]


def test_a_few_slow_replies_are_no_trend():
    trend = LatencyTrend()
    verdicts(trend, *repeat(100, 24))
    assert verdicts(trend, *repeat(100, 13), *repeat(5000, 11)) == [False]


def test_after_a_change_of_load_the_replies_of_a_round_say_nothing():
    trend = LatencyTrend()
    verdicts(trend, *repeat(100, 24), *repeat(500, 20))
    trend.load_changed(40)
    assert verdicts(trend, *repeat(500, 40), *repeat(100, 24)) == [False]


def test_a_window_is_half_a_round_under_a_high_limit():
    assert verdicts(LatencyTrend(), *repeat(100, 99), limit=200.0) == []
    assert verdicts(LatencyTrend(), *repeat(100, 100), limit=200.0) == [False]


def test_a_model_that_became_slower_is_recognised_when_less_load_does_not_help():
    trend = LatencyTrend()
    verdicts(trend, *repeat(100, 24))
    assert verdicts(trend, *repeat(900, 8 * 24)) == [True] * 4 + [False] * 4


def test_a_model_that_recovers_as_load_becomes_less_is_still_compared_with_its_best():
    trend = LatencyTrend()
    verdicts(trend, *repeat(100, 24))
    falling = [900 * 0.8**cut for cut in range(6)]
    assert verdicts(trend, *(value for value in falling for _ in range(24))) == [True] * 6


def test_the_baseline_does_not_creep_up_with_a_growing_load():
    trend = LatencyTrend()
    limit, found = 20.0, []
    while limit < 60:
        found += verdicts(trend, *repeat(100 * limit / 20, 24), limit=limit)
        limit += 0.5
    assert found.index(True) < 2.2 * 20 / 0.5 - 20 / 0.5


def test_a_baseline_that_was_too_lucky_is_corrected_under_an_unchanged_load():
    trend = LatencyTrend()
    verdicts(trend, *repeat(60, 24))
    assert set(verdicts(trend, *repeat(110, 300 * 24))) == {False}
    assert verdicts(trend, *repeat(150, 24)) == [False]


def test_a_model_that_became_quicker_sets_the_scale_soon():
    trend = LatencyTrend()
    verdicts(trend, *repeat(1000, 24), *repeat(100, 20 * 24))
    assert verdicts(trend, *repeat(250, 24)) == [True]


def test_the_two_ways_to_measure_are_not_compared_with_each_other():
    trend = LatencyTrend()
    verdicts(trend, *repeat(20, 24), is_first_token=False)
    assert verdicts(trend, *repeat(400, 24)) == [False]
    assert verdicts(trend, *repeat(400, 24)) == [False]


def test_latencies_that_scatter_as_those_of_models_do_are_no_trend():
    for seed in range(5):
        chance = random.Random(seed)
        values = [300 * chance.lognormvariate(0, 0.4) for _ in range(1000 * 24)]
        assert set(verdicts(LatencyTrend(), *values)) == {False}
