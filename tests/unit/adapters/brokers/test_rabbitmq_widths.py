"""The consumer's knowledge of each queue's width."""

from socratic_bench.adapters.brokers.rabbitmq.sources import Widths


def test_a_queue_that_is_consumed_no_more_leaves_nothing_behind():
    widths = Widths(full=25, most_messages=250)
    widths.begin("first")
    widths.begin("second")
    widths.saw("second", redeliveries=0, messages=10)
    widths.forget("first")
    widths.forget("second")
    assert not widths._widths
    assert not widths._more
