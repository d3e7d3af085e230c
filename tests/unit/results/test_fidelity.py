"""The fidelity table: rows from cells, ranks, what it says of lost runs, and its three texts."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import InvalidInput
from socratic_bench.results.compare.model_difference import model_difference
from socratic_bench.results.experiment_choice import NoScores
from socratic_bench.results.fidelity.fidelity import FidelityTable, fidelity
from socratic_bench.results.fidelity.text_formats import (
    DEPARTS,
    LAPSE,
    fidelity_csv,
    fidelity_markdown,
)
from socratic_bench.results.filters import Filters
from socratic_bench.results.gate.falls import Thresholds
from socratic_bench.results.gate.gate_report import gate_report
from socratic_cli.commands.compare import difference_table
from socratic_cli.commands.fidelity import table_of
from tests.dashboard.pressed_runs import TWO, filled, planned
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors


def shown(table: FidelityTable, *, detail: bool = False) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table_of(table, detail=detail))
    return console.export_text()


async def test_tutors_come_by_the_turns_that_they_keep(store: MemoryStore):
    await filled(store, TWO)

    table = await fidelity(store)

    keeps, breaks = table.models
    assert (table.horizon, keeps.model_id, breaks.model_id) == (3, "p/keeps", "p/breaks")
    assert (keeps.turns_kept, breaks.turns_kept) == (3, 0.5)
    assert [point.left for point in breaks.curve] == [0.5, 0, 0]
    assert keeps.half_life is not None
    assert breaks.half_life is not None
    assert (keeps.half_life.turn, breaks.half_life.turn) == (None, 1)
    assert (keeps.rank_interval, breaks.rank_interval) == ((1, 1), (2, 2))
    [pair] = table.differences
    assert (pair.difference, pair.is_real, pair.is_equivalent) == (2.5, True, False)
    assert breaks.started is not None
    assert breaks.started.share == 0.5
    assert breaks.kept == pytest.approx(0.5)
    # LL.. turns once, .LL. twice: over the two runs of ten scenarios.
    assert breaks.flips == pytest.approx(1.5)
    assert [(each.runs, each.share) for each in keeps.pass_power] == [(1, 1), (2, 1)]
    assert keeps.turns["s00"] == ((2, 0, 0), (1, 1, 0), (2, 0, 0), (2, 0, 0))


async def test_kinds_of_pressure_stand_beside_effort(store: MemoryStore):
    await filled(store, {"p/m": ["..LL", "..L."]})

    [model] = (await fidelity(store)).models

    found = {each.kind: each for each in model.kinds}
    assert list(found) == ["opening", "effort", "ask"]
    assert found["ask"].lapsed.share == 1
    assert found["effort"].lapsed.share == pytest.approx(0.25)
    assert found["effort"].more_lapsed is None
    more = found["ask"].more_lapsed
    assert more is not None
    assert more.difference == pytest.approx(0.75)
    assert more.is_real
    broke = found["ask"].broke
    assert broke is not None
    assert broke.share == pytest.approx(0.5)


async def test_the_key_is_known_of_scenarios_that_have_one(store: MemoryStore):
    await filled(store, TWO)

    table = await fidelity(store)

    assert [each.has_key for each in table.scenarios] == [True] + [False] * 9
    for model in table.models:
        assert model.key_said is not None
        assert (model.key_said.share, model.key_said.scenarios) == (0, 1)
        assert [point.at_risk for point in model.key_curve] == [2, 2, 2, 2]


async def test_many_lost_runs_are_told_and_leave_no_half_life(store: MemoryStore):
    await filled(store, {"p/m": ["....", "....", ".?.."], "p/n": ["....", "..LL", "...."]})

    table = await fidelity(store)

    first = next(each for each in table.models if each.model_id == "p/m")
    assert first.lost is not None
    assert first.lost.runs == 10
    assert first.lost.share == pytest.approx(1 / 3)
    assert first.lost.turns_kept == pytest.approx((2, 3))
    assert first.half_life is None
    assert {each.rank_interval for each in table.models} == {(1, 2)}
    told = (
        "p/m lost 33 % of its runs: the turns kept may be 2.0 if each of them broke at once, and "
        "3.0 if none did. It has no half-life."
    )
    assert told in table.notes
    assert "Models share ranks, too, where the end of lost runs could turn their order." in shown(
        table
    )


async def test_few_scenarios_have_no_ranks_and_fewer_no_intervals(store: MemoryStore):
    await filled(store, TWO, scenarios=4)

    table = await fidelity(store)

    assert {(each.rank, each.turns_kept_interval) for each in table.models} == {(None, None)}
    assert all(not each.kinds for each in table.models)
    assert "An interval needs 5 scenarios; there are 4." in table.notes
    assert table.differences == ()


async def test_a_dimension_and_a_model_are_chosen(store: MemoryStore):
    await filled(store, TWO)

    table = await fidelity(store, filters=Filters(models=("p/breaks",), dimension="student"))

    [model] = table.models
    assert (model.scenarios, model.runs, model.planned_runs) == (5, 10, 10)
    assert {each.dimension for each in table.scenarios} == {"student"}
    assert table.filtered is not None
    assert table.filtered.known_dimensions == ("ethical", "student")


async def test_an_experiment_without_scores_by_the_profile_names_the_remedy(store: MemoryStore):
    other = planned({"p/m": ["...."]}).model_copy(update={"experiment_id": "exp-of-several-turns"})
    manifest = other.manifest.model_copy(update={"profile": "socratic-v1"})
    await store.register(other.model_copy(update={"manifest": manifest}))
    await seed(store, experiment(tutors(2), occasion="newer"))
    remedy = "socratic-bench rescore exp-of-several-turns --profile fidelity-1"

    for named in (None, "exp-of-several-turns"):
        with pytest.raises(NoScores) as told:
            await fidelity(store, named)
        assert remedy in str(told.value), named


async def test_an_experiment_of_one_turn_is_refused(store: MemoryStore):
    other = experiment(tutors(2))
    await seed(store, other)

    with pytest.raises(InvalidInput, match="asks one turn of each scenario") as refused:
        await fidelity(store, other.experiment_id)
    with pytest.raises(NoScores) as told:
        await fidelity(store)

    assert f"{other.experiment_id} asks" in str(refused.value)
    assert "`follow_ups`" in str(refused.value)
    assert str(told.value).endswith("with `profile: fidelity-1`")


async def test_a_default_experiment_of_one_turn_is_refused(store: MemoryStore):
    await filled(store, {"p/m": ["."]})

    with pytest.raises(InvalidInput, match="asks one turn of each scenario"):
        await fidelity(store)


async def test_a_dimension_of_one_turn_is_refused(store: MemoryStore):
    mixed = planned(TWO)
    short = [
        each.model_copy(update={"follow_ups": (), "pressures": (), "dimension": "short"})
        for each in mixed.manifest.scenarios[:1]
    ]
    manifest = mixed.manifest.model_copy(
        update={"scenarios": (*short, *mixed.manifest.scenarios[1:])}
    )
    found = Experiment(manifest=manifest, created_at=MONDAY)
    await store.register(found)

    with pytest.raises(InvalidInput, match="asks one turn of each scenario of short"):
        await fidelity(store, filters=Filters(dimension="short"))
    assert len((await fidelity(store)).scenarios) == 9


async def test_filters_that_leave_nothing_are_told(store: MemoryStore):
    await filled(store, TWO)

    table = await fidelity(store, filters=Filters(until=MONDAY))

    assert table.models == ()
    assert table.filtered is not None
    assert "No experiment fits." in table.filtered.told


async def test_runs_under_way_are_told(store: MemoryStore):
    await store.register(planned(TWO))

    table = await fidelity(store)

    assert [each.turns_kept for each in table.models] == [None, None]
    assert "40 runs are pending. A run under way counts as lost after its last known turn." in (
        table.notes
    )
    assert "\u2013" in shown(table)


async def test_a_profile_that_counts_no_breaks_and_all_experiments_are_refused(store: MemoryStore):
    with pytest.raises(InvalidInput, match="socratic-v1 counts no breaks; fidelity-1 does"):
        await fidelity(store, profile="socratic-v1")
    with pytest.raises(InvalidInput, match="not `all`"):
        await fidelity(store, "all")


async def test_an_empty_store_has_an_empty_table(store: MemoryStore):
    assert (await fidelity(store)).models == ()


async def test_other_experiments_do_not_hide_the_one_with_breaks(store: MemoryStore):
    await filled(store, TWO)
    await seed(store, experiment(tutors(2), occasion="later"))

    assert {each.model_id for each in (await fidelity(store)).models} == set(TWO)


async def test_the_texts_have_the_figures_and_say_what_they_mean(store: MemoryStore):
    await filled(store, {**TWO, "p/*bold*|=x": ["....", "...."]})
    table = await fidelity(store)

    text, detailed = shown(table), shown(table, detail=True)
    markdown = fidelity_markdown(table)
    rows = {row["model_id"]: row for row in csv.DictReader(io.StringIO(fidelity_csv(table)))}

    assert LAPSE in text
    assert DEPARTS in markdown
    assert "kept of 3" in text
    assert "half-life" in text
    assert "1 (1 to 2)" in text
    assert "(pass^k): 100 % for 1, 100 % for 2" in detailed
    assert "no break yet" in detailed
    assert "p/keeps \u2212 p/breaks" in detailed
    assert "+2.50*" in detailed
    assert r"p/\*bold\*&#124;=x" in markdown
    assert (rows["p/breaks"]["turns_kept"], rows["p/breaks"]["horizon"]) == ("0.5", "3")
    assert (rows["p/breaks"]["left_1"], rows["p/breaks"]["half_life"]) == ("0.5", "1")
    assert rows["p/keeps"]["half_life"] == ""
    assert rows["p/keeps"]["lapsed_effort"] == "0.25"


async def test_a_gate_checks_the_turns_kept(store: MemoryStore):
    found = await filled(store, TWO)

    report = await gate_report(store, found.experiment_id, Thresholds(least_turns_kept=0.6), MONDAY)

    keeps, breaks = sorted(report.checks, key=lambda check: check.passed, reverse=True)
    assert (keeps.passed, breaks.passed, report.passed) == (True, False, False)
    assert breaks.name == "turns kept are at least 0.6"
    assert breaks.detail == "turns kept are 0.5000 of 3 (interval from 0.36)"


async def test_a_gate_of_turns_kept_needs_the_profile(store: MemoryStore):
    other = experiment(tutors(3))
    await seed(store, other)

    with pytest.raises(InvalidInput, match="follow_ups"):
        await gate_report(store, other.experiment_id, Thresholds(least_turns_kept=1), MONDAY)


async def test_two_tutors_are_compared_by_the_turns_that_they_keep(store: MemoryStore):
    await filled(store, TWO)

    difference = await model_difference(store, "p/keeps", "p/breaks")
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(difference_table(difference))

    found, table = difference.turns_kept, await fidelity(store)
    assert found is not None
    assert (found.first, found.second, found.horizon, found.scenarios) == (3, 0.5, 3, 10)
    assert (found.difference, found.interval) == (2.5, table.differences[0].interval)
    assert "Turns kept of 3: A 3.0, B 0.5; A \u2212 B +2.50, 95 % +1.67 to +2.64, more than " in (
        console.export_text()
    )


async def test_a_profile_without_breaks_compares_no_turns(store: MemoryStore):
    other = experiment(tutors(2))
    await seed(store, other)

    difference = await model_difference(store, "reference/socratic", "reference/lecturer")

    assert difference.turns_kept is None
    assert "turns_kept" not in difference.model_dump_json()
