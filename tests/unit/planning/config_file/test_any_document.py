"""A document of any kind is a configuration or a list of mistakes, within bounds."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench import invalid_values
from socratic_bench.domain.experiment.manifest import Limits, Manifest, Parameters, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidConfig
from socratic_bench.planning.config_file.config import read_config
from socratic_bench.planning.config_file.documents import parse_json
from socratic_bench.planning.config_file.source import Mistakes, Node
from tests.unit.planning.catalogue import FewProviders, config_of, mistakes_of


def test_a_document_with_thousands_of_mistakes_tells_the_first_thousand():
    mistakes = mistakes_of(json.dumps({"models": list(range(1500))}), "benchmark.json")
    assert len(mistakes) == 1001
    assert mistakes[-1].endswith(": there are more mistakes: mend these first")


@pytest.mark.parametrize(
    "document",
    [
        {"models": ["reference/a"], "scenarios": [f"scenario-{n}" for n in range(5_000)]},
        {"models": ["reference/a"], **{f"repeats{n}": 1 for n in range(5_000)}},
        {"models": [{"id": "reference/a", **{f"name{n}": 1 for n in range(5_000)}}]},
        {"models": [{"model_id": "reference/a", **{f"zq{n}": 1 for n in range(5_000)}}]},
    ],
    ids=["scenarios", "fields", "fields of a model", "fields of the predecessor"],
)
def test_words_are_found_for_no_more_mistakes_than_are_told(document, monkeypatch):
    compared = []

    def get_close_matches(name, *_, **__):
        compared.append(name)
        return []

    monkeypatch.setattr(invalid_values, "get_close_matches", get_close_matches)
    with suppress(InvalidConfig):
        read = config_of(json.dumps(document), "benchmark.json")
        assert len(read.unused) <= 1000
    assert len(compared) <= 1001


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        (BOMB, "bomb.yaml", "the document holds more than 500000 values"),
        ("[" * 100_000, "deep.yaml", "is nested more than 50 levels deep"),
        ("[" * 100_000, "deep.json", "is nested more than 50 levels deep"),
        (
            f"a: &a {'[' * 40}{']' * 40}\nb: {'[' * 20}*a{']' * 20}",
            "alias.yaml",
            "is nested more than 50 levels deep",
        ),
        ("# " + "x" * 5_000_000, "long.yaml", "is larger than 5 MB"),
    ],
    ids=["bomb", "yaml depth", "json depth", "alias depth", "size"],
)
def test_what_a_document_may_hold_is_bounded(text, name, problem):
    (mistake,) = mistakes_of(text, name)
    assert mistake.startswith(name)
    assert mistake.endswith(problem)


def test_the_values_of_a_list_are_bounded_too():
    (mistake,) = mistakes_of(f"[{'1,' * 500_000}1]", "many.json")
    assert mistake.endswith("the document holds more than 500000 values")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (
            b"models:\n- caf\xe9\n",
            "is not UTF-8 text: line 2 holds the byte 0xE9; save it as UTF-8",
        ),
        (b"#" * 5_000_001, "is larger than 5 MB"),
    ],
    ids=["empty", "blank", "not UTF-8", "too large"],
)
def test_a_file_that_is_no_text_is_one_clear_mistake(tmp_path, content, problem):
    path = tmp_path / "benchmark.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidConfig) as caught:
        read_config(path, FewProviders())
    assert str(caught.value) == f"{path}: {problem}"


def test_a_file_that_is_not_there_is_one_clear_mistake(tmp_path):
    with pytest.raises(InvalidConfig) as caught:
        read_config(tmp_path / "benchmark.yaml", FewProviders())
    assert str(caught.value) == f"{tmp_path}/benchmark.yaml: there is no such file"


def test_a_folder_is_one_clear_mistake(tmp_path):
    with pytest.raises(InvalidConfig) as caught:
        read_config(tmp_path, FewProviders())
    assert str(caught.value) == f"{tmp_path}: is a folder, not a file"


OF_TODAY = (Manifest, TutorModel, Price, Limits, Parameters, Scenario)
OTHERS = ["occasion", "model_id", "cost_per_1k_input", "cost_per_1k_output", "vector"]
FIELDS = st.sampled_from(sorted({name for kind in OF_TODAY for name in kind.model_fields}) + OTHERS)
TEXTS = st.text(max_size=12) | st.sampled_from(
    ["reference/socratic", "replay/x", "socratic-15", "student-empty-lines", "a.jsonl", "a.yaml"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
DOCUMENTS = st.recursive(
    SCALARS,
    lambda values: (
        st.lists(values, max_size=4) | st.dictionaries(FIELDS | TEXTS, values, max_size=6)
    ),
    max_leaves=25,
)
CONFIGS = st.fixed_dictionaries(
    {"models": st.just(["reference/socratic"]) | DOCUMENTS},
    optional=dict.fromkeys(
        ("scenarios", "repeats", "parameters", "profile", "deadline_hours", "budget", "occasion"),
        DOCUMENTS,
    ),
)
FORMATS = st.sampled_from(["benchmark.json", "benchmark.yaml", "benchmark"])


@given(DOCUMENTS | CONFIGS, FORMATS)
def test_any_json_document_is_a_config_or_a_list_of_mistakes(document, name):
    for mistake in mistakes_of(json.dumps(document), name):
        assert mistake.startswith(name)
        assert "is not allowed here" not in mistake, "an error without a sentence of its own"


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


def leaves_of(node: Node) -> Iterator[Node]:
    if not isinstance(node.value, dict | list):
        yield node
    else:
        for entry in node.value.values() if isinstance(node.value, dict) else node.value:
            yield from leaves_of(entry)


@given(JSON_VALUES, st.booleans())
def test_each_value_of_a_json_document_knows_its_line(value, ascii_only):
    text = json.dumps(value, indent="\t", ensure_ascii=ascii_only)
    mistakes = Mistakes()
    root = parse_json(text, "a.json", mistakes)
    lines = text.split("\n")
    for leaf in leaves_of(root):
        if not mistakes:
            assert json.dumps(leaf.value, ensure_ascii=ascii_only) in lines[leaf.place.line - 1]
    assert mistakes or root.plain() == value


@given(st.text(), FORMATS)
def test_any_text_is_a_config_or_a_list_of_mistakes(text, name):
    assert mistakes_of(text, name) != []
