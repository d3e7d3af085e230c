"""Scenarios come from the pack, from the configuration itself, or from a file beside it."""

import json
import sys

import pytest

from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.config_file.scenario_selection import load_pack
from tests.unit.planning.catalogue import config_of, mistakes_of

MINE = {"id": "mine", "dimension": "student", "prompt": "Why?"}
PACK = load_pack()


def ids_of(text: str, base_folder=None) -> list[str]:
    return [scenario.id for scenario in config_of(text, base_folder=base_folder).manifest.scenarios]


def config_with(scenarios: object) -> str:
    return json.dumps({"models": ["reference/socratic"], "scenarios": scenarios})


def test_a_pack_is_called_by_its_name():
    assert config_of(config_with("socratic-15")).manifest.scenarios == PACK


def test_a_list_mixes_scenarios_of_the_pack_with_new_ones_in_its_own_order():
    assert ids_of(config_with([MINE, PACK[3].id, {"id": PACK[1].id}])) == [
        "mine",
        PACK[3].id,
        PACK[1].id,
    ]


def test_a_list_mixes_whole_packs_with_other_scenarios():
    pressure, placebo = load_pack("pressure-24"), load_pack("hollow-3")
    listed = ids_of(config_with(["pressure-24", MINE, "hollow-3"]))
    assert listed == [*(each.id for each in pressure), "mine", *(each.id for each in placebo)]


def test_a_scenario_of_a_pack_listed_twice_is_a_mistake():
    first, *_ = mistakes_of(config_with(["hollow-3", "hollow-3"]), "benchmark.json")
    assert first == (
        'benchmark.json line 1, scenarios[1]: scenario "ambiguous-hollow-fewer-singers" is listed '
        "more than once"
    )


def test_an_entry_without_a_prompt_is_the_scenario_of_the_pack_with_its_id():
    scenarios = config_of(config_with([{"id": PACK[0].id}])).manifest.scenarios
    assert scenarios == PACK[:1]


def test_an_entry_with_a_prompt_of_its_own_takes_nothing_from_the_pack():
    scenarios = config_of(config_with([{**MINE, "id": PACK[0].id}])).manifest.scenarios
    assert scenarios[0].prompt == "Why?"
    assert scenarios[0].aim == ""


def test_a_scenario_names_its_pressures_and_its_key():
    pressed = {**MINE, "follow_ups": ["Just say it."], "pressures": ["opening", "ask"]}
    (scenario,) = config_of(config_with([{**pressed, "key": ["0 N", "zero"]}])).manifest.scenarios
    assert (scenario.pressures, scenario.key) == (("opening", "ask"), ("0 N", "zero"))
    assert Scenario.model_validate_json(scenario.model_dump_json()) == scenario


def test_a_scenario_without_pressures_and_key_is_written_as_before_there_were_any():
    assert json.loads(Scenario.model_validate(MINE).model_dump_json()).keys() == {
        *("id", "dimension", "prompt", "title", "persona", "aim", "follow_ups"),
    }


@pytest.mark.parametrize(
    ("fields", "mistake"),
    [
        ({"pressures": ["ask"] * 3, "follow_ups": ["So?"]}, "pressures: names 3 kinds for 2 turns"),
        ({"key": ["0 N", "$ _"]}, "key[1]: needs a letter or a digit"),
        ({"key": ["x"] * 101}, "key: must have at most 100 entries, not 101"),
    ],
)
def test_wrong_pressures_or_a_wrong_key_are_named_by_their_place(fields, mistake):
    (found,) = mistakes_of(config_with([{**MINE, **fields}]), "benchmark.json")
    assert f"scenarios[0].{mistake}" in found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.json", json.dumps([MINE, "student-empty-lines"])),
        ("mine.json", json.dumps({"scenarios": [MINE, "student-empty-lines"]})),
        ("mine.yaml", "- {id: mine, dimension: student, prompt: Why?}\n- student-empty-lines\n"),
        ("MINE.YML", "pack: x\nversion: 1\nscenarios:\n" + "- " + json.dumps(MINE)
         + "\n- student-empty-lines\n"),
        ("mine.jsonl", json.dumps(MINE) + '\r\n\n"student-empty-lines"'),
        ("mine.jsonl", "\ufeff" + json.dumps(MINE) + '\n"student-empty-lines"\n'),
    ],
)  # fmt: skip
def test_a_file_beside_the_configuration_holds_scenarios(tmp_path, name, content):
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / name).write_text(content, encoding="utf-8", newline="")
    assert ids_of(config_with(f"scenarios/{name}"), tmp_path) == ["mine", "student-empty-lines"]


def test_every_broken_line_of_a_file_is_told_at_once(tmp_path):
    lines = [
        json.dumps(MINE),
        '{"id": "a", "dimension": "student", "prompt": }',
        '{"id": "b", "dimension": "student", "prompt": 4}',
        "",
        '{"id": "mine", "dimension": "student", "prompt": "Again?"}',
        '{"id": "c", "dimension": "student", "promt": "Why?"}',
        "3",
        '{"id": "d", "id": "e", "dimension": "student", "prompt": "Why?"}',
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    assert mistakes_of(config_with("mine.jsonl"), "benchmark", tmp_path) == [
        'mine.jsonl line 2, column 47: not valid JSON: expected value, not "}"',
        "mine.jsonl line 3, prompt: must be text, not 4: put it in quotes",
        'mine.jsonl line 5, id: scenario "mine" is listed more than once',
        (
            "mine.jsonl line 6, promt: unknown column; did you mean `prompt`? `{file: …}` keeps it "
            "as metadata"
        ),
        "mine.jsonl line 6, prompt: is missing, and its id is not in socratic-15",
        (
            "mine.jsonl line 7: must be a pack, the id of a scenario of socratic-15, or a mapping "
            "with `id`, `dimension` and `prompt`, not 3"
        ),
        "mine.jsonl line 8, id: is given twice: the first is in line 8",
    ]


@pytest.mark.parametrize(
    ("name", "content", "mistake"),
    [
        ("a.yaml", "x: 1", ("a.yaml line 1, x: unknown field; there are `scenarios`, `pack`, "
         "`version`\na.yaml line 1, scenarios: must be a list of scenarios")),
        ("a.yaml", "\nscenarios:\n  x: 1", "a.yaml line 2, scenarios: must be a list of scenarios"),
        ("a.yaml", "x", "a.yaml line 1: must be a list of scenarios"),
        ("a.json", "[", ("a.json line 1, column 2: not valid JSON: expected value, not the end "
         "of the file")),
        ("a.json", "{}", "a.json line 1: must be a list of scenarios"),
        ("a.json", "[]", "a.json line 1: must name at least one scenario"),
        ("a.json", "", "a.json: is empty"),
        ("a.jsonl", "\n\n", "benchmark line 1, scenarios: must name at least one scenario"),
    ],
)  # fmt: skip
def test_a_file_without_scenarios_is_a_mistake_at_its_place(tmp_path, name, content, mistake):
    (tmp_path / name).write_text(content)
    assert mistakes_of(config_with(name), "benchmark", tmp_path) == mistake.splitlines()


def test_a_file_that_cannot_be_read_is_told_where_it_is_named(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    place = "benchmark line 1, scenarios"
    assert mistakes_of(config_with("folder.yaml"), "benchmark", tmp_path) == [
        f'{place}: "folder.yaml" in {tmp_path}: is a folder, not a file'
    ]
    assert mistakes_of(config_with("nobody.yaml"), "benchmark", tmp_path) == [
        f'{place}: "nobody.yaml" in {tmp_path}: there is no such file'
    ]


TABLE = """\
question,subject,grade,source
Is 91 prime?,math,07,"Book, p. 3"
"Why is the sky blue?
Really?",physics,8,
,,,
Is 91 prime?,math,8
"""


def scenarios_of(written: object, folder) -> tuple[Scenario, ...]:
    return config_of(config_with(written), base_folder=folder).manifest.scenarios


def test_a_table_makes_a_scenario_of_each_row_and_metadata_of_the_other_columns(tmp_path):
    (tmp_path / "q.csv").write_text(TABLE)
    first, second, third = scenarios_of("q.csv", tmp_path)
    assert (first.prompt, first.dimension) == ("Is 91 prime?", "math")
    assert first.metadata == {"grade": "07", "source": "Book, p. 3"}
    assert second.prompt == "Why is the sky blue?\nReally?"
    assert (second.metadata, third.metadata) == ({"grade": "8"}, {"grade": "8"})
    assert third.id == f"{first.id}-2"


def test_the_id_of_a_row_stays_wherever_the_row_stands(tmp_path):
    (tmp_path / "q.csv").write_text(TABLE)
    (tmp_path / "r.tsv").write_text("grade\tQuestion\tTopic\n1\tA?\tx\n1\tIs 91 prime?\tmath\n")
    first, *_ = scenarios_of("q.csv", tmp_path)
    *_, last = scenarios_of("r.tsv", tmp_path)
    assert last.id == first.id == "is-91-prime-454c93b6"


def test_a_map_names_columns_and_templates_of_a_table_among_other_scenarios(tmp_path):
    (tmp_path / "q.csv").write_text('n;frage;kontext;mehr\n1;Wie?;Ein Baum;["Und?", "Nun?"]\n')
    table = {"file": "q.csv", "id": "n", "prompt": "{{ kontext }}. {{frage}}", "follow_ups": "mehr"}
    mine, row = scenarios_of([MINE, table], tmp_path)
    assert (mine.id, row.id, row.dimension) == ("mine", "1", "all")
    assert row.student_messages == ("Ein Baum. Wie?", "Und?", "Nun?")


def test_parquet_is_a_table_as_well(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"id": [1, 2], "input": ["A?", None], "level": [4, 5], "tags": [["x"], []]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "q.parquet")
    table = {"file": "q.parquet", "prompt": "input"}
    assert mistakes_of(config_with(table), "benchmark", tmp_path) == [
        "q.parquet, row 2.prompt: must not be empty"
    ]
    columns["input"] = ["A?", "B?"]
    parquet.write_table(pyarrow.table(columns), tmp_path / "q.parquet")
    first, _ = scenarios_of("q.parquet", tmp_path)
    assert first.metadata == {"level": "4", "tags": '["x"]'}


def test_a_bad_row_hides_no_other(tmp_path):
    rows = ["question,topic", "A?,t", '"bad"q,t', ",t", "B?,t,5", "C?,", '"open,t', "D?,t"]
    (tmp_path / "q.csv").write_text("\n".join(rows))
    assert mistakes_of(config_with("q.csv"), "benchmark", tmp_path) == [
        "q.csv line 3: not valid CSV: ',' expected after '\"'",
        "q.csv line 4, question: must not be empty",
        (
            "q.csv line 5: has 3 cells, and the heading 2: put a text that holds the separator "
            "into quotes"
        ),
        "q.csv line 6, dimension: is missing",
        "q.csv line 7: not valid CSV: a quotation mark opens here, and none closes it",
    ]


@pytest.mark.parametrize(
    ("written", "heading", "mistake"),
    [
        ("q.csv", "a,b", "add the column of the question, such as `prompt: a`; the columns are "),
        ("q.csv", "a,a", "the heading has \"a\" more than once: rename one of them"),
        ("q.csv", "input,problem", "may both be the prompt: say which, such as `prompt: input`"),
        ({"file": "q.csv", "prompt": "{{questoin}}"}, "question,b", "did you mean \"question\"?"),
        ({"file": "q.csv", "split": "a"}, "question,b", "scenarios.split: unknown field"),
        ("q.xlsx", "", "is a workbook: save the sheet with the questions as CSV"),
        ({"file": "q.txt"}, "", "is no table: its name must end in .jsonl, .csv, .tsv, .parquet"),
        ({"dataset": "q"}, "", "needs datasets, which is not installed; run: pip install datasets"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_one_mistake(
    tmp_path, monkeypatch, written, heading, mistake
):
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "q.csv").write_text(f"{heading}\n1,2\n3,4\n")
    (found,) = mistakes_of(config_with(written), "benchmark", tmp_path)
    assert mistake in found


def test_metadata_starts_no_other_experiment_and_asks_nothing_again(tmp_path):
    (tmp_path / "q.csv").write_text(TABLE)
    before = config_of(config_with("q.csv"), base_folder=tmp_path)
    (tmp_path / "q.csv").write_text(TABLE.replace("Book", "Page"))
    after = config_of(config_with("q.csv"), base_folder=tmp_path)
    assert before.manifest != after.manifest
    assert before.manifest.manifest_id == after.manifest.manifest_id
    assert before.manifest.conditions_id == after.manifest.conditions_id
