"""`socratic-bench score` prints one line for each line, in order, whatever its content."""

import json
import subprocess

import pytest

from socratic_bench import score
from tests.processes.forked import COMMAND


def lines_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("text", "vector", "expected"),
    [
        ("What do you think?", "verbosity", 0.99),
        ("What might you consider?", "exploratory", 1.00),
        ("You should always do this", "exploratory", 0.00),
        ("What do you think?", "interrogative", 1.00),
    ],
)
def test_the_documented_examples_hold(terminal, text, vector, expected):
    (line,) = lines_of(terminal.run("score", "-", "--format", "jsonl", given=text))
    assert round(line[vector], 2) == expected


def test_a_token_count_of_250_is_half_of_the_scale(terminal):
    given = '{"text": "x", "output_tokens": 250}\n{"text": "x", "output_tokens": 500}\n'
    lines = lines_of(terminal.run("score", "-", "--format", "jsonl", given=given))
    assert [line["verbosity"] for line in lines] == [0.5, 0.0]


def test_a_line_is_what_the_library_gives(terminal):
    text = "It depends. What if you could ask?"
    (line,) = lines_of(terminal.run("score", "--format", "jsonl", given=json.dumps({"text": text})))
    assert line == json.loads(json.dumps(score(text).as_dict()))


def test_a_broken_line_in_the_middle_is_named_and_loses_nothing_else(terminal):
    good = '{"text": "What do you think?"}'
    path = terminal.write("texts.jsonl", f'{good}\n{{"text": \n{good}\n{{"no": 1}}\n{good}\n')
    done = terminal.run("score", path, "--format", "jsonl")
    assert [line["status"] for line in lines_of(done)] == ["ok", "error", "ok", "error", "ok"]
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"Error: {path} line 2: not valid JSON: Expecting value at column 10",
        f'Error: {path} line 4: needs `text`, `response` or `output`, a string; it has "no"',
    ]


def test_ids_are_kept_in_front_of_the_figures(terminal):
    given = '{"id": "a-1", "text": "Why?"}\n{"id": 7, "text": ""}\n{"id": "c"}\n'
    lines = lines_of(terminal.run("score", "--format", "jsonl", given=given))
    assert [next(iter(line.items())) for line in lines] == [("id", "a-1"), ("id", 7), ("id", "c")]


@pytest.mark.parametrize("name", ["array.json", "array.txt"])
def test_a_json_array_is_scored_item_by_item(terminal, name):
    records = [{"id": 1, "text": "Why?"}, "no record", {"prompt": "So?"}, {"response": "So."}]
    path = terminal.write(name, json.dumps(records, indent=2))
    done = terminal.run("score", path, "--format", "jsonl")
    assert [line["status"] for line in lines_of(done)] == ["ok", "error", "error", "ok"]
    assert done.stderr.splitlines() == [
        f"Error: {path} item 2: must be a JSON object with `text`",
        f'Error: {path} item 3: needs `text`, `response` or `output`, a string; it has "prompt"',
    ]


def test_a_text_that_only_begins_like_an_array_is_text(terminal):
    given = "[laughs] What do you think?\n[silence]\n"
    lines = lines_of(terminal.run("score", "--format", "jsonl", given=given))
    assert [line["interrogative"] for line in lines] == [1.0, 0.0]


def test_csv_is_scored_row_by_row(terminal):
    rows = (
        "id,response,output_tokens,status,note\r\n"
        '1,"What, you\nthink?",250,,x\r\n'
        "2,No.,,refused,\r\n"
        "3,Why?,many,,\r\n"
        "4,,,,\r\n"
    )
    path = terminal.write("rows.csv", rows)
    done = terminal.run("score", path, "--format", "jsonl")
    found = [(line["id"], line["status"], line["verbosity"]) for line in lines_of(done)]
    assert found[0] == ("1", "ok", 0.5)
    assert [status for _, status, _ in found[1:]] == ["refused", "error", "empty"]
    assert done.stderr == f"Error: {path} row 3: `output_tokens` must be a number, not 'many'\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a.csv",
            "id,answer\n1,Why?\n",
            'needs a column `text`, `response` or `output`; it has "id", "answer"',
        ),
        ("b.csv", "", "needs a column `text`, `response` or `output`; it has none at all"),
        ("c.json", '[{"text": "Why?"}', "c.json: not valid JSON: "),
        (
            "d.csv",
            "text\nWhy?\n" + "x" * 8_000_001 + "\n",
            "d.csv line 3: not valid CSV: field larger",
        ),
        ("e.json", "[" * 100_000, "e.json: not valid JSON: nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_at_all_is_one_sentence(terminal, name, content, sentence):
    done = terminal.run("score", terminal.write(name, content))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_bytes_that_are_no_text_are_named_by_their_line(terminal):
    done = terminal.run("score", "--format", "jsonl", given=b"fine?\n\xff\xfe\nalso fine?\n")
    assert [line["status"] for line in lines_of(done)] == ["ok", "error", "ok"]
    assert "standard input line 2: not UTF-8 text" in done.stderr


def test_plain_text_is_one_response_a_line_or_one_as_a_whole(terminal):
    text = "First I tell.\nThen I ask?\n"
    apart = lines_of(terminal.run("score", "--format", "jsonl", given=text))
    assert [line["interrogative"] for line in apart] == [0.0, 1.0]
    (whole,) = lines_of(terminal.run("score", "--whole", "--format", "jsonl", given=text))
    assert whole["interrogative"] == 1.0


def test_unscored_statuses_have_no_figures(terminal):
    given = '{"text": "No.", "status": "refused"}\n{"text": " "}\n'
    lines = lines_of(terminal.run("score", "--format", "jsonl", given=given))
    assert [(line["status"], line["overall"]) for line in lines] == [
        ("refused", None),
        ("empty", None),
    ]


def test_old_scores_of_0_to_100_are_converted(terminal):
    given = '{"open_ended": 80, "probing_depth": 0.8, "overall": 60}\n'
    (line,) = lines_of(terminal.run("score", "--format", "jsonl", given=given))
    assert line == {
        "open_ended": 0.8,
        "probing_depth": 0.008,
        "overall": 0.6,
        "status": "converted",
    }


def test_a_table_shows_hundredths_and_the_mean_of_what_was_scored(terminal):
    done = terminal.run("score", given="What do you think?\n\nAlways.\n")
    header, first, words, empty, *_, mean = done.stdout.splitlines()
    assert header.split()[:5] == ["line", "verbosity", "exploratory", "interrogative", "overall"]
    assert first.split()[1:6] == ["0.99", "0.50", "1.00", "0.83", "ok"]
    assert words.split() == ["brief", "no", "marker", "asks", "last"]
    assert empty.split()[1:6] == ["–", "–", "–", "–", "empty"]
    assert mean.split()[0] == "mean"
    assert "of 2 scored" in mean


def test_text_with_terminal_commands_and_markup_is_shown_as_text(terminal):
    given = json.dumps({"text": "\x1b[31mred\x1b[0m [bold]loud[/bold] :smile:"})
    done = terminal.run("score", given=given)
    assert "\x1b" not in done.stdout
    assert "[bold]loud[/bold] :smile:" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["score", "missing.jsonl"], "missing.jsonl: cannot be read: No such file or directory"),
        (["score", "--format", "xml"], "'xml' is not one of 'table', 'jsonl'"),
        (["scor"], "No such command 'scor'"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(terminal, words, sentence):
    done = terminal.run(*words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "a", "output_tokens": 1e999}',
        '{"text": "a", "output_tokens": NaN}',
        '{"text": "a", "output_tokens": 1' + "0" * 400 + "}",
        '{"text": "a", "output_tokens": ' + "9" * 5_000 + "}",
        '{"overall": 1e999}',
        '{"overall": 1' + "0" * 400 + "}",
        '{"overall": 80, "scores": ' + "[" * 991 + "]" * 991 + "}",
        "[" * 100_000,
        '"text"',
        '{"text": 7}',
    ],
)
@pytest.mark.parametrize("output", ["jsonl", "table"])
def test_a_strange_line_is_an_error_of_that_line_alone(terminal, line, output):
    given = f'{{"text": "Why?"}}\n{line}\n{{"text": "Why not?"}}\n'
    done = terminal.run("score", "--format", output, given=given)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Error: standard input line 2: ") == 1
    if output == "jsonl":
        assert [each["status"] for each in lines_of(done)] == ["ok", "error", "ok"]


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "a \\ud800 lone surrogate?"}',
        '{"overall": 80, "verbosity": "high"}',
    ],
)
@pytest.mark.parametrize("output", ["jsonl", "table"])
def test_a_strange_line_that_can_be_scored_is_scored(terminal, line, output):
    done = terminal.run("score", "--format", output, given=line)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("from_file", [True, False])
def test_a_reader_that_has_read_enough_is_no_error(terminal, from_file):
    path = terminal.write("many.jsonl", '{"text": "Why?"}\n' * 20_000)
    source = str(path) if from_file else f"- < {path}"
    piped = subprocess.run(
        [
            "bash",
            "-c",
            f"{COMMAND} score {source} --format jsonl | head -n 1; echo ${{PIPESTATUS[0]}}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert piped.stdout.splitlines()[-1] == "0"
    assert piped.stderr == ""


@pytest.mark.parametrize(
    "table",
    [
        b"Text\nWhy?\n",
        "Text\nWhy?\n".encode("utf-16"),
        b'text\n"' + b"why " * 50_000 + b'?"\n',
    ],
    ids=["a heading of a spreadsheet", "UTF-16", "an answer of 200,000 characters"],
)
def test_a_table_is_read_as_spreadsheets_and_runners_write_it(terminal, table):
    (terminal.folder / "answers.csv").write_bytes(table)
    (line,) = lines_of(terminal.run("score", "answers.csv", "--format", "jsonl"))
    assert line["interrogative"] == 1.0


def test_another_encoding_of_excel_is_named(terminal):
    (terminal.folder / "answers.csv").write_bytes(b"text\nWas \xf6?\n")
    done = terminal.run("score", "answers.csv")
    assert done.returncode == 2
    assert "Excel writes it as *CSV UTF-8*" in done.stderr


def test_what_pandas_writes_for_an_absent_value_is_absent(terminal):
    given = '{"id": 1.0, "text": "Why?", "status": null, "output_tokens": null}\n'
    (line,) = lines_of(terminal.run("score", "--format", "jsonl", given=given))
    assert (line["id"], line["status"]) == (1, "ok")


def test_a_terminal_without_utf_8_spoils_no_work(terminal):
    done = subprocess.run(
        [COMMAND, "score"],
        input="Why \u2013 you?".encode(),
        capture_output=True,
        env={**terminal.environ(), "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Why ? you?" in done.stdout
