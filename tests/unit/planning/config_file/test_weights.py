"""A configuration names weights of vectors; they make a profile, and no other experiment."""

import pytest

from socratic_bench.errors import UnknownProfile
from socratic_bench.scoring.profiles import profile_named
from tests.unit.planning.catalogue import config_of, mistakes_of

MODELS = "models: [reference/socratic]\n"


def test_weights_make_a_profile_of_the_same_experiment():
    plain = config_of(MODELS)
    weighed = config_of(MODELS + "weights: {student: {interrogative: 2}}")

    assert plain.weighted_profile is None
    assert "weightings" not in plain.manifest.model_dump_json()
    assert weighed.weighted_profile == "socratic-v1+w-f16302735420"
    assert weighed.manifest.profile == "socratic-v1"
    assert weighed.manifest.manifest_id == plain.manifest.manifest_id
    assert weighed.manifest.conditions_id == plain.manifest.conditions_id
    profile = profile_named(weighed.weighted_profile)
    assert profile.weights.of("student", profile.vectors) == (1.0, 1.0, 2.0)
    assert profile.weights.of("ethical", profile.vectors) is None


@pytest.mark.parametrize(
    "text",
    [
        "weights: {student: {interrogative: 2.0}}",
        "weights: {student: {interrogative: 2, verbosity: 1}, ethical: {verbosity: 1}}",
        "weights:\n  ethical: {}\n  student: {exploratory: 1, interrogative: 2}",
    ],
)
def test_the_same_weights_make_the_same_profile(text: str):
    assert config_of(MODELS + text).weighted_profile == "socratic-v1+w-f16302735420"


@pytest.mark.parametrize(
    "text", ["weights: null", "weights: {}", "weights: {student: {verbosity: 1}}"]
)
def test_equal_weights_are_as_if_the_field_were_missing(text: str):
    config = config_of(MODELS + text)

    assert config.weighted_profile is None
    assert config.manifest == config_of(MODELS).manifest


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            "weights: {studnt: {verbosity: 2}}",
            'line 2, weights.studnt: is no dimension; did you mean "student"?',
        ),
        (
            "weights: {physics: {verbosity: 2}}",
            "line 2, weights.physics: is no dimension; there are: ambiguous, ethical, student",
        ),
        (
            "weights:\n  student:\n    brevity: 2",
            (
                "line 4, weights.student.brevity: is no vector of socratic-v1; there are: "
                "verbosity, exploratory, interrogative"
            ),
        ),
        (
            "weights: {student: {verbosity: 0, exploratory: 0, interrogative: 0}}",
            "line 2, weights.student: no vector counts: give one a weight of more than 0",
        ),
        (
            "weights: {student: {verbosity: -1}}",
            "line 2, weights.student.verbosity: must be 0 or more, not -1",
        ),
        (
            "weights: {student: {verbosity: .inf}}",
            'line 2, weights.student.verbosity: must be a number, not ".inf"',
        ),
        ("weights: {student: 2}", "line 2, weights.student: must be a mapping, not 2"),
        (
            "profile: socratic-v2\nweights: {student: {asking: 2}}",
            (
                "line 3, weights: socratic-v2 is no weighted mean of its vectors, so it takes no "
                "weights: choose a profile that is one, such as socratic-v1, or remove the weights"
            ),
        ),
        (
            "profile: socratic-v1+w-f16302735420",
            "line 2, profile: has other weights: write profile: socratic-v1, and `weights`",
        ),
    ],
)
def test_a_mistake_names_its_line(text: str, mistake: str):
    assert mistakes_of(MODELS + text) == [f"benchmark.yaml {mistake}"]


def test_mistakes_in_weights_stand_beside_others():
    [first, second] = mistakes_of("models: [gpt-4]\nweights: {studnt: {verbosity: 2}}")

    assert first.startswith("benchmark.yaml line 1, models[0]")
    assert second.startswith("benchmark.yaml line 2, weights.studnt")


def test_a_profile_with_one_ruler_takes_weights_too():
    config = config_of(MODELS + "length: same ruler\nweights: {student: {verbosity: 2}}")

    assert config.weighted_profile is not None
    assert config.weighted_profile.startswith("socratic-v1-same-ruler+w-")


def test_unknown_weights_are_told_apart_from_an_unknown_profile():
    with pytest.raises(UnknownProfile, match="no experiment of this store names them"):
        profile_named("socratic-v1+w-000000000000")


def test_whoever_submits_weights_is_told_how_to_read_results_by_them():
    config = config_of(MODELS + "weights: {student: {interrogative: 2}}")

    assert config.notes == (
        "--profile socratic-v1+w-f16302735420 reads the results by its weights",
    )
    assert config_of(MODELS).notes == ()
