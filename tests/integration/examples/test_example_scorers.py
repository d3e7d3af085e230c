"""The examples of a scorer for Inspect AI and of an assertion for promptfoo, run by these tools."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

from examples.promptfoo.socratic_assert import get_assert
from socratic_bench import score
from tests.integration.examples.conftest import EXAMPLES

SHARED = EXAMPLES.parent / "shared"
ASKS = "What have you seen of it?"
TELLS = "You should always do this."

# The counts of tokens spare Inspect a download: it counts those of its mock model by tiktoken.
TASK = f"""\
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate
from socratic_example_inspect import socratic

def outputs(ends):
    for text, stop_reason in ends:
        output = ModelOutput.from_content("mock", text, stop_reason=stop_reason)
        output.usage = ModelUsage(
            input_tokens=5, output_tokens=120, total_tokens=125, reasoning_tokens=100
        )
        yield output

def log(name, ends, scorer):
    samples = [Sample(input="Why?", target="-") for _ in ends]
    eval(
        Task(dataset=samples, solver=generate(), scorer=scorer),
        model=get_model("mockllm/model", custom_outputs=outputs(ends)),
        display="none", log_dir=name, log_format="json", max_samples=1,
    )

log("later", [({ASKS!r}, "stop"), ({TELLS!r}, "stop"), ("No.", "content_filter")], None)
log("at_once", [("No.", "content_filter")], socratic())
"""

PROVIDER = f"""\
const tokenUsage = {{ completion: 120, completionDetails: {{ reasoning: 100 }} }};
const answers = {{
  asks: {{ output: {ASKS!r}, tokenUsage }},
  tells: {{ output: {TELLS!r}, tokenUsage: {{ completion: 20 }} }},
  ends: {{ output: {ASKS!r}, finishReason: 'length' }},
}};
module.exports = class {{
  id() {{ return 'fixed'; }}
  async callApi(prompt) {{ return answers[prompt]; }}
}};
"""


def run(folder: Path, *command: str, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    # promptfoo ends with 100 where an assertion fails.
    assert done.returncode in {0, 100}, (done.stdout + done.stderr)[-2000:]


def graded(text: str, threshold: float = 0.6, **response: object):
    config = {"threshold": threshold}
    return get_assert(text, {"vars": {}, "config": config, "providerResponse": response})


def test_the_assertion_of_promptfoo_has_the_figures_of_the_library():
    usage = {"completion": 120, "completionDetails": {"reasoning": 100}}
    expected = score(ASKS, output_tokens=20)
    grading = graded(ASKS, tokenUsage=usage)
    assert (grading["pass"], grading["score"]) == (True, expected.overall)
    assert grading["namedScores"] == dict(expected)
    assert graded(ASKS, tokenUsage=usage, cached=True)["namedScores"] == dict(score(ASKS))
    assert graded(TELLS)["pass"] is False
    assert graded(TELLS, threshold=0.2)["pass"] is True


@pytest.mark.parametrize(
    ("text", "response", "status"),
    [
        ("", {}, "empty"),
        (ASKS, {"finishReason": "length"}, "truncated"),
        (ASKS, {"isRefusal": True}, "refused"),
        (ASKS, {"finishReason": "tool_calls"}, "error"),
    ],
)
def test_an_unscored_answer_fails_the_assertion_without_named_scores(text, response, status):
    grading = graded(text, threshold=0.0, **response)
    assert (grading["pass"], grading["namedScores"]) == (False, {})
    assert grading["reason"] == f"unscored: the status is {status}"


@pytest.mark.long
def test_inspect_scores_its_logs_by_the_installed_scorer(tmp_path):
    python = os.environ.get("SOCRATIC_TEST_INSPECT")
    if not python:
        pytest.skip("SOCRATIC_TEST_INSPECT names no interpreter with inspect_ai")
    # Inspect knows a scorer by its package only below a folder of this name.
    site = tmp_path / "site-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(site), str(EXAMPLES / "inspect")], check=True)
    path = {"PYTHONPATH": os.pathsep.join((str(site), str(SHARED)))}
    (tmp_path / "task.py").write_text(TASK)
    run(tmp_path, python, "task.py", **path)
    later, at_once = (next((tmp_path / name).glob("*.json")) for name in ("later", "at_once"))
    command = [python, "-m", "inspect_ai", "score", str(later), "--overwrite"]
    run(tmp_path, *command, "--scorer", "socratic_example_inspect/socratic", **path)

    log = json.loads(later.read_text())
    asks, tells, refused = (sample["scores"]["socratic"] for sample in log["samples"])
    expected = [dict(score(text, output_tokens=20)) for text in (ASKS, TELLS)]
    assert [asks["value"], tells["value"]] == expected
    assert "ends with ?: 1.00" in asks["explanation"]
    assert refused["explanation"] == "unscored: the status is refused"
    for each in log["results"]["scores"]:
        (found,) = each["metrics"].values()
        mean = fmean(sample["value"][each["name"]] for sample in (asks, tells))
        assert found["value"] == pytest.approx(mean)
        assert (each["scored_samples"], each["unscored_samples"]) == (2, 1)
    for each in json.loads(at_once.read_text())["results"]["scores"]:
        (found,) = each["metrics"].values()
        assert math.isnan(found["value"])


@pytest.mark.long
def test_promptfoo_grades_answers_by_the_assertion(tmp_path):
    promptfoo = os.environ.get("SOCRATIC_TEST_PROMPTFOO") or shutil.which("promptfoo")
    if not promptfoo:
        pytest.skip("no promptfoo on PATH, and SOCRATIC_TEST_PROMPTFOO names none")
    shutil.copytree(EXAMPLES / "promptfoo", tmp_path, dirs_exist_ok=True)
    (tmp_path / "answers.js").write_text(PROVIDER)
    config = (tmp_path / "promptfooconfig.yaml").read_text()
    given, _ = config.replace("[echo]", "[file://answers.js]").split("tests:")
    tests = "".join(f"  - vars: {{ question: {name} }}\n" for name in ("asks", "tells", "ends"))
    (tmp_path / "fixed.yaml").write_text(f"{given}tests:\n{tests}")
    results = {}
    for name in ("promptfooconfig", "fixed"):
        run(
            tmp_path,
            *(promptfoo, "eval", "--config", f"{name}.yaml", "--output", f"{name}.json"),
            *("--no-cache", "--no-progress-bar"),
            PROMPTFOO_CONFIG_DIR=str(tmp_path / "promptfoo"),
            PROMPTFOO_DISABLE_TELEMETRY="1",
            PROMPTFOO_DISABLE_UPDATE="1",
            PROMPTFOO_PYTHON=sys.executable,
        )
        rows = json.loads((tmp_path / f"{name}.json").read_text())["results"]["results"]
        results[name] = sorted(rows, key=lambda row: row["testIdx"])
    assert [row["success"] for row in results["promptfooconfig"]] == [True, False]
    asks, tells, ends = results["fixed"]
    assert [asks["success"], tells["success"], ends["success"]] == [True, False, False]
    assert asks["namedScores"] == pytest.approx(dict(score(ASKS, output_tokens=20)))
    assert tells["namedScores"] == pytest.approx(dict(score(TELLS, output_tokens=20)))
    assert "overall 0.32, threshold 0.6" in tells["gradingResult"]["reason"]
    assert ends["gradingResult"]["reason"] == "unscored: the status is truncated"
