"""Each trouble is reported once; a model that fails and replies by turns only now and then."""

import pytest

from socratic_bench.domain.trouble import Trouble
from socratic_runner.troubles import MOST_REMEMBERED, REPORT_AGAIN_SECONDS, TroubleNews


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def news(clock):
    return TroubleNews(clock)


def trouble(model="m/a", attempt=1):
    return Trouble(
        experiment_id="exp",
        model_id=model,
        kind="timeout",
        reason="late",
        attempt=attempt,
        attempts=4,
        next_in_seconds=1.0,
    )


def test_a_trouble_is_told_once_however_long_it_lasts(news, clock):
    assert news.is_new(trouble())
    clock.now += 10 * REPORT_AGAIN_SECONDS
    assert not news.is_new(trouble(attempt=2))
    assert news.is_new(trouble("m/b"))


def test_after_a_reply_it_is_told_again_but_not_at_every_turn(news, clock):
    reports = 0
    for _ in range(100):
        reports += news.is_new(trouble())
        news.over("exp", "m/a")
        clock.now += REPORT_AGAIN_SECONDS / 20
    assert reports == 5


def test_a_trouble_that_is_not_there_any_more_is_over(news, clock):
    a, b = trouble("m/a"), trouble("m/b")
    assert news.new_among([a, b]) == [a, b]
    assert news.new_among([b]) == []
    clock.now += REPORT_AGAIN_SECONDS
    assert news.new_among([a, b]) == [a]


def test_what_it_remembers_is_bounded(news):
    for number in range(MOST_REMEMBERED + 1):
        assert news.is_new(trouble(f"m/{number}"))
    assert not news.is_new(trouble("m/1"))
    assert news.is_new(trouble("m/0"))
