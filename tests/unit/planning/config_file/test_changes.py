"""Options of the command choose a part of a configuration, as if the file said so."""

import pytest

from socratic_bench.domain.scenario import LONGEST_NAME
from socratic_bench.planning.config_file.changes import Changes
from tests.unit.planning.catalogue import config_of, mistakes_of

WHOLE = """\
name: main
models: [{id: reference/socratic, name: asker (ask)}, reference/lecturer]
scenarios: [student-bigger-fraction, student-empty-lines, ethical-handball]
weights: {ethical: {interrogative: 2}}
repeats: 2
"""
PART = Changes({"repeats": "1"}, ["asker (ask)"], ["ethical-handball", "It works on some files"], 1)


def test_a_part_is_the_experiment_that_a_file_with_it_alone_would_be():
    part, alone = config_of(WHOLE, changes=PART), config_of(WHOLE.replace(", ref", "] # ref"))
    one = alone.manifest.model_copy(
        update={"scenarios": alone.manifest.scenarios[1:2], "repeats": 1}
    )
    assert part.manifest.manifest_id == one.manifest_id
    assert part.weighted_profile == alone.weighted_profile


def test_a_part_takes_no_name_from_the_whole_experiment_and_a_note_says_so():
    part = config_of(WHOLE, changes=PART)
    told = "1 of 2 models, 1 of 3 scenarios, 1 of 2 repeats"
    assert part.manifest.name == f"main ({told})"
    (note,) = map(str, part.unused)
    assert note == (
        f"{told}: an experiment of its own, which shares its answers with the whole one; "
        "its name says so"
    )
    whole = config_of(WHOLE, changes=Changes({"repeats": "3"}, most_scenarios=3))
    assert (whole.manifest.name, whole.unused) == ("main", ())
    named = config_of(WHOLE, changes=Changes({"name": "pr"}, most_scenarios=1))
    assert named.manifest.name == "pr"
    whole_name = "m" * LONGEST_NAME
    long = config_of(WHOLE.replace("main", whole_name), changes=PART).manifest.name or ""
    assert (len(long), long[-len(told) - 2 :]) == (LONGEST_NAME, f"({told})")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (Changes(models=["asker (as"]), '--model: there is no model "asker (as"; did you mean "'),
        (Changes(models=["x"]), '"x"; there are: "reference/socratic", "asker (ask)", "reference/'),
        (Changes(scenarios=["empty-lines"]), 'did you mean "student-empty-lines"?'),
        (Changes({"repeats": "x"}), '--set repeats: must be a whole number, not "x"'),
        (Changes({"scenarios": "[]"}), "--set scenarios: cannot be set: --scenario chooses"),
    ],
)
def test_a_wrong_choice_names_the_option_and_the_likely_one(changes: Changes, told: str):
    (sentence,) = mistakes_of(WHOLE, changes=changes)
    assert told in sentence
