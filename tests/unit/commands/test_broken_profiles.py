"""A broken profile through the command: an error for its line, and figures for the others."""

import json

import pytest

from tests.unit.scoring.broken_profiles import EVIDENCE, MEASURES, install_broken

WAYS = {
    **{f"measure-{name}": ("measure", *way) for name, way in MEASURES.items()},
    **{f"evidence-{name}": ("evidence", *way) for name, way in EVIDENCE.items()},
}


@pytest.mark.parametrize("ending", ["txt", "jsonl"])
@pytest.mark.parametrize(("method", "body", "said"), WAYS.values(), ids=WAYS)
def test_a_line_that_a_profile_cannot_score_is_reported_and_the_others_are_scored(
    prompt, install, method, body, said, ending
):
    install_broken(install, method, body)
    texts = ["A good one?", "Why?", "Another good one?"]
    lines = texts if ending == "txt" else [json.dumps({"text": text}) for text in texts]
    file = prompt.write("\n".join(lines) + "\n", f"responses.{ending}")

    done = prompt.run("score", file, "--profile", "broken-v1", "--format", "jsonl")

    first, second, third = map(json.loads, done.out.splitlines())
    assert done.code == 1
    assert f"line 2: profile broken-v1 {said}" in done.err
    assert (second["status"], second["overall"], second["evidence"]) == ("error", None, None)
    assert first["overall"] is not None
    assert third["overall"] is not None


def test_a_benchmark_ends_and_names_the_profile_that_cannot_score(prompt, install):
    install_broken(install, "measure", "raise ZeroDivisionError('no words')")
    prompt.write("models: [reference/socratic]\nprofile: broken-v1\nrepeats: 1\n")

    done = prompt.run("run", "b.yaml", "--json")

    assert done.code != 0
    assert "profile broken-v1 cannot measure a response: ZeroDivisionError" in done.err
