"""Conversations of several turns: a run counts once, and every output shows each turn."""

from __future__ import annotations

import csv
import io
import json

import pytest
from rich.console import Console

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.results.compare.model_difference import model_difference
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.leaderboard.text_formats import comparison_csv
from socratic_bench.scoring.exchange import Status
from socratic_cli.display.leaderboard import comparison_table
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors

TUTOR = TutorModel(id="local/lectures-later")
STEADY = TutorModel(id="local/steady")


async def _talked(store: MemoryStore) -> Experiment:
    """Five scenarios of one turn and one of five turns; one tutor lectures from its second turn."""
    short = [
        Scenario(id=f"short-{number}", dimension="student", prompt=f"Why {number}?")
        for number in range(5)
    ]
    long = Scenario(id="long", dimension="ethical", prompt="May I?", follow_ups=("And?",) * 4)
    planned = Experiment(
        manifest=Manifest(models=(TUTOR, STEADY), scenarios=(*short, long), repeats=2),
        created_at=MONDAY,
    )
    await store.register(planned)
    for run in planned.runs():
        turns = 5 if run.scenario_id == "long" else 1
        await store.fold(
            [
                ScoredResponse(
                    run=run,
                    turn=turn,
                    last_turn=turn == turns,
                    profile="socratic-v1",
                    status=Status.OK,
                    vectors={"interrogative": value, "verbosity": 0.5, "exploratory": 0.5},
                    overall=value,
                )
                for turn in range(1, turns + 1)
                for value in [0.0 if run.model_id == TUTOR.id and turn > 1 else 1.0]
            ],
            (),
        )
    await store.complete(planned.experiment_id, MONDAY)
    return planned


async def test_a_run_counts_once_and_each_turn_stands_beside_it(store: MemoryStore):
    await _talked(store)

    best, row = (await model_comparison(store)).models

    assert (best.model_id, best.overall_score) == (STEADY.id, 1.0)
    # Ten runs of 1.0 and two of 0.2, not 12 responses of 20.
    assert row.overall_score == pytest.approx((10 * 1.0 + 2 * 0.2) / 12)
    assert row.dimensions["ethical"].overall == pytest.approx(0.2)
    assert (row.scored_responses, row.vectors["interrogative"].n) == (20, 20)
    assert [(each.turn, each.overall, each.scored_responses) for each in row.turns] == [
        (1, 1.0, 12),
        *((turn, 0.0, 2) for turn in (2, 3, 4, 5)),
    ]
    assert row.turns[1].vectors["interrogative"] == 0.0
    assert row.turns[1].interval is None


async def test_a_table_and_a_csv_show_each_turn(store: MemoryStore):
    await _talked(store)
    comparison = await model_comparison(store)

    console = Console(width=160, record=True, file=io.StringIO())
    console.print(comparison_table(comparison, detail=True, width=160))
    text = console.export_text()
    brief = Console(width=160, record=True, file=io.StringIO())
    brief.print(comparison_table(comparison, detail=False, width=160))
    rows = list(csv.DictReader(io.StringIO(comparison_csv(comparison))))

    assert "turn 5" in text
    assert "A run counts once, however many turns it has." in text
    assert "--detail shows each turn" in brief.export_text()
    assert (rows[1]["turn_1_overall"], rows[1]["turn_2_overall"]) == ("1.0", "0.0")
    assert rows[1]["turn_5_interrogative"] == "0.0"


async def test_runs_of_one_turn_have_no_figures_of_turns(store: MemoryStore):
    await seed(store, experiment(tutors(2)))
    comparison = await model_comparison(store)

    assert "turns" not in json.loads(comparison.model_dump_json())["models"][0]
    assert "turn_" not in comparison_csv(comparison)


async def test_two_models_are_compared_by_their_runs(store: MemoryStore):
    await _talked(store)

    difference = await model_difference(store, STEADY.id, TUTOR.id)

    assert difference.by_scenario[0].scenario_id == "long"
    assert difference.by_scenario[0].difference == pytest.approx(0.8)
    assert difference.figures[0].difference == pytest.approx(0.8 / 6)
