"""What is stored of a reply: the text that a student sees, its tokens and its notes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.response import Usage
from socratic_bench.ports.models import Reply
from socratic_bench.scoring import answer_notes as notes
from socratic_bench.scoring.exchange import Status
from socratic_runner.conversations.conversation import SeenReply, seen
from socratic_runner.model_pool import CalledModel

ASKS = "What might you consider first?"


def reply(text: str = ASKS, status: Status = Status.OK, **usage: int) -> Reply:
    return Reply(text, status, Usage(**usage), latency_ms=1)


def after(
    reply: Reply, *read_before: int | None, max_tokens: int = 600, price: Price | None = None
) -> SeenReply:
    earlier = [SimpleNamespace(usage=Usage(input_tokens=tokens)) for tokens in read_before]
    entry = TutorModel(id="reference/socratic", price=price)
    model = CalledModel(entry, *(cast("Any", None) for _ in range(3)))
    return seen(reply, cast("Any", earlier), max_tokens, model)


def test_a_plain_reply_is_stored_as_it_came():
    usage = Usage(visible_output_tokens=8, input_tokens=40)
    assert after(reply(visible_output_tokens=8, input_tokens=40)) == (ASKS, None, usage, ())


def test_thoughts_in_the_text_make_its_length_unknown():
    got = after(reply(f"<think>never</think>{ASKS}", visible_output_tokens=57, input_tokens=40))
    expected = Usage(unsplit_output_tokens=57, input_tokens=40)
    assert got == (ASKS, "never", expected, (notes.THOUGHTS,))


def test_thoughts_that_the_provider_counted_apart_leave_the_count():
    usage = Usage(visible_output_tokens=8, reasoning_tokens=49)
    got = after(Reply(f"<think>never</think>{ASKS}", Status.OK, usage, latency_ms=1))
    assert got.usage == usage


def test_a_count_that_cannot_be_that_of_the_text_is_no_count():
    assert after(reply(visible_output_tokens=0)).usage.visible_output_tokens is None
    long = "What might you consider first? " * 40
    for counted, kept in ((1, None), (49, None), (50, 50), (280, 280)):
        got = after(reply(long, visible_output_tokens=counted))
        assert got.usage.visible_output_tokens == kept
    assert after(reply("", visible_output_tokens=0)).usage.visible_output_tokens == 0


@pytest.mark.parametrize(
    ("price", "is_upper_bound"),
    [
        (None, False),
        ({}, True),
        ({"cached_input_per_million": 1}, True),
        ({"cache_write_per_million": 1}, True),
        ({"cached_input_per_million": 1, "cache_write_per_million": 1}, False),
    ],
)
def test_a_cost_without_the_price_of_cached_tokens_is_an_upper_bound(price, is_upper_bound):
    usual = {"input_per_million": 1, "output_per_million": 1}
    told = None if price is None else Price.model_validate(usual | price)
    counts = reply(input_tokens=40, cached_tokens=30, cache_write_tokens=5)
    assert (notes.UPPER_COST in after(counts, price=told).notes) == is_upper_bound


@pytest.mark.parametrize(
    ("read_before", "usage", "is_cut"),
    [
        ([2050], {"input_tokens": 2050, "visible_output_tokens": 9}, True),
        ([2050], {"input_tokens": 1900, "visible_output_tokens": 9}, True),
        ([2050], {"input_tokens": 2100, "visible_output_tokens": 9}, False),
        ([3000], {"input_tokens": 4000, "visible_output_tokens": 96}, True),
        ([None], {"input_tokens": 2100, "visible_output_tokens": 9}, False),
        ([], {"input_tokens": 2050, "visible_output_tokens": 9}, False),
        ([2050], {"visible_output_tokens": 9}, False),
    ],
)
def test_a_conversation_that_the_provider_cut_is_told(read_before, usage, is_cut):
    assert (notes.CONTEXT_CUT in after(reply(**usage), *read_before).notes) is is_cut


def test_a_finished_answer_of_all_the_tokens_that_were_asked_for_is_told():
    assert after(reply(visible_output_tokens=199), max_tokens=199).notes == (notes.AT_LIMIT,)
    cut = reply(status=Status.TRUNCATED, visible_output_tokens=199)
    assert after(cut, max_tokens=199).notes == ()
