"""Tables in terminals of any width: no line is too wide and no figure is cut."""

import io
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from socratic_bench.domain.experiment.manifest import Manifest, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.events.codec import Message
from socratic_bench.planning.estimate import estimate
from socratic_bench.ports.broker import DeadLetter
from socratic_bench.ports.stores.leases import Spending
from socratic_bench.results.costs import SpendingFigures
from socratic_bench.results.experiment_status import ExperimentStatus, ModelProgress, State
from socratic_bench.results.pending import PendingRun, WaitsFor
from socratic_cli.commands.check import check_table, rows_of
from socratic_cli.commands.dlq import dead_letters_table
from socratic_cli.display.estimate import estimate_table
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.status import (
    experiments_table,
    models_table,
    pending_table,
    status_table,
)
from socratic_cli.display.terminal import name_of, standard_output
from socratic_runner.checking import Checked
from tests.contract.store.facts import MONDAY, a_response, a_run
from tests.dashboard.seeding import SCENARIOS

NAMES = st.text(min_size=1, max_size=90)
WIDTHS = st.integers(60, 200)
COUNTS = st.integers(0, 999_999)
DOLLARS = st.none() | st.floats(0, 9_999)
LONG = "openai-compatible/" + "a" * 30 + "/good"


def printed(table, width):
    """The lines of a table, as a terminal of that width shows them."""
    text = io.StringIO()
    Console(file=text, width=width, markup=False, highlight=False).print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    assert max(map(cell_len, lines)) <= width
    return lines


def experiment_like(name, occasion, state, counts):
    planned, done, failed = counts
    return ExperimentStatus(
        experiment_id="exp-" + "0123456789abcdef" * 2,
        name=name,
        notes=name,
        occasion=occasion,
        created_at=MONDAY,
        completed_at=None,
        priority="normal",
        deadline_at=MONDAY + timedelta(hours=1),
        manifest_id="m",
        conditions_id="c",
        profile="socratic-v1",
        models=1,
        planned=planned,
        done=done,
        failed=failed,
        left=0,
        state=state,
        spending=SpendingFigures.of(Spending(2, 2, 1, exhausted=False), has_prices=True),
    )


def model_like(name, counts, cost, failures):
    planned, done, failed = counts
    return ModelProgress(
        model_id=name,
        model_name=name,
        kind="reference" if name.startswith("reference/") else "model",
        planned=planned,
        done=done,
        failed=failed,
        failures=failures,
        failure_examples={},
        total_cost_usd=cost,
        cost_known=0.5,
    )


THREE = st.tuples(COUNTS, COUNTS, COUNTS)


@given(
    st.lists(st.tuples(NAMES, NAMES, st.sampled_from(State), THREE), min_size=1, max_size=4), WIDTHS
)
def test_experiments_fit(drawn, width):
    lines = printed(experiments_table(experiment_like(*each) for each in drawn), width)
    for (_, _, state, (_, done, failed)), line in zip(drawn, lines[1:], strict=False):
        assert f" {done} " in line
        assert f" {failed} " in line
        assert line.endswith(state.replace("_", " "))


@given(NAMES, NAMES, st.sampled_from(State), THREE, WIDTHS)
def test_an_experiment_fits(name, occasion, state, counts, width):
    status = experiment_like(name, occasion, state, counts)
    assert status.experiment_id in " ".join(printed(status_table(status), width))


@given(
    st.lists(
        st.tuples(
            NAMES | st.just("reference/socratic"),
            THREE,
            DOLLARS,
            st.dictionaries(NAMES, COUNTS, max_size=3),
        ),
        min_size=1,
    ),
    WIDTHS,
)
def test_models_of_an_experiment_fit(drawn, width):
    printed(models_table([model_like(*each) for each in drawn]), width)


@given(
    st.lists(st.tuples(NAMES, NAMES, COUNTS, st.sampled_from(WaitsFor)), min_size=1, max_size=4),
    WIDTHS,
)
def test_pending_runs_fit(drawn, width):
    runs = [
        PendingRun(
            run_id="run-" + "0123456789abcdef" * 2,
            model_id=model,
            scenario_id=scenario,
            dimension="any",
            repeat=repeat,
            waits_for=waits_for,
            turns_answered=1,
            turns=3,
        )
        for model, scenario, repeat, waits_for in drawn
    ]
    lines = printed(pending_table(runs), width)
    for run, line in zip(runs, lines[1:], strict=False):
        turn = " 2 of 3" if run.waits_for == WaitsFor.RESPONSE else ""
        assert line.endswith(f"{run.waits_for}{turn}")


PRICES = st.builds(
    Price,
    input_per_million=st.integers(0, 100).map(Decimal),
    output_per_million=st.integers(0, 100).map(Decimal),
)
TUTORS = st.lists(
    st.builds(
        TutorModel,
        id=st.from_regex(r"(hosted|reference)/[a-z-]{1,60}", fullmatch=True),
        name=NAMES.filter(str.strip),
        price=st.none() | PRICES,
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.id,
)


@given(TUTORS, WIDTHS)
def test_an_estimate_fits_and_both_of_its_costs_stand_in_full(models, width):
    header, *_ = printed(
        estimate_table(estimate(Manifest(models=models, scenarios=SCENARIOS))), width
    )
    assert header.endswith("likely cost  cost at most")


@given(TUTORS, st.floats(0, 3_600), NAMES, st.booleans(), WIDTHS)
def test_a_check_fits_and_its_result_stands_in_full(models, seconds, version, fails, width):
    answered = a_response(a_run()).model_copy(update={"model_version": version})
    failed = ModelCallFailed(FailureKind.CONTEXT_TOO_LONG, version, retryable=False)
    result = failed if fails else answered
    table = check_table(rows_of([Checked(model, result, seconds) for model in models]))
    lines = printed(table, width)
    assert "result" in lines[0]
    assert all(("context_too_long" if fails else " ok ") in each for each in lines[1 : len(models)])


@given(NAMES, NAMES, st.text(max_size=400), st.integers(1, 999), WIDTHS)
def test_dead_letters_fit(message_id, group, reason, attempts, width):
    message = Message(id=message_id, type="run.requested", group=group, body=b"")
    letter = DeadLetter(message, "judge-response-recorded", reason, attempts)
    printed(dead_letters_table([letter]), width)


def test_a_reason_of_a_dead_letter_is_there_as_a_whole():
    message = Message(id="a" * 64, type="run.requested", group="g" * 40, body=b"")
    reason = "the payload has no field named `experiment_id`, which every event of this type has"
    letter = DeadLetter(message, "runner-run-requested", reason, 5)
    for width in (60, 80, 160):
        lines = printed(dead_letters_table([letter]), width)
        at = lines[0].index("reason")
        shown = " ".join(line[at:] for line in lines[1:] if not line.startswith("Too narrow"))
        assert " ".join(shown.split()).startswith(reason)


def test_a_line_names_the_columns_left_out_and_a_long_id_keeps_both_its_ends():
    models = [model_like(LONG, (45, 40, 5), 0.25, {"rate_limited": 3, "timed_out": 2})]
    assert not any("Too narrow" in line for line in printed(models_table(models), 160))
    header, row, *rest = printed(models_table(models), 60)
    assert "planned" not in header
    assert row.startswith("open")
    assert "…/good" in row
    assert "Too narrow for planned: see --json." in rest


def test_at_eighty_columns_reasons_of_failure_stand_beside_kind_and_cost():
    failures = {"context_too_long": 12, "malformed_reply": 20}
    models = [model_like(name, (45, 40, 32), 0.0034, failures) for name in (LONG, "reference/x")]
    header, *rest = printed(models_table(models), 80)
    assert header.split() == ["model", "kind", "done", "failed", "cost", "failed", "for"]
    assert "Too narrow for planned: see --json." in rest


def test_a_piped_table_keeps_names_that_differ_at_one_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [f"hosted/{'a' * 120}-{part}-{'b' * 120}" for part in ("one", "two")]
    columns = [TableColumn("model", "left", is_name=True), TableColumn("overall", drop=1)]

    standard_output().print(FittingTable(columns, [(name_of(each), "0.50") for each in names], ""))

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [["model", "overall"], *([each, "0.50"] for each in names)]
