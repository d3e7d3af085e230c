"""The estimate of a benchmark, as a table for people and as JSON."""

import io
from decimal import Decimal

import pytest
from rich.console import Console

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.planning.estimate import Prospect, estimate
from socratic_cli.display.estimate import (
    estimate_as_json,
    estimate_table,
    prospect_sentence,
)
from tests.contract.store.facts import MONDAY
from tests.dashboard.seeding import SCENARIOS

PRICE = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))
FREE = Price(input_per_million=Decimal(0), output_per_million=Decimal(0))
PRICED = TutorModel(id="hosted/priced", price=PRICE)
UNPRICED = TutorModel(id="hosted/unpriced")
REFERENCE = TutorModel(id="reference/socratic")


def an_estimate(*models, budget=None):
    return estimate(Manifest(models=models, scenarios=SCENARIOS, budget=budget))


def shown(found, width=100):
    text = io.StringIO()
    console = Console(file=text, width=width, markup=False, highlight=False)
    console.print(estimate_table(found))
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def sentences(found):
    return " ".join(shown(found))


def test_each_model_has_its_calls_tokens_and_costs():
    header, row, *_ = shown(an_estimate(PRICED))
    assert header == "model runs calls tokens in tokens out likely cost cost at most"
    assert row == "hosted/priced 45 45 1,755 7,425 $0.1166 $0.4436"


def test_a_total_with_an_unknown_part_is_at_least_what_is_known():
    found = an_estimate(PRICED, UNPRICED, REFERENCE)
    lines = shown(found)
    assert lines[2].endswith("– –")
    assert lines[4].startswith("total 135 135 ")
    assert lines[4].count("≥ $") == 1
    assert lines[4].endswith(" –"), "there is no most where a price is unknown"
    assert "The price of hosted/unpriced is unknown: set a `price`" in sentences(found)
    assert "The other models cost $0.4436 at most." in sentences(found)


def test_models_without_a_price_are_named_up_to_a_few():
    found = an_estimate(*(TutorModel(id=f"hosted/m{number}") for number in range(8)))
    assert "hosted/m0, hosted/m1, hosted/m2, hosted/m3, hosted/m4 and 3 more" in sentences(found)


def test_reference_tutors_are_labelled_and_need_no_price():
    found = an_estimate(REFERENCE, PRICED)
    assert shown(found)[1].startswith("reference/socratic reference 45")
    assert "its price is simulated" in sentences(found)
    assert "is unknown" not in sentences(found)
    assert "≥" not in sentences(found)


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        (None, "There is no budget"),
        (1, "The budget of $1.00 suffices for $0.4436, the most that it costs."),
        ("0.3", "The budget of $0.3000 is likely to suffice, but not for $0.4436."),
        ("0.1", "The budget of $0.1000 is less than the likely cost of $0.1166."),
    ],
)
def test_what_it_means_for_the_budget_is_said_in_a_sentence(budget, sentence):
    found = an_estimate(PRICED, budget=None if budget is None else Decimal(budget))
    assert sentence in sentences(found)


def test_without_any_price_nothing_is_said_of_a_budget():
    assert "budget" not in sentences(an_estimate(UNPRICED))


def test_a_long_name_is_folded_and_cuts_no_figure_off():
    long = TutorModel(id="hosted/" + "very-long-name-" * 12, price=PRICE)
    row = shown(an_estimate(long))[1]
    assert row.endswith("45 45 1,755 7,425 $0.1166 $0.4436")


def test_json_has_every_figure_with_null_for_the_unknown():
    models = (PRICED, UNPRICED, TutorModel(id="local/free", price=FREE))
    manifest = Manifest(models=models, scenarios=SCENARIOS, budget=Decimal(1))
    experiment = Experiment(manifest=manifest, created_at=MONDAY)
    told = estimate_as_json(Prospect.from_nothing(experiment))
    priced, unpriced, free = told["models"]
    assert priced["cost_usd"] == {"likely": 0.11664, "at_most": 0.44361}
    assert (unpriced["cost_usd"], free["cost_usd"]) == (None, {"likely": 0.0, "at_most": 0.0})
    assert told["total"]["cost_usd"] == priced["cost_usd"]
    assert told["total"]["calls"] == 3 * 45
    assert (told["unpriced"], told["budget_usd"]) == (["hosted/unpriced"], 1.0)
    assert (told["may_exceed_budget"], told["likely_exceeds_budget"]) == (False, False)


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (["reference/socratic"], "1 call, of built-in tutors: they cost nothing"),
        (
            ["reference/socratic", "local/smollm2"],
            "2 calls, all answered by this machine: they cost nothing",
        ),
        (["local/smollm2", "hosted/unpriced"], "2 calls, at an unknown price"),
    ],
)
def test_before_the_first_call_a_sentence_says_what_the_new_runs_cost(models, said):
    manifest = Manifest(
        models=tuple(TutorModel(id=each) for each in models), scenarios=SCENARIOS[:1], repeats=1
    )
    experiment = Experiment(manifest=manifest, created_at=MONDAY)
    sentence = prospect_sentence(Prospect.from_nothing(experiment))
    assert sentence.endswith(f"new ({said}).")
