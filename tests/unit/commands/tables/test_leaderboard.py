"""The leaderboard as a table and as CSV: costs, and names in narrow terminals."""

import asyncio
import csv
import io
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.results.experiment_status import why_unscored
from socratic_bench.results.formats import share
from socratic_bench.results.leaderboard.columns import weights_text
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.leaderboard.text_formats import comparison_csv
from socratic_cli.display.leaderboard import comparison_table
from tests.contract.store.facts import a_failure, a_score
from tests.dashboard.seeding import experiment, seed, tutors

FREE = Price(input_per_million=Decimal(0), output_per_million=Decimal(0))
LONG = TutorModel(id="hosted/" + "a-name-without-any-spaces-" * 7)
WIDE = TutorModel(id="hosted/wide", name="学" * 60)


@pytest.fixture
async def store():
    store = MemoryStore()
    yield store
    await store.close()


def shown(comparison, *, width=160, detail=False, reasons=None):
    """The lines of the table, as a terminal of that width shows them."""
    text = io.StringIO()
    console = Console(file=text, width=width, markup=False, highlight=False)
    console.print(comparison_table(comparison, detail=detail, width=width, reasons=reasons))
    return [line.rstrip() for line in text.getvalue().splitlines()]


async def scored(store, *models, cost=21_000, failing=False, **named):
    planned = experiment(models)
    manifest = planned.manifest.model_copy(update=named)
    planned = planned.model_copy(update={"manifest": manifest})
    await store.register(planned)
    runs = list(planned.runs())
    scores = [a_score(run).model_copy(update={"cost_nanodollars": cost}) for run in runs[1:]]
    first = a_score(runs[0]).model_copy(update={"cost_nanodollars": cost})
    await store.fold([*scores, *([] if failing else [first])], [a_failure(runs[0])])
    return await model_comparison(store)


async def test_a_known_cost_has_a_column_and_stands_in_full(store):
    header, row, *_ = shown(await scored(store, TutorModel(id="hosted/m")))
    assert header.endswith("cost")
    assert row.endswith("$0.00094")


async def test_named_experiments_stand_above_the_table_and_the_notes_of_a_single_one(store):
    lines = shown(await scored(store, TutorModel(id="hosted/m"), name="In verse", notes="A try."))
    assert lines[0].startswith("In verse  2026-03-02 ")
    assert lines[1:3] == ["A try.", ""]
    assert "hosted/m" in lines[4]
    both = await scored(store, TutorModel(id="hosted/n"), name="In prose")
    lines = shown(both)
    assert [line.partition("  ")[0] for line in lines[:3]] == ["In verse", "In prose", ""]


async def test_where_a_run_failed_the_cost_is_at_least_what_is_known_and_the_legend_says_so(store):
    _, row, *legend = shown(await scored(store, TutorModel(id="hosted/m"), failing=True))
    assert row.endswith("≥ $0.00092")
    assert "cost: ≥ if some costs are unknown, such as those of failed runs." in legend


async def test_equal_answers_are_said_to_leave_something_open(store):
    lines = shown(await scored(store, TutorModel(id="hosted/m")))
    assert "interrogative 1.00: all 45 answers ask; up to 19 % of such answers may not." in lines


async def test_without_any_known_cost_nothing_is_said_of_it(store):
    lines = shown(await scored(store, TutorModel(id="hosted/m"), cost=None))
    assert not any("cost" in line or "$" in line for line in lines)


async def test_what_is_free_is_zero_and_what_is_unknown_is_a_dash(store):
    planned = experiment((TutorModel(id="hosted/free", price=FREE), TutorModel(id="hosted/x")))
    await store.register(planned)
    free, unknown, *_ = planned.runs()
    scores = [
        a_score(run).model_copy(update={"cost_nanodollars": cost})
        for run, cost in ((free, 0), (unknown, None))
    ]
    await store.fold(scores, ())
    _, *rows = shown(await model_comparison(store))
    assert [row.split()[-1] for row in rows[:2]] == ["$0.00", "–"]


async def test_what_a_reference_tutor_costs_is_said_to_be_simulated(store):
    lines = shown(await scored(store, TutorModel(id="reference/tutor")))
    assert any("its cost is simulated" in line for line in lines)


def figures_of(comparison, header):
    """For each model the figures of the columns that the header has."""
    for model in comparison.models:
        figures = [f"{model.overall_score:.2f}"]
        if "interval" in header:
            figures.append("{:.2f} to {:.2f}".format(*model.confidence_interval))
        if "coverage" in header:
            figures.append(share(model.coverage))
        if "runs" in header:
            figures.append(f"{model.total_runs}/{model.planned_runs}")
        if "other weights" in header and model.other_weights is not None:
            figures.append(weights_text(model.other_weights))
        if "verbosity" in header:
            figures += [f"{vector.mean:.2f}" for vector in model.vectors.values()]
        if "student" in header:
            figures += [f"{each.overall:.2f}" for each in model.dimensions.values()]
        yield " ".join(figures)


NAMES = st.text(min_size=1, max_size=90)


@pytest.fixture(scope="module")
def measured():
    """A leaderboard with a reference tutor, and costs."""

    async def compared():
        store = MemoryStore()
        await seed(store, experiment((*tutors(4), LONG, WIDE)))
        return await model_comparison(store)

    return asyncio.run(compared())


@given(
    names=st.lists(NAMES, min_size=1, max_size=6),
    width=st.integers(60, 200),
    detail=st.booleans(),
    reason=NAMES,
)
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(
    measured, names, width, detail, reason
):
    models = tuple(
        model.model_copy(update={"model_name": name})
        for model, name in zip(measured.models, names, strict=False)
    )
    comparison = measured.model_copy(update={"models": models})
    lines = shown(comparison, width=width, detail=detail)
    assert max(map(cell_len, lines)) <= width
    for figures, line in zip(figures_of(comparison, lines[0]), lines[1:], strict=False):
        assert figures in " ".join(line.split())
    shown(comparison, width=width, reasons={models[0].model_id: reason})
    assert not detail or " ".join(lines).count("verbosity") >= len(models)


async def test_columns_of_figures_are_left_out_only_where_they_do_not_fit(store):
    await seed(store, experiment(tutors(3)))
    comparison = await model_comparison(store)
    assert {"student", "verbosity", "cost"} <= set(shown(comparison, width=160)[0].split())
    lines = [shown(comparison, width=width) for width in range(80, 160)]
    assert any("verbosity" in each[0] and "student" not in each[0] for each in lines)
    for each in lines:
        told = " ".join(line for line in each if line.startswith("Too narrow for"))
        assert ("student" in each[0]) != ("ambiguous" in told)
    narrowest = shown(comparison, width=60)
    assert {"model", "overall", "interval"} <= set(narrowest[0].split())
    assert "cost" not in narrowest[0]


async def test_a_long_id_keeps_its_beginning_and_its_end(store):
    await seed(store, experiment([TutorModel(id="openai-compatible/" + "a" * 30 + "/good")]))
    assert any(
        "openai-compa" in line and "\u2026/good" in line
        for line in shown(await model_comparison(store), width=80)
    )


async def test_reference_tutors_have_no_rank_beside_real_models(store):
    comparison = await scored(store, TutorModel(id="reference/a"), TutorModel(id="hosted/m"))
    assert {model.model_id: model.rank for model in comparison.models} == {
        "reference/a": None,
        "hosted/m": 1,
    }


async def test_reference_tutors_alone_are_ranked(store):
    comparison = await scored(store, TutorModel(id="reference/a"), TutorModel(id="reference/b"))
    assert [model.rank for model in comparison.models] == [1, 2]


async def test_control_characters_in_a_name_do_not_reach_the_terminal(store):
    lines = shown(await scored(store, TutorModel(id="hosted/m", name="red\x1b[31m")))
    assert "\x1b" not in "".join(lines)


async def test_csv_has_what_responses_took_with_an_empty_field_for_the_unknown(store):
    comparison = await scored(store, TutorModel(id="hosted/m"), failing=True)
    [row] = csv.DictReader(io.StringIO(comparison_csv(comparison)))
    assert float(row["total_cost_usd"]) == 0.000924
    assert float(row["cost_known"]) == 44 / 45
    assert (row["total_input_tokens"], row["total_visible_output_tokens"]) == ("3520", "528")
    assert (row["total_reasoning_tokens"], row["mean_latency_ms"]) == ("132", "740.0")
    unpriced = await scored(store, TutorModel(id="hosted/x"), cost=None)
    rows = csv.DictReader(io.StringIO(comparison_csv(unpriced)))
    assert {row["model_id"]: row["total_cost_usd"] for row in rows}["hosted/x"] == ""


async def test_a_model_without_a_score_says_why_in_its_row(store):
    planned = experiment([TutorModel(id="hosted/m"), TutorModel(id="hosted/down")])
    await store.register(planned)
    runs = list(planned.runs())
    why = {"kind": "context_too_long"}
    failed = [a_failure(run).model_copy(update=why) for run in runs if "down" in run.model_id]
    await store.fold([a_score(run) for run in runs if "down" not in run.model_id], failed)
    comparison = await model_comparison(store)
    reasons = await why_unscored(store, comparison)
    assert reasons == {"hosted/down": "context_too_long"}
    for width in (160, 80):
        _, well, down, *_ = shown(comparison, width=width, reasons=reasons)
        assert "(" not in well
        assert down.split()[:4] == ["–", "hosted/down", "–", "(context_too_long)"]
