"""The leaderboard in the shape of /api/model-comparison."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import timedelta

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, StopWhen, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import UnknownExperiment
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.leaderboard.places import OtherWeights
from socratic_bench.results.leaderboard.selection import default_experiment
from socratic_bench.results.leaderboard.text_formats import (
    comparison_csv,
    comparison_markdown,
    unanimity,
)
from socratic_bench.results.pages import report_page
from socratic_bench.scoring.exchange import Status
from tests.contract.store.facts import a_failure, a_score
from tests.dashboard.seeding import MONDAY, SCENARIOS, experiment, seed, tutors


def scored(planned: Experiment, value: float, vectors: dict[str, float]) -> list[ScoredResponse]:
    """One response for every run, all alike, without a price."""
    return [
        ScoredResponse(
            run=run,
            turn=1,
            last_turn=True,
            profile=planned.manifest.profile,
            status=Status.OK,
            vectors=dict(vectors),
            overall=value,
        )
        for run in planned.runs()
    ]


async def test_an_empty_store_has_no_models_and_no_winner(store: MemoryStore):
    comparison = await model_comparison(store)

    assert comparison.models == ()
    assert comparison.winner is None
    assert comparison.vectors == ("verbosity", "exploratory", "interrogative")


async def test_models_stand_best_first_and_the_first_is_the_winner(store: MemoryStore):
    await seed(store, experiment(tutors(6)))

    comparison = await model_comparison(store)

    figures = [model.overall_score or 0.0 for model in comparison.models]
    assert len(figures) == 6
    assert figures == sorted(figures, reverse=True)
    assert comparison.winner == comparison.models[0].model_id == "reference/socratic"


async def test_a_row_has_the_documented_keys_with_one_key_for_each_vector(store: MemoryStore):
    await seed(store, experiment(tutors(2)), failing=0)

    row = (await model_comparison(store)).model_dump(mode="json")["models"][0]

    assert row["total_runs"] == row["planned_runs"] == row["scored_responses"] == 45
    assert row["coverage"] == 1.0
    assert row["statuses"] == {"ok": 45}
    assert row["kind"] == "reference"
    assert row["simulated_latency_ms"] == 200
    assert list(row["dimensions"]) == ["ambiguous", "ethical", "student"]
    assert set(row["dimensions"]["ambiguous"]) == {
        "runs",
        "overall",
        "coverage",
        "interval",
        "verbosity",
        "exploratory",
        "interrogative",
    }
    low, high = row["confidence_interval"]
    assert low < row["overall_score"] < high
    by_dimension = [each["overall"] for each in row["dimensions"].values()]
    assert sum(by_dimension) / 3 == pytest.approx(row["overall_score"])


async def test_scenarios_with_equal_words_are_one_cluster(store: MemoryStore):
    twins = tuple(
        Scenario(id=f"s{number}", dimension="student", prompt=f"Question {number % 4}?")
        for number in range(12)
    )
    manifest = Manifest(models=tutors(1), scenarios=twins, repeats=1)
    planned = Experiment(manifest=manifest, created_at=MONDAY)
    await seed(store, planned, failing=0)

    [row] = (await model_comparison(store)).models

    assert row.scored_responses == 12
    assert row.confidence_interval is None
    assert row.interval_note == "An interval needs 5 scenarios; 4 scenarios have a score."


async def test_a_failed_run_lowers_coverage_and_no_mean(store: MemoryStore):
    planned = experiment(tutors(1))
    await seed(store, planned, failing=1.0)

    [row] = (await model_comparison(store)).models

    assert row.total_runs == 45
    assert row.coverage == 0.0
    assert row.overall_score is None
    assert row.dimensions["ethical"].overall is None
    assert row.statuses == {"error": 45}
    assert (await model_comparison(store)).winner is None


@pytest.mark.parametrize(
    ("asks", "note"),
    [
        (1.0, "all 45 answers ask; up to 19 % of such answers may not"),
        (0.0, "none of 45 answers ask; up to 19 % of such answers may"),
    ],
)
async def test_equal_answers_of_a_vector_that_says_yes_or_no_leave_something_open(
    store: MemoryStore, asks: float, note: str
):
    planned = experiment([TutorModel(id="local/model")])
    await store.register(planned)
    vectors = {"verbosity": 1.0, "exploratory": 1.0, "interrogative": asks}
    await store.fold(scored(planned, (2 + asks) / 3, vectors), ())

    comparison = await model_comparison(store)

    [row] = comparison.models
    assert {name: vector.note for name, vector in row.vectors.items()} == {
        "verbosity": None,
        "exploratory": None,
        "interrogative": note,
    }
    told = f"interrogative {asks:.2f}: {note}."
    assert unanimity(comparison) == [told]
    assert f"- {told}" in comparison_markdown(comparison)
    assert told in await report_page(store, planned.experiment_id)


async def test_a_reading_dimension_of_socratic_v2_has_no_interval_below_fifteen_scenarios(
    store: MemoryStore,
):
    for count, has_interval in ((14, False), (15, True)):
        manifest = Manifest(
            models=(TutorModel(id="local/model"),),
            scenarios=SCENARIOS[:count],
            repeats=1,
            profile="socratic-v2",
        )
        planned = Experiment(manifest=manifest, created_at=MONDAY)
        await store.register(planned)
        await store.fold(scored(planned, 0.5, {"asking": 0.5, "form": 0.5, "ground": 0.5}), ())

        [row] = (await model_comparison(store, planned.experiment_id)).models

        assert (row.vectors["ground"].interval is not None) is has_interval
        assert row.vectors["form"].interval == row.confidence_interval is not None


async def test_vectors_are_those_of_the_profile_whatever_their_names(store: MemoryStore):
    model = TutorModel(id="local/model")
    manifest = Manifest(models=(model,), scenarios=SCENARIOS, repeats=1, profile="depth-v1")
    planned = Experiment(manifest=manifest, created_at=MONDAY)
    await store.register(planned)
    await store.fold(scored(planned, 0.5, {"depth": 0.25, "warmth": 0.75}), ())

    comparison = await model_comparison(store)

    assert comparison.profile == "depth-v1"
    assert comparison.vectors == ("depth", "warmth")
    [row] = comparison.model_dump(mode="json")["models"]
    assert row["dimensions"]["student"]["depth"] == 0.25
    warmth = row["vectors"]["warmth"]
    assert (warmth["mean"], warmth["n"], "note" in warmth) == (0.75, 15, False)
    # Scenarios that agree leave room: m - t * sqrt(beta) * m, and (1 - m) in place of m above.
    assert warmth["interval"] == pytest.approx([0.6046, 0.7985], abs=5e-5)


async def test_an_unknown_cost_is_null_and_a_known_one_of_zero_is_zero(store: MemoryStore):
    unpriced = experiment((TutorModel(id="local/unpriced"),))
    await store.register(unpriced)
    await store.fold(scored(unpriced, 1.0, {"verbosity": 1.0}), ())
    await seed(store, experiment(tutors(1)))

    rows = {row.model_id: row for row in (await model_comparison(store)).models}

    assert rows["local/unpriced"].mean_cost_usd is None
    assert rows["local/unpriced"].total_cost_usd is None
    assert rows["local/unpriced"].mean_latency_ms is None
    assert rows["reference/socratic"].mean_cost_usd == 0.0


async def test_a_cost_is_exact_and_says_how_much_of_it_is_known(store: MemoryStore):
    planned = experiment((TutorModel(id="hosted/model"),))
    await store.register(planned)
    first, second, third, *_ = planned.runs()
    await store.fold([a_score(first), a_score(second)], [a_failure(third)])

    [row] = (await model_comparison(store)).models

    assert (row.total_cost_usd, row.mean_cost_usd) == (0.000042, 0.000021)
    assert row.cost_known == 2 / 3
    assert (row.total_input_tokens, row.mean_input_tokens) == (160, 80)
    assert (row.total_visible_output_tokens, row.total_reasoning_tokens) == (24, 6)


async def test_before_anything_ended_nothing_is_known_of_costs(store: MemoryStore):
    await store.register(experiment((TutorModel(id="hosted/model"),)))

    [row] = (await model_comparison(store)).models

    assert row.total_cost_usd is None
    assert row.cost_known is None
    assert row.total_input_tokens is None


async def test_each_model_is_shown_by_its_newest_complete_experiment_unless_one_is_named(
    store: MemoryStore,
):
    old = experiment(tutors(4))
    new = experiment(tutors(2), occasion="2026-W11", created_at=MONDAY + timedelta(days=7))
    await seed(store, old)
    await seed(store, new)

    newest = {row.model_id: row for row in (await model_comparison(store)).models}
    named = await model_comparison(store, old.experiment_id)
    every = {row.model_id: row for row in (await model_comparison(store, "all")).models}

    assert newest["reference/socratic"].experiment_ids == (new.experiment_id,)
    assert newest["provider-1/tutor-1"].experiment_ids == (old.experiment_id,)
    assert {row.experiment_ids for row in named.models} == {(old.experiment_id,)}
    assert len(named.models) == 4
    assert every["reference/socratic"].total_runs == 90
    assert every["reference/socratic"].experiment_ids == (new.experiment_id, old.experiment_id)


async def test_of_experiments_that_ask_a_model_the_same_only_one_is_counted(store: MemoryStore):
    fewer = experiment(tutors(2), repeats=2)
    more = experiment(tutors(3), repeats=3, created_at=MONDAY + timedelta(days=1))
    again = experiment(tutors(2), repeats=1, created_at=MONDAY + timedelta(days=2))
    for each in (fewer, more, again):
        await seed(store, each)

    rows = (await model_comparison(store, "all")).models
    alone = (await model_comparison(store, more.experiment_id)).models
    assert [(row.total_runs, row.planned_runs) for row in rows] == [(45, 45)] * 3
    assert [row.vectors for row in rows] == [row.vectors for row in alone]


def other_prompt(models: Sequence[TutorModel], *, days: int, repeats: int = 3) -> Experiment:
    """An experiment that differs in its conditions."""
    manifest = Manifest(
        models=tuple(models), scenarios=SCENARIOS, repeats=repeats, system_prompt="Lecture."
    )
    return Experiment(manifest=manifest, created_at=MONDAY + timedelta(days=days))


async def test_the_default_table_has_one_set_of_conditions_and_names_the_others(store: MemoryStore):
    old = experiment(tutors(3))
    same = experiment(tutors(2), occasion="again", created_at=MONDAY + timedelta(days=1))
    other = other_prompt(tutors(3), days=2)
    for each in (old, same, other):
        await seed(store, each)

    comparison = await model_comparison(store)

    assert not comparison.mixed_conditions
    assert [each.experiment_id for each in comparison.experiments] == [other.experiment_id]
    [left_out] = comparison.left_out
    assert (left_out.reason, left_out.count) == ("other_conditions", 2)
    assert left_out.experiment_ids == (same.experiment_id, old.experiment_id)
    assert comparison.note == (
        f"Left out: again ({same.experiment_id}), {old.experiment_id} [other test conditions]. "
        "Name an experiment to see it alone, or `all` to see every set of conditions; "
        "`socratic-bench pin` decides which one is shown by default."
    )


@pytest.mark.parametrize("pilot", ["same conditions", "other conditions"])
async def test_a_pilot_replaces_no_result(store: MemoryStore, pilot: str):
    full = experiment(tutors(3))
    trial = (
        experiment(tutors(1), repeats=1, created_at=MONDAY + timedelta(days=1))
        if pilot == "same conditions"
        else other_prompt(tutors(1), days=1, repeats=1)
    )
    for each in (full, trial):
        await seed(store, each)

    comparison = await model_comparison(store)

    assert {row.experiment_ids for row in comparison.models} == {(full.experiment_id,)}
    [left_out] = comparison.left_out
    assert (left_out.reason, left_out.experiment_ids) == ("pilot", (trial.experiment_id,))
    assert f"{trial.experiment_id} [half as many runs or fewer]" in (comparison.note or "")


async def test_a_small_study_is_no_pilot_of_a_large_one_under_other_conditions(store: MemoryStore):
    study = other_prompt(tutors(2), days=1, repeats=1)
    for each in (experiment(tutors(5)), study):
        await seed(store, each)

    comparison = await model_comparison(store)

    assert {row.experiment_ids for row in comparison.models} == {(study.experiment_id,)}
    assert (await default_experiment(store)).experiment_id == study.experiment_id


async def test_a_running_experiment_replaces_no_complete_one_and_more_than_a_pilot(
    store: MemoryStore,
):
    full = experiment(tutors(3))
    await seed(store, experiment(tutors(1), repeats=1, created_at=MONDAY - timedelta(days=1)))
    await seed(store, full, share=0.9)
    assert (await model_comparison(store)).experiments[0].experiment_id == full.experiment_id

    await seed(store, full)
    week = experiment(tutors(3), occasion="2026-W11", created_at=MONDAY + timedelta(days=7))
    await seed(store, week, share=0.9)
    comparison = await model_comparison(store)

    assert {row.experiment_ids for row in comparison.models} == {(full.experiment_id,)}
    assert [each.reason for each in comparison.left_out] == ["incomplete", "pilot"]


async def test_an_experiment_that_narrow_intervals_ended_is_no_pilot(store: MemoryStore):
    week = experiment(tutors(3), occasion="2026-W11", created_at=MONDAY + timedelta(days=7))
    stops = {"repeats": 6, "stop_when": StopWhen(interval=0.2)}
    manifest = Manifest.model_validate(week.manifest.model_dump() | stops)
    week = Experiment(manifest=manifest, occasion=week.occasion, created_at=week.created_at)
    await seed(store, experiment(tutors(3), repeats=6))
    await seed(store, week, share=2 / 6)
    assert await store.complete(week.experiment_id, week.created_at, 2)

    comparison = await model_comparison(store)

    assert {row.experiment_ids for row in comparison.models} == {(week.experiment_id,)}
    assert [each.reason for each in comparison.left_out] == ["older"]


async def test_a_pin_decides_which_table_is_the_default_one(store: MemoryStore):
    old, new = experiment(tutors(3)), other_prompt(tutors(3), days=2)
    for each in (old, new):
        await seed(store, each)
    await store.pin(old.experiment_id, MONDAY)

    comparison = await model_comparison(store)
    named = await model_comparison(store, new.experiment_id)

    assert {row.experiment_ids for row in comparison.models} == {(old.experiment_id,)}
    assert comparison.experiments[0].pinned_at == MONDAY
    [left_out] = comparison.left_out
    assert (left_out.reason, left_out.experiment_ids) == ("not_pinned", (new.experiment_id,))
    assert (comparison.note or "").startswith(f"{old.experiment_id} is pinned. Left out: ")
    assert (named.left_out, named.note) == ((), None)

    await store.pin(old.experiment_id, None)
    assert (await model_comparison(store)).models == named.models


async def test_all_has_a_row_for_each_model_and_conditions_and_no_winner(store: MemoryStore):
    old, new = experiment(tutors(3)), other_prompt(tutors(2), days=2)
    for each in (old, new):
        await seed(store, each)

    comparison = await model_comparison(store, "all")
    alone = [
        row
        for each in (new, old)
        for row in (await model_comparison(store, each.experiment_id)).models
    ]

    assert comparison.models == tuple(alone)
    assert comparison.winner is None
    assert comparison.mixed_conditions
    assert comparison.left_out == ()
    assert comparison.note == (
        "This table has 2 sets of test conditions (scenarios, prompts, parameters or student): "
        f"{new.experiment_id}; {old.experiment_id}. A model has a row under each; figures and "
        "ranks compare only within one."
    )


async def test_a_row_that_pools_experiments_says_so(store: MemoryStore):
    await seed(store, experiment(tutors(1)))
    await seed(store, experiment(tutors(2), occasion="again", created_at=MONDAY + timedelta(1)))

    assert (await model_comparison(store, "all")).note == (
        "1 row pools the runs of several experiments under the same conditions."
    )


async def test_experiments_under_another_profile_are_left_out_and_the_note_says_so(
    store: MemoryStore,
):
    await seed(store, experiment(tutors(2)))
    manifest = Manifest(models=(TutorModel(id="local/m"),), scenarios=SCENARIOS, profile="depth-v1")
    await seed(store, Experiment(manifest=manifest, created_at=MONDAY - timedelta(days=1)))

    comparison = await model_comparison(store)
    every = await model_comparison(store, "all")

    assert [row.kind for row in comparison.models] == ["reference", "reference"]
    assert [each.reason for each in comparison.left_out] == ["other_profile"]
    assert "[another profile]" in (every.note or "")


async def test_progress_counts_every_ended_run_of_an_experiment(store: MemoryStore):
    planned = experiment(tutors(4))
    await seed(store, planned, share=0.5, failing=0.1)

    [summary] = (await model_comparison(store)).experiments
    progress = await store.progress(planned.experiment_id)

    assert (summary.planned, summary.done) == (180, 90) == (progress.planned, progress.done)
    assert summary.completed_at is None


async def test_an_experiment_that_is_not_there_is_named_in_the_error(store: MemoryStore):
    with pytest.raises(UnknownExperiment, match="exp-nowhere"):
        await model_comparison(store, "exp-nowhere")


async def test_a_complete_experiment_whose_runs_all_failed_replaces_no_result(store: MemoryStore):
    good = experiment(tutors(3), occasion="good")
    await seed(store, good)
    failed = experiment(
        tutors(3), occasion="failed", repeats=4, created_at=MONDAY + timedelta(days=1)
    )
    await seed(store, failed, failing=1.0)

    comparison = await model_comparison(store)

    assert [each.occasion for each in comparison.experiments] == ["good"]
    assert [(each.reason, each.experiment_ids) for each in comparison.left_out] == [
        ("no_score", (failed.experiment_id,))
    ]
    assert f"failed ({failed.experiment_id}) [no run has a score]" in (comparison.note or "")
    named = await model_comparison(store, "failed")
    assert [each.occasion for each in named.experiments] == ["failed"]
    await store.pin(failed.experiment_id, MONDAY)
    pinned = await model_comparison(store)
    assert [each.occasion for each in pinned.experiments] == ["failed"]


async def test_a_model_that_only_failed_stays_in_the_table_of_its_conditions(store: MemoryStore):
    await seed(store, experiment(tutors(3), occasion="good"))
    alone = experiment(tutors(4)[3:], occasion="alone", created_at=MONDAY + timedelta(days=1))
    await seed(store, alone, failing=1.0)

    comparison = await model_comparison(store)

    assert [model.model_id for model in comparison.models][-1] == "provider-2/tutor-2"
    assert comparison.models[-1].overall_score is None
    assert comparison.left_out == ()


async def test_where_every_experiment_only_failed_the_newest_is_shown(store: MemoryStore):
    for number in range(3):
        planned = experiment(
            tutors(2), occasion=str(number), created_at=MONDAY + timedelta(days=number)
        )
        await seed(store, planned, failing=1.0)

    comparison = await model_comparison(store)

    assert [each.occasion for each in comparison.experiments] == ["2"]
    assert [each.reason for each in comparison.left_out] == ["older"]


def of_three_dimensions(
    planned: Experiment, **means: tuple[float, float, float]
) -> list[ScoredResponse]:
    """One response for every run, with the vectors of its model, by the end of the model's id."""
    found = []
    for each in scored(planned, 0.5, {}):
        values = means[each.run.model_id.partition("/")[2]]
        named = dict(zip(("verbosity", "exploratory", "interrogative"), values, strict=True))
        found.append(each.model_copy(update={"vectors": named, "overall": sum(values) / 3}))
    return found


async def test_neighbours_tell_on_how_many_weightings_their_order_holds(store: MemoryStore):
    ids = ("local/better", "local/worse", "local/last", "reference/socratic")
    planned = experiment([TutorModel(id=each) for each in ids])
    await store.register(planned)
    means = {
        "better": (0.60, 0.45, 0.52),
        "worse": (0.50, 0.50, 0.50),
        "last": (0.0, 0.0, 0.0),
        "socratic": (1.0, 1.0, 1.0),
    }
    await store.fold(of_three_dimensions(planned, **means), ())

    comparison = await model_comparison(store)

    [socratic, better, worse, last] = comparison.models
    assert socratic.other_weights is None
    assert better.other_weights is not None
    assert better.other_weights.next_model == "local/worse"
    assert better.other_weights.share_ahead == pytest.approx(16 / 21)
    assert not better.other_weights.certain
    assert better.other_weights.rank_range == (1, 2)
    assert worse.other_weights is not None
    assert worse.other_weights.share_ahead == 1.0
    assert worse.other_weights.certain
    assert last.other_weights is not None
    assert last.other_weights.next_model is None
    assert last.other_weights.share_ahead is None
    assert last.other_weights.rank_range == (3, 3)
    told = (
        "The order depends on the weights of the vectors. The first of these neighbours is ahead "
        "under less than 95 % of all weightings: local/better and local/worse (76 %)."
    )
    assert told in comparison.notes
    page = comparison_markdown(comparison)
    assert "| other weights |" in page
    assert "| 76 %, 1\u20132 |" in page
    assert "| \u2013, 3 |" in page
    [_, row, *_] = csv.DictReader(io.StringIO(comparison_csv(comparison)))
    assert float(row["share_ahead"]) == pytest.approx(16 / 21)
    assert (row["weights_rank_low"], row["weights_rank_high"]) == ("1", "2")


async def test_an_order_that_holds_under_every_weighting_needs_no_column(store: MemoryStore):
    planned = experiment([TutorModel(id="local/better"), TutorModel(id="local/worse")])
    await store.register(planned)
    means = {"better": (0.9, 0.9, 0.9), "worse": (0.3, 0.3, 0.3)}
    await store.fold(of_three_dimensions(planned, **means), ())

    comparison = await model_comparison(store)

    assert comparison.models[0].other_weights is not None
    assert not any("depends on the weights" in note for note in comparison.notes)
    assert "other weights" not in comparison_markdown(comparison)


@pytest.mark.parametrize(
    ("profile", "vectors"),
    [
        ("socratic-v2", {"asking": 0.5, "form": 0.5, "ground": 0.5}),
        ("socratic-v1", {"verbosity": 0.5, "exploratory": None, "interrogative": 0.5}),
    ],
)
async def test_an_overall_that_is_no_mean_of_all_vectors_has_no_other_weights(
    store: MemoryStore, profile: str, vectors: dict[str, float | None]
):
    manifest = Manifest(models=tutors(4), scenarios=SCENARIOS, repeats=1, profile=profile)
    planned = Experiment(manifest=manifest, created_at=MONDAY)
    await store.register(planned)
    every = scored(planned, 0.5, {})
    await store.fold([each.model_copy(update={"vectors": vectors}) for each in every], ())

    rows = (await model_comparison(store)).model_dump(mode="json")["models"]

    assert len(rows) == 4
    assert not any("other_weights" in row for row in rows)


@pytest.mark.parametrize(
    ("ahead", "told", "is_steady"),
    [
        (0.9499, "94 %", False),
        (0.95, "95 %", True),
        (0.9999, "99 %", True),
        (1.0, "100 %", True),
        (0.001, "1 %", False),
    ],
)
def test_a_share_of_95_percent_is_never_less(ahead: float, told: str, is_steady: bool):
    weights = OtherWeights(
        next_model="local/worse", share_ahead=ahead, certain=False, rank_range=(1, 2)
    )

    assert (weights.share_text, weights.is_steady) == (told, is_steady)
