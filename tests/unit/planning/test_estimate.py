"""The estimate of a manifest, before any run."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Manifest,
    OwnParameters,
    Parameters,
    TutorModel,
)
from socratic_bench.domain.money import (
    TOKENS_PER_CALL,
    TOKENS_PER_MESSAGE,
    Price,
    input_tokens_at_most,
    most_a_call_costs,
    tokens_at_most,
)
from socratic_bench.domain.response import Usage
from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.estimate import (
    LIKELY_OUTPUT_TOKENS,
    MeasuredLength,
    Range,
    estimate,
    look_into,
)
from tests.contract.store.facts import MONDAY, a_score

PRICE = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))
FREE = Price(input_per_million=Decimal(0), output_per_million=Decimal(0))
PRICED = TutorModel(id="hosted/priced", price=PRICE)
UNPRICED = TutorModel(id="hosted/unpriced")
REFERENCE = TutorModel(id="reference/socratic")

dollars = st.decimals(0, 1_000_000, allow_nan=False, places=12)
prices = st.builds(
    Price,
    input_per_million=dollars,
    output_per_million=dollars,
    cached_input_per_million=st.none() | dollars,
    cache_write_per_million=dollars,
)


def a_manifest(
    *models: TutorModel,
    turns: Sequence[str] = ("Why is the sky blue?",),
    budget: Decimal | None = None,
    max_tokens: int = 600,
) -> Manifest:
    first, *follow_ups = turns
    scenario = Scenario(id="sky", dimension="student", prompt=first, follow_ups=tuple(follow_ups))
    return Manifest(
        models=models or (PRICED,),
        scenarios=(scenario,),
        system_prompt="Ask.",
        parameters=Parameters(max_tokens=max_tokens),
        repeats=3,
        budget=budget,
    )


def test_the_input_of_a_model_is_estimated_with_its_own_prompt():
    talked_to = PRICED.model_copy(update={"system_prompt": "Ask. " * 100})
    other = TutorModel(id="hosted/other", system_prompt="Ask.", price=PRICED.price)
    [longer, shorter] = estimate(a_manifest(talked_to, other)).models
    [plain] = estimate(a_manifest(PRICED)).models
    assert longer.input_tokens.at_most - shorter.input_tokens.at_most == 3 * 496
    assert shorter.input_tokens == plain.input_tokens


def test_a_model_is_estimated_with_its_own_limit_and_the_length_of_its_stored_answers():
    own = OwnParameters(max_tokens=4000)
    reasoner = PRICED.model_copy(update={"parameters": own})
    other = TutorModel(id="hosted/other", price=PRICE)
    lengths = {reasoner.id: MeasuredLength(1800, 60)}
    first, second = estimate(a_manifest(reasoner, other), lengths=lengths).models
    assert (first.output_tokens, first.length) == (Range(5400, 12_000), lengths[reasoner.id])
    assert (second.output_tokens, second.length) == (Range(3 * LIKELY_OUTPUT_TOKENS, 1800), None)


async def test_stored_lengths_are_those_of_the_model_at_its_address_whatever_it_was_asked():
    store = MemoryStore()
    asked = Experiment(manifest=a_manifest(PRICED, UNPRICED), created_at=MONDAY)
    await store.register(asked)
    scores = [
        a_score(run).model_copy(
            update={"usage": Usage(visible_output_tokens=100 + n, reasoning_tokens=900)}
        )
        for n, run in enumerate(asked.runs())
        if run.model_id == PRICED.id
    ]
    await store.fold(scores, [])
    moved = UNPRICED.model_copy(update={"base_url": "http://127.0.0.1:1/v1"})
    plan = a_manifest(PRICED, moved, turns=["How?"], max_tokens=4000)
    later = Experiment(manifest=plan, created_at=MONDAY)
    prospect = await look_into(store, later, fresh=False, adopt=False)
    await store.close()
    lengths = [each.length for each in prospect.estimate.models]
    assert lengths == [MeasuredLength(1002, 3), None]


def test_a_text_has_no_more_tokens_than_bytes_and_each_message_has_its_template():
    around = TOKENS_PER_CALL + 2 * TOKENS_PER_MESSAGE
    assert input_tokens_at_most(["Ask.", "Où?"]) == 4 + 4 + around
    assert tokens_at_most(["Ask.", "Où?"], 600) == 8 + around + 600


def test_text_that_is_no_valid_unicode_is_bounded_too():
    assert input_tokens_at_most(["\ud800"]) == input_tokens_at_most(["abc"])


def test_a_model_in_batches_is_estimated_at_half_the_price() -> None:
    usual = TutorModel(id="openai/m", price=PRICE)
    batched = usual.model_copy(update={"id": "openai/m@2", "options": {"batch": True}})
    foreign = batched.model_copy(update={"id": "hosted/m"})
    full, half, other = (each.cost for each in estimate(a_manifest(usual, batched, foreign)).models)
    assert full is not None
    assert half is not None
    assert (full.likely, full.at_most) == (2 * half.likely, 2 * half.at_most)
    assert other == full


@given(prices, st.lists(st.text(), max_size=4), st.integers(1, 100_000), st.data())
def test_no_call_costs_more_than_what_is_reserved_for_it(price, texts, max_tokens, data):
    used = data.draw(st.integers(0, input_tokens_at_most(texts)))
    written = data.draw(st.integers(0, max_tokens))
    cached = data.draw(st.integers(0, used))
    cache_written = data.draw(st.integers(0, used - cached))
    cost = price.cost_nanodollars(used, written, cached, cache_written)
    assert most_a_call_costs(price, texts, max_tokens) >= cost


def test_cached_tokens_cost_their_own_price_and_no_less_than_an_unknown_one():
    usual = {"input_per_million": 3, "output_per_million": 15}
    caches = {"cached_input_per_million": "0.3", "cache_write_per_million": "3.75"}
    counts = 10_000, 100, 8_000, 1_000
    assert Price.model_validate(usual | caches).cost_nanodollars(*counts) == 10_650_000
    assert PRICE.cost_nanodollars(*counts) == 34_500_000  # writes may cost twice as much


def test_what_is_reserved_is_rounded_up_to_a_whole_nanodollar_and_no_further():
    tiny = Price(input_per_million=Decimal(0), output_per_million=Decimal("0.0000001"))
    assert most_a_call_costs(tiny, ["Ask."], 1) == 1
    assert (
        most_a_call_costs(PRICE, ["Ask."], 10) == 3_000 * input_tokens_at_most(["Ask."]) + 150_000
    )


def test_nothing_is_reserved_where_no_price_is_known_or_it_is_zero():
    assert most_a_call_costs(None, ["Ask."], 600) == 0
    assert most_a_call_costs(FREE, ["Ask."], 600) == 0


def test_a_run_of_one_turn_is_one_call_with_the_prompts_for_input():
    found = estimate(a_manifest())

    [model] = found.models
    assert (model.runs, model.calls) == (found.runs, found.calls) == (3, 3)
    at_most = input_tokens_at_most(["Ask.", "Why is the sky blue?"])
    assert model.input_tokens == Range(3 * 6, 3 * at_most)
    assert model.output_tokens == Range(3 * LIKELY_OUTPUT_TOKENS, 3 * 600)
    assert model.cost == Range(
        18 * 3_000 + 3 * LIKELY_OUTPUT_TOKENS * 15_000, 3 * (at_most * 3_000 + 600 * 15_000)
    )


def test_in_later_turns_earlier_answers_are_sent_along():
    found = estimate(a_manifest(turns=("Why?", "How?", "When?")))

    [model] = found.models
    assert (model.runs, model.calls) == (3, 9)
    texts = ["Ask.", "Why?", "How?", "When?"]
    answer = 600 + TOKENS_PER_MESSAGE
    at_most = sum(input_tokens_at_most(texts[: turn + 1]) for turn in (1, 2, 3)) + 3 * answer
    characters = (8, 12, 17)
    likely = sum(-(-each // 4) for each in characters) + 3 * LIKELY_OUTPUT_TOKENS
    assert model.input_tokens == Range(3 * likely, 3 * at_most)


def test_an_answer_is_not_expected_to_be_longer_than_it_may_be():
    [model] = estimate(a_manifest(max_tokens=20)).models
    assert model.output_tokens == Range(60, 60)


@given(
    st.lists(st.text(min_size=1), min_size=1, max_size=4),
    st.integers(1, 2_000),
    prices,
    st.integers(1, 3),
)
def test_what_is_likely_is_never_more_than_what_is_possible(turns, max_tokens, price, repeats):
    manifest = a_manifest(
        TutorModel(id="hosted/m", price=price), turns=turns, max_tokens=max_tokens
    ).model_copy(update={"repeats": repeats})
    found = estimate(manifest)
    assert found.cost is not None
    for figure in (found.input_tokens, found.output_tokens, found.cost):
        assert figure.likely <= figure.at_most


def test_the_most_it_costs_is_what_is_reserved_call_by_call():
    found = estimate(a_manifest(PRICED, UNPRICED, TutorModel(id="local/free", price=FREE)))
    reserved = most_a_call_costs(PRICE, ["Ask.", "Why is the sky blue?"], 600)
    assert [None if each.cost is None else each.cost.at_most for each in found.models] == [
        3 * reserved,
        None,
        0,
    ]


def test_a_total_leaves_unknown_costs_out_and_names_whose_they_are():
    found = estimate(a_manifest(PRICED, UNPRICED, REFERENCE))
    assert found.cost == found.models[0].cost
    assert found.unpriced == (UNPRICED,)
    assert estimate(a_manifest(UNPRICED)).cost is None


def test_a_budget_is_held_against_what_is_likely_and_what_is_possible():
    cost = estimate(a_manifest()).cost
    assert cost is not None
    for budget, may, likely in (
        (None, False, False),
        (cost.at_most, False, False),
        (cost.at_most - 1, True, False),
        (cost.likely, True, False),
        (cost.likely - 1, True, True),
    ):
        usd = None if budget is None else Decimal(budget) / 10**9
        found = estimate(a_manifest(budget=usd))
        assert (found.may_exceed_budget, found.likely_exceeds_budget) == (may, likely)
        assert found.budget == budget


def test_a_budget_is_held_against_nothing_where_no_price_is_known():
    assert not estimate(a_manifest(UNPRICED, budget=Decimal(0))).may_exceed_budget
