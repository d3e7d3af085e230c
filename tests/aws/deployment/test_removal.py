"""A stage is removed by its name alone, and its results stay."""

import subprocess

import pytest

from tests.aws.deployment.stage import Operator
from tests.aws.environment import DEPLOY, ROOT, python, run_module

STAGE = "gone"
DESTROY = "socratic_aws.operations.destroy"


def stacks(stage: Operator) -> set[str]:
    """The stacks of the stage to remove that are there."""
    listed = stage.client("cloudformation").describe_stacks()["Stacks"]
    names = {each["StackName"] for each in listed if each["StackStatus"] != "DELETE_COMPLETE"}
    return {name for name in names if name.startswith(f"socratic-{STAGE}-")}


def test_a_stage_is_removed_without_packages_and_its_results_stay(stage: Operator) -> None:
    run_module(
        "socratic_aws.operations.deploy",
        *("--stage", STAGE, "--packages", stage.packages, "--context", "monthly_budget=0"),
        **stage.environment,
    )
    assert len(stacks(stage)) == 6
    others = stage.versions()
    told = run_module(DESTROY, "--stage", STAGE, "--confirm", STAGE, **stage.environment)
    order = [line.split()[-1] for line in told.splitlines() if line.startswith("Removing")]
    assert (order[0], order[-1]) == (f"socratic-{STAGE}-site", f"socratic-{STAGE}-foundation")
    assert stacks(stage) == set()
    tables = stage.client("dynamodb").list_tables()["TableNames"]
    assert f"socratic-{STAGE}-store" in tables
    buckets = {each["Name"] for each in stage.client("s3").list_buckets()["Buckets"]}
    assert any(name.startswith(f"socratic-{STAGE}-artifacts-") for name in buckets)
    functions = stage.client("lambda").list_functions()["Functions"]
    assert not [each for each in functions if each["FunctionName"].startswith(f"socratic-{STAGE}-")]
    assert stage.versions() == others


@pytest.mark.parametrize(
    ("confirm", "problem"), [("drill", "CONFIRM=nowhere"), ("nowhere", "There is no stage nowhere")]
)
def test_it_says_why_it_removes_nothing(stage: Operator, confirm: str, problem: str) -> None:
    done = subprocess.run(
        [python(), "-m", DESTROY, "--stage", "nowhere", "--confirm", confirm],
        cwd=DEPLOY,
        env={**stage.environment, "PYTHONPATH": f"{DEPLOY}:{ROOT / 'shared'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert problem in done.stderr
