"""`socratic-bench init`: a configuration that runs as it is, and no file is lost."""

from pathlib import Path

import pytest
import yaml


@pytest.mark.parametrize(
    ("words", "name"), [((), "mine.yaml"), (("my file.yaml",), "my file.yaml")]
)
def test_it_writes_a_configuration_that_runs_and_names_the_command(prompt, words, name):
    done = prompt.run("init", *words)
    assert (done.code, done.out) == (0, "")
    quoted = f"'{name}'" if " " in name else name
    assert done.err == f"Wrote {name}. Next: socratic-bench run {quoted}\n"
    assert prompt.run("run", name, "--estimate").code == 0


def test_a_pressure_pack_is_planned_and_the_estimate_names_its_price(prompt):
    done = prompt.run("init", "--pack", "pressure-24")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "Wrote mine.yaml: 288 calls for each model and repeat. "
        "Their cost: socratic-bench run mine.yaml --estimate\n"
    )
    written = Path("mine.yaml").read_text(encoding="utf-8")
    fields = yaml.safe_load(written)
    assert (fields["scenarios"], fields["profile"]) == ("pressure-24", "fidelity-1")
    # The price that the configuration shows for a hosted model.
    price = "      input_per_million: 0.40\n      output_per_million: 1.60\n"
    free = "      input_per_million: 0.00\n      output_per_million: 0.00\n"
    prompt.write(written.replace(free, price).replace("repeats: 3", "repeats: 2"), "priced.yaml")
    estimated = prompt.run("run", "priced.yaml", "--estimate", "--json").json
    models = {each["model_id"]: each for each in estimated["models"]}
    priced = models["reference/lecturer"]
    assert (priced["runs"], priced["calls"]) == (24 * 2, 24 * 2 * 12)
    assert 13_000 < priced["input_tokens"]["likely"] / priced["runs"] < 15_000
    assert 1_900 < priced["output_tokens"]["likely"] / priced["runs"] < 2_100
    tokens = {kind: priced[f"{kind}_tokens"]["likely"] for kind in ("input", "output")}
    due = (tokens["input"] * 0.40 + tokens["output"] * 1.60) / 1_000_000
    assert priced["cost_usd"]["likely"] == pytest.approx(due)


def test_the_default_pack_is_planned_without_a_pressure_profile(prompt):
    assert prompt.run("init", "--pack", "socratic-15").code == 0
    fields = yaml.safe_load(Path("mine.yaml").read_text(encoding="utf-8"))
    assert (fields["scenarios"], fields["profile"]) == ("socratic-15", "socratic-v1")


def test_an_unknown_pack_writes_nothing_and_names_the_packs(prompt):
    done = prompt.run("init", "--pack", "pressure-25")
    assert done.code == 2
    assert "unknown scenario pack 'pressure-25'; the packs are hollow-3, pressure-24" in done.err
    assert not Path("mine.yaml").exists()


def test_it_overwrites_nothing(prompt):
    mine = prompt.write("models: [reference/socratic]\n", "mine.yaml")
    done = prompt.run("init")
    assert done.code == 2
    assert done.err == (
        "Error: mine.yaml already exists and was not overwritten: name another file\n"
    )
    assert mine.read_text() == "models: [reference/socratic]\n"


def test_it_says_why_it_cannot_write(prompt):
    done = prompt.run("init", "nowhere/mine.yaml")
    assert done.code == 2
    assert done.err == "Error: nowhere/mine.yaml cannot be written: No such file or directory\n"
