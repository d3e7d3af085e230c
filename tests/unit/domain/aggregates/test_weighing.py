"""Cells under other weights say what scores under these weights would have said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Cell, CellKey, Tally, millionths
from socratic_bench.domain.aggregates.difference import paired_difference
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import VectorScores, run_scores
from socratic_bench.domain.aggregates.statistics import figure_estimate
from socratic_bench.domain.aggregates.weighing import weighed_cell, weighted_tally
from socratic_bench.domain.experiment.manifest import weighted_name
from socratic_bench.errors import InvalidInput
from socratic_bench.scoring.composition import composition_of
from socratic_bench.scoring.profile import OVERALL, overall
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.scoring.weighted_profile import remember
from tests.unit.domain.aggregates.written_scores import V1

WEIGHTS = {"student": {"interrogative": 2.0}, "ethical": {"verbosity": 0.0, "exploratory": 0.3}}
NAME = weighted_name("socratic-v1", WEIGHTS)
remember(NAME, WEIGHTS)
WEIGHTED = profile_named(NAME)
DIMENSIONS = ("student", "ethical", "ambiguous")
SCORES = st.floats(min_value=0, max_value=1)
RESPONSES = st.lists(st.tuples(SCORES, SCORES, st.sampled_from([0.0, 1.0])), min_size=1, max_size=4)
MODEL = st.lists(RESPONSES, min_size=5, max_size=7)
Responses = list[tuple[float, float, float]]


def cells(model: list[Responses], profile: str) -> list[Cell]:
    """A cell for each scenario, with its responses scored by a profile."""
    found = []
    for place, responses in enumerate(model):
        dimension = DIMENSIONS[place % 3]
        cell = Cell(CellKey("exp-1", "local/a", f"s{place}", 1, profile), dimension)
        cell.vectors = {OVERALL: Tally(), **{name: Tally() for name in V1}}
        for values in responses:
            weights = profile_named(profile).weights.of(dimension, V1)
            for name, value in zip(V1, values, strict=True):
                cell.vectors[name].add(millionths(value))
            cell.vectors[OVERALL].add(millionths(overall(values, weights) or 0.0))
        found.append(cell)
    return found


def scores_of(found: list[Cell]) -> VectorScores[str]:
    return run_scores(found, lambda cell: cell.key.scenario_id)


@given(MODEL)
def test_means_and_intervals_are_those_of_scores_by_the_weights(model: list[Responses]) -> None:
    composition = composition_of(WEIGHTED)
    folded = [weighed_cell(cell, WEIGHTED) for cell in cells(model, "socratic-v1")]
    scored = cells(model, NAME)

    found, wanted = (
        figure_estimate(scores_of(each), OVERALL, composition) for each in (folded, scored)
    )

    assert [cell.key for cell in folded] == [cell.key for cell in scored]
    assert found.n == wanted.n
    # Every score is rounded to a millionth.
    assert found.mean == pytest.approx(wanted.mean, abs=2e-6)
    assert found.interval == pytest.approx(wanted.interval, abs=1e-4)


@given(MODEL, MODEL)
def test_a_paired_interval_is_that_of_scores_by_the_weights(
    one: list[Responses], other: list[Responses]
) -> None:
    composition = composition_of(WEIGHTED)

    def difference(*sides: list[Cell]):
        figures = (FigureSums.of(scores_of(each), OVERALL, composition) for each in sides)
        return paired_difference(*figures)

    found = difference(
        *(
            [weighed_cell(cell, WEIGHTED) for cell in cells(each, "socratic-v1")]
            for each in (one, other)
        )
    )
    wanted = difference(cells(one, NAME), cells(other, NAME))

    assert found.mean == pytest.approx(wanted.mean, abs=4e-6)
    assert found.interval == pytest.approx(wanted.interval, abs=1e-4)


@given(RESPONSES, st.tuples(SCORES, SCORES, SCORES).filter(any))
def test_the_part_between_repeats_is_never_less_than_it_is(
    responses: Responses, weights: tuple[float, float, float]
) -> None:
    vectors, exact = [Tally(), Tally(), Tally()], []
    for values in responses:
        whole = [millionths(value) for value in values]
        for tally, value in zip(vectors, whole, strict=True):
            tally.add(value)
        exact.append(sum(w * v for w, v in zip(weights, whole, strict=True)) / sum(weights))

    found = weighted_tally(vectors, weights)

    n, mean = len(exact), sum(exact) / len(exact)
    variance = sum((each - mean) ** 2 for each in exact) / n
    bound = (n * found.squares - found.total**2) / n**2
    assert found.n == n
    assert found.total / n == pytest.approx(mean, abs=0.5)
    assert bound >= variance - 1e-3 * max(1.0, variance)


def test_a_single_response_has_no_part_between_repeats() -> None:
    found = weighted_tally([Tally(1, 500_000, 500_000**2), Tally(1, MILLIONTHS, 10**12)], [1, 3])

    assert found == Tally(1, 875_000, 875_000**2)


def test_a_dimension_without_weights_keeps_its_cells() -> None:
    ambiguous = cells([[(0.1, 0.2, 1.0)]] * 3, "socratic-v1")[2]

    assert weighed_cell(ambiguous, WEIGHTED) == replace(
        ambiguous, key=ambiguous.key._replace(profile=NAME)
    )


def test_a_vector_that_does_not_apply_everywhere_has_no_exact_figure() -> None:
    [student, ethical, _] = cells([[(0.1, 0.2, 1.0), (0.5, 0.5, 0.0)]] * 3, "socratic-v1")
    for cell in (student, ethical):
        cell.vectors["verbosity"] = Tally(1, 100_000, 100_000**2)

    with pytest.raises(InvalidInput, match="verbosity does not apply to every response in s0"):
        weighed_cell(student, WEIGHTED)
    # With the weight 0 the vector does not matter.
    assert weighed_cell(ethical, WEIGHTED).scored == 2
