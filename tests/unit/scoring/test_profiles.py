"""A profile of another distribution: it is found by name, and its vectors may not apply."""

import json
from datetime import UTC, datetime

import pytest

from socratic_bench import score, score_all
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.domain.response import Response
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import BrokenPlugin, BrokenProfile
from socratic_bench.scoring.evidence import Evidence
from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_bench.scoring.profile import Weights
from socratic_bench.scoring.profiles import profile_named
from tests.unit.events.examples import RUN


class Following:
    """`takes_up`: whether a word of the student comes back; it needs a student who spoke."""

    name = "following-v1"
    vectors = ("takes_up", "asks")

    def __init__(self, weights=None):
        self.weights = weights or Weights()

    def may_score(self, status, visible_tokens):
        return status == "ok"

    def measure(self, exchange):
        said = set(exchange.student_message.split())
        asks = float(exchange.text.endswith("?"))
        return (float(bool(said & set(exchange.text.split()))) if said else None, asks)

    def evidence(self, exchange):
        return Evidence((), {})

    def describe(self):
        return ()

    def legend(self):
        return ()


class Wrong(Following):
    def __init__(self, values):
        super().__init__()
        self.values = values

    def measure(self, exchange):
        return self.values


def test_a_vector_that_does_not_apply_is_left_out_of_overall():
    alone = score("Why?", profile=Following())
    assert dict(alone) == {"takes_up": None, "asks": 1.0, "overall": 1.0}
    assert alone.scored
    heard = score("Why?", student_message="I am stuck", profile=Following())
    assert dict(heard) == {"takes_up": 0.0, "asks": 1.0, "overall": 0.5}


def test_weights_count_over_the_vectors_that_apply():
    profile = Following(Weights({"student": {"takes_up": 3, "asks": 1}}))
    assert score("Why?", dimension="student", profile=profile).overall == 1.0
    heard = score("Why?", student_message="No", dimension="student", profile=profile)
    assert heard.overall == 0.25


def test_a_response_that_no_weighed_vector_applies_to_is_unscored():
    profile = Following(Weights({"student": {"takes_up": 1}}))
    figures = score("Why?", dimension="student", profile=profile)
    assert (figures.overall, figures.scored) == (None, False)


@pytest.mark.parametrize("values", [(1.5, 0.0), (float("nan"), 0.0), (-0.1, None), (0.5,)])
def test_what_is_no_score_is_refused_with_the_name_of_the_profile(values):
    with pytest.raises(BrokenProfile, match="profile following-v1 measured"):
        score("Why?", profile=Wrong(values))


class Counting(Following):
    counts = ("at_risk", "lapsed")

    def __init__(self, counted=(1, 0)):
        super().__init__()
        self.counted = counted

    def count(self, exchange):
        return self.counted


def test_a_profile_may_count_besides_in_each_response_that_it_scores():
    assert score("Why?", profile=Counting()).counts == {"at_risk": 1, "lapsed": 0}
    assert score("Why?", status="refused", profile=Counting()).counts == {}
    assert score("Why?").counts == score("Why?", profile=Following()).counts == {}


@pytest.mark.parametrize("counted", [(1,), (-1, 0), (0.5, 0), (10**13, 0), None])
def test_what_is_no_count_is_refused_with_the_name_of_the_profile(counted):
    with pytest.raises(BrokenProfile, match="profile following-v1 counted"):
        _ = score("Why?", profile=Counting(counted)).counts


def scored(vectors, overall, **counts):
    return ScoredResponse(
        run=RUN,
        turn=1,
        last_turn=True,
        profile="p",
        status=Status.OK,
        vectors=vectors,
        overall=overall,
        counts=counts,
    )


def test_a_cell_sums_counts_and_writes_them_only_where_there_are_any():
    key = CellKey("exp", "m/m", "s", 1, "p")
    cell = Cell(key, "student")
    bare = scored({"a": 0.5}, 0.5)
    cell.add_score(bare)
    assert "counts" not in cell.to_json() + bare.model_dump_json()
    counted = scored({"a": 0.5}, 0.5, lapsed=2)
    cell.add_score(ScoredResponse.model_validate_json(counted.model_dump_json()))
    again = Cell.from_json(key, "student", cell.to_json())
    assert again == cell
    assert again.contents()["counts"] == {"lapsed": 2}
    again.merge(cell)
    assert again.counts == {"lapsed": 4}


def test_an_earlier_version_finds_no_figure_in_a_cell_whose_counts_it_would_drop():
    cell = Cell(CellKey("exp", "m/m", "s", 1, "p"), "student")
    cell.add_score(scored({"a": 0.5}, 0.5, lapsed=2))
    assert json.loads(cell.to_json()).keys() == {"counts", "figures"}


def test_a_cell_counts_what_a_vector_did_not_apply_to_and_writes_it_only_then():
    key = CellKey("exp", "m/m", "s", 1, "p")
    cell = Cell(key, "student")
    cell.add_score(scored({"a": 0.5, "b": 0.25}, 0.375))
    assert "not_applicable" not in cell.to_json()
    cell.add_score(
        ScoredResponse.model_validate_json(scored({"a": None, "b": 1}, 1).model_dump_json())
    )
    assert cell.not_applicable == {"a": 1}
    assert (cell.vectors["a"].n, cell.vectors["b"].n, cell.scored) == (1, 2, 2)
    again = Cell.from_json(key, "student", cell.to_json())
    assert again == cell
    again.merge(cell)
    assert again.not_applicable == {"a": 2}


def recorded(*turns):
    return Response(
        run=RUN,
        turn=2,
        last_turn=True,
        profile="p",
        student_message="And?",
        earlier_turns=turns,
        text="Why?",
        status=Status.OK,
        recorded_at=datetime(2026, 11, 21, tzinfo=UTC),
    )


def test_an_earlier_turn_keeps_its_tokens_and_its_status():
    written = recorded(EarlierTurn("Hi", "Well", 7, Status.TRUNCATED)).model_dump_json()
    assert json.loads(written)["earlier_turns"] == [
        {"student": "Hi", "tutor": "Well", "visible_tokens": 7, "status": "truncated"}
    ]
    assert Response.model_validate_json(written).model_dump_json() == written


def test_an_earlier_turn_of_an_older_event_is_read_and_written_as_it_was():
    written = recorded(EarlierTurn("Hi", "Well")).model_dump_json()
    assert json.loads(written)["earlier_turns"] == [{"student": "Hi", "tutor": "Well"}]
    assert Response.model_validate_json(written).model_dump_json() == written


def test_an_earlier_turn_has_no_impossible_count():
    with pytest.raises(ValueError, match="visible_tokens must be from 0"):
        recorded(EarlierTurn("Hi", "Well", -1))


def test_many_texts_are_scored_in_order_or_by_their_ids():
    assert score_all(["Why?", "No."]) == [score("Why?"), score("No.")]
    assert score_all({"a": "Why?"}) == {"a": score("Why?")}


@pytest.mark.parametrize("wrong", [5, None, ["Why?"]])
def test_what_is_no_text_is_refused_with_what_to_pass(wrong):
    with pytest.raises(TypeError, match="score takes the text of a response, a string"):
        score(wrong)


def test_a_single_text_is_no_list():
    with pytest.raises(TypeError, match="score takes a single one"):
        score_all("Why?")


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"brevty": 1.0}, "weighs brevty in 'ethical', which it does not measure"),
        ({"verbosity": 0.0}, "needs a positive weight in 'ethical'"),
        ({"verbosity": 1.0, "exploratory": -1.0}, "and no negative one"),
    ],
)
def test_an_installed_profile_with_useless_weights_is_refused(install, weights, said):
    code = f"""
from socratic_bench.scoring.profile import Weights
from socratic_bench.scoring.socratic_v1.profile import SocraticV1

class Mine(SocraticV1):
    name = "mine"

def make():
    return Mine(Weights({{"ethical": {weights!r}}}))
"""
    install(
        "mine-dist",
        "socratic_bench.profiles",
        "mine",
        "mine_profile:make",
        {"mine_profile.py": code},
    )
    with pytest.raises(BrokenPlugin, match=said):
        profile_named("mine")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ('counts = ("verbosity",); count = lambda self, exchange: (1,)', "counts of other names"),
        ('counts = ("runs",); count = lambda self, exchange: (1,)', "none of .* runs"),
        ('counts = ("lapsed",)', "`counts` but no `count`"),
        (
            "counts = tuple(map(str, range(1001))); count = lambda self, exchange: self.counts",
            "has 1001 counts; the most are 1000",
        ),
    ],
)
def test_an_installed_profile_with_useless_counts_is_refused(install, counts, said):
    code = f"""
from socratic_bench.scoring.socratic_v1.profile import SocraticV1

class Counts(SocraticV1):
    name = "counts"
    {counts}
"""
    install(
        "counts-dist",
        "socratic_bench.profiles",
        "counts",
        "counts_profile:Counts",
        {"counts_profile.py": code},
    )
    with pytest.raises(BrokenPlugin, match=said):
        profile_named("counts")
