"""The promises of a scorer profile. The tests need a fixture `profile`, a Profile."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from socratic_bench.scoring.evidence import Evidence, Mark
from socratic_bench.scoring.exchange import EarlierTurn, Exchange, Status
from socratic_bench.scoring.profile import Profile, combining
from socratic_bench.scoring.profiles import TAKEN
from socratic_bench.scoring.score import Score, score
from socratic_bench.testing.samples import HOSTILE

_TOKENS = st.none() | st.integers(0, 5_000)
_TEXTS = st.text(max_size=400) | st.sampled_from(HOSTILE)
_TURNS = st.builds(EarlierTurn, _TEXTS, _TEXTS, _TOKENS, st.none() | st.sampled_from(Status))
_KEYS = st.lists(_TEXTS.map(lambda text: text[:200]), max_size=2).map(tuple)
_EXCHANGES = st.builds(
    Exchange,
    _TEXTS,
    _TOKENS,
    _TEXTS,
    st.lists(_TURNS, max_size=3).map(tuple),
    status=st.sampled_from((Status.OK, Status.TRUNCATED)),
    key=_KEYS,
)
# A profile is pure: the examples of a test may share it.
_examples = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def scored(profile: Profile, exchange: Exchange, dimension: str | None = None) -> Score:
    """The score of a response; raises BrokenProfile where the profile breaks its word."""
    return score(
        exchange.text,
        output_tokens=exchange.visible_tokens,
        status=exchange.status,
        dimension=dimension,
        student_message=exchange.student_message,
        earlier_turns=exchange.earlier_turns,
        answer_key=exchange.key,
        profile=profile,
        raw=False,
    )


def test_a_profile_has_vectors_of_different_names_that_no_other_key_has(profile: Profile) -> None:
    assert profile.name
    assert profile.vectors
    assert len(set(profile.vectors)) == len(profile.vectors)
    assert not TAKEN & set(profile.vectors)


@_examples
@given(exchange=_EXCHANGES)
def test_a_vector_that_says_yes_or_no_is_0_or_1(profile: Profile, exchange: Exchange) -> None:
    figures = scored(profile, exchange)
    for vector in profile.describe():
        if vector.yes is not None:
            assert figures[vector.name] in {None, 0.0, 1.0}, vector.name


def test_weights_are_positive_and_of_vectors_that_the_profile_measures(profile: Profile) -> None:
    for dimension, weights in profile.weights.by_dimension.items():
        assert set(weights) <= set(profile.vectors), dimension
        assert min(weights.values()) >= 0, dimension
        assert sum(weights.values()) > 0, dimension


def test_a_profile_describes_each_vector_in_the_order_of_its_vectors(profile: Profile) -> None:
    described = profile.describe()
    assert tuple(vector.name for vector in described) == tuple(profile.vectors)
    for vector in described:
        assert vector.meaning
        assert vector.formula
        assert all(upper.least > lower.least for upper, lower in pairwise(vector.ranges))


def test_an_example_of_a_vector_has_a_score_and_its_arithmetic(profile: Profile) -> None:
    for vector in profile.describe():
        for text, tokens in vector.examples:
            example = scored(profile, Exchange(text, tokens))
            assert vector.name in example.evidence.facts


def test_the_legend_explains_each_kind_of_span_once(profile: Profile) -> None:
    legend = profile.legend()
    assert len({each.kind for each in legend}) == len(legend)
    assert all(each.name and each.meaning and each.mark in Mark for each in legend)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("tokens", [None, 0, 500, 10**6])
def test_a_status_alone_decides_with_the_tokens_whether_a_response_has_a_score(
    profile: Profile, status: Status, tokens: int | None
) -> None:
    first, second = (profile.may_score(status, tokens) for _ in range(2))
    assert isinstance(first, bool)
    assert first is second


@_examples
@given(exchange=_EXCHANGES)
def test_a_vector_is_from_zero_to_one_or_does_not_apply(
    profile: Profile, exchange: Exchange
) -> None:
    for dimension in (None, *profile.weights.by_dimension):
        figures = scored(profile, exchange, dimension)
        assert set(figures) == {*profile.vectors, "overall"}
        assert all(value is None or 0.0 <= value <= 1.0 for value in figures.values())


@_examples
@given(exchange=_EXCHANGES)
def test_a_combined_overall_has_a_formula_and_follows_from_the_vectors_alone(
    profile: Profile, exchange: Exchange
) -> None:
    if (combined := combining(profile)) is None:
        return
    assert combined.overall_formula
    for dimension in (None, "ambiguous", *profile.weights.by_dimension):
        figures = scored(profile, exchange, dimension)
        if figures.vectors is None:
            continue
        values = tuple(figures.vectors.values())
        made = combined.combine(values, dimension)
        assert made == combined.combine(values, dimension) == figures.overall
        assert made is None or 0.0 <= made <= 1.0


@_examples
@given(exchange=_EXCHANGES, other=_EXCHANGES)
def test_the_same_exchange_has_the_same_figures_whatever_was_scored_before(
    profile: Profile, exchange: Exchange, other: Exchange
) -> None:
    first = scored(profile, exchange)
    explained, counted = first.evidence.as_dict(), first.counts
    scored(profile, other).as_dict()
    again = scored(profile, exchange)
    assert dict(again) == dict(first)
    assert again.evidence.as_dict() == explained
    assert again.counts == counted


@_examples
@given(exchange=_EXCHANGES)
def test_evidence_stays_within_the_text_and_has_a_fact_for_each_vector(
    profile: Profile, exchange: Exchange
) -> None:
    figures = scored(profile, exchange)
    if figures.vectors is not None:
        _explains(profile, exchange, figures.evidence)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_data_wherever_it_stands(profile: Profile, text: str) -> None:
    turn = EarlierTurn(text, text, None, None)
    for exchange in (
        Exchange(text),
        Exchange(text, 10, text, (turn,)),
        Exchange("What might you try?", 10, text, (turn, turn)),
    ):
        figures = scored(profile, exchange)
        if figures.vectors is not None:
            _explains(profile, exchange, figures.evidence)


def _explains(profile: Profile, exchange: Exchange, evidence: Evidence) -> None:
    kinds = {each.kind for each in profile.legend()}
    assert tuple(evidence.facts) == tuple(profile.vectors)
    assert all(0 <= span.start <= span.end <= len(exchange.text) for span in evidence.spans)
    assert {span.kind for span in evidence.spans} <= kinds
    starts = [span.start for span in evidence.spans]
    assert starts == sorted(starts)
    json.dumps(evidence.as_dict(), allow_nan=False)
