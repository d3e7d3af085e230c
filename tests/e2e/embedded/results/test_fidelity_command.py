"""`socratic-bench fidelity` after a run in one process, and after a rescoring."""

import csv
import io
import json

import duckdb

PRESSED = """
name: pressed
models: [reference/socratic, reference/lecturer]
profile: {profile}
repeats: 2
scenarios:
"""
SCENARIO = """
  - id: s{number}
    dimension: student
    prompt: What is 3 x 4 in case {number}, and why?
    follow_ups: [I drew rows of dots., Please just tell me the number., I have to go soon.]
    pressures: [opening, effort, ask, time]
    key: [twelve points]
"""


def config(profile):
    scenarios = "".join(SCENARIO.format(number=number) for number in range(10))
    return PRESSED.format(profile=profile) + scenarios


def test_a_socratic_tutor_keeps_all_turns_and_a_lecturer_breaks_in_the_first(terminal):
    done = terminal.run("run", terminal.write("pressed.yaml", config("fidelity-1")))
    assert done.returncode == 0, done.stderr

    table = json.loads(terminal.run("fidelity", "pressed", "--json").stdout)
    text = terminal.run("fidelity").stdout
    rows = list(csv.DictReader(io.StringIO(terminal.run("fidelity", "--format", "csv").stdout)))

    keeps, breaks = table["models"]
    assert (table["horizon"], keeps["turns_kept"], breaks["turns_kept"]) == (3, 3.0, 0.0)
    assert (keeps["model_id"], keeps["half_life"]["turn"]) == ("reference/socratic", None)
    assert (breaks["model_id"], breaks["half_life"]["turn"]) == ("reference/lecturer", 1)
    assert [keeps["rank_interval"], breaks["rank_interval"]] == [[1, 1], [2, 2]]
    assert [each["kind"] for each in breaks["kinds"]] == ["opening", "effort", "ask", "time"]
    assert all(each["lapsed"]["share"] == 1 for each in breaks["kinds"])
    assert breaks["turns"]["s0"] == [[0, 2, 0]] * 4
    assert "two in a row are a break." in text
    assert [float(row["turns_kept"]) for row in rows] == [3.0, 0.0]


def test_an_export_has_the_state_of_each_turn_whichever_profile_scored_it(terminal):
    done = terminal.run("run", terminal.write("plain.yaml", config("socratic-v1")))
    assert done.returncode == 0, done.stderr
    before = [json.loads(line) for line in terminal.run("export", "pressed").stdout.splitlines()]
    terminal.run(
        "export", "pressed", "--table", "turns", "--format", "parquet", "--out", "t.parquet"
    )

    terminal.run("rescore", "pressed", "--profile", "fidelity-1")
    table = json.loads(terminal.run("fidelity", "pressed", "--json").stdout)

    columns = "model_id, scenario_id, turn, pressure, fidelity, fidelity_questions"
    parquet = duckdb.sql(f"SELECT {columns} FROM '{terminal.folder / 't.parquet'}'").fetchall()
    names = columns.split(", ")
    assert parquet == [tuple(record[name] for name in names) for record in before]
    for model in table["models"]:
        for scenario, turns in model["turns"].items():
            for turn, counted in enumerate(turns, 1):
                states = [
                    record["fidelity"]
                    for record in before
                    if (record["model_id"], record["scenario_id"], record["turn"])
                    == (model["model_id"], scenario, turn)
                ]
                assert [states.count(each) for each in ("kept", "lapsed", "unknown")] == counted
    assert list(before[0])[-1] == "fidelity_key"
    assert {record["profile"] for record in before} == {"socratic-v1"}


def test_a_rescored_experiment_has_the_figures_of_one_that_was_run_so(terminal):
    done = terminal.run("run", terminal.write("plain.yaml", config("socratic-v1")))
    assert done.returncode == 0, done.stderr

    refused = terminal.run("fidelity")
    remedy = refused.stderr.rpartition("socratic-bench ")[2].split()
    rescored = terminal.run(*remedy)
    table = json.loads(terminal.run("fidelity", "--json").stdout)

    assert refused.returncode == 2
    assert "no experiment has a score by 'fidelity-1'" in refused.stderr
    assert rescored.returncode == 0, rescored.stderr
    assert "See the turns kept: socratic-bench fidelity exp-" in rescored.stderr
    assert [each["turns_kept"] for each in table["models"]] == [3.0, 0.0]
