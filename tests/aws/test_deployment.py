"""A stage is deployed, updated and rolled back, with the programs that a person runs.

The emulator takes CDK's templates and runs the packages: HTTP API, queues, functions and table. It
checks no permissions, and knows no budgets.
"""

import json
import shutil
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session

from tests.aws.environment import DEPLOY, run_module
from tests.servers import aws_emulator
from tests.servers.discovery import missing
from tests.waiting import block_until

pytestmark = pytest.mark.timeout(900)

STAGE = "drill"
FUNCTIONS = ("api", "curator", "judge", "runner", "scheduler")
MODELS = ("reference/socratic", "reference/lecturer")


class Operator:
    """Somebody who deploys the stage to the emulator."""

    def __init__(self, packages: Path) -> None:
        self.environment = {
            **aws_emulator.credentials(),
            "AWS_ENDPOINT_URL": aws_emulator.SERVER.address(),
        }
        self.packages = packages

    def deploy(self, packages: Path, *arguments: str | Path) -> str:
        return run_module(
            "socratic_aws.operations.deploy",
            *("--stage", STAGE, "--packages", packages, "--context", "monthly_budget=0"),
            *arguments,
            **self.environment,
        )

    def rollback(self, *arguments: str) -> str:
        return run_module(
            "socratic_aws.operations.rollback", "--stage", STAGE, *arguments, **self.environment
        )

    def versions(self) -> dict[str, str]:
        """The live version of each function."""
        client = self.client("lambda")
        return {
            name: client.get_alias(FunctionName=f"socratic-{STAGE}-{name}", Name="live")[
                "FunctionVersion"
            ]
            for name in FUNCTIONS
        }

    def release_of_answers(self) -> str:
        """The release that answers a request to the API."""
        [api] = self.client("apigatewayv2").get_apis()["Items"]
        request = urllib.request.Request(
            f"{aws_emulator.SERVER.address()}/api/model-comparison",
            headers={"Host": f"{api['ApiId']}.execute-api.localhost"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.answer: dict[str, Any] = json.load(answer)
            return str(answer.headers["x-socratic-release"])

    def client(self, service: str) -> Any:
        return get_session().create_client(
            service,
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            region_name=aws_emulator.REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )


def changed(packages: Path, folder: Path, release: str) -> Path:
    """Packages with other bytes, as a change of the code would give them."""
    shutil.copytree(packages, folder, ignore=shutil.ignore_patterns("*-unzipped"))
    listed = json.loads((folder / "packages.json").read_text())
    for name in ("runner", "judge", "curator", "api"):
        with zipfile.ZipFile(folder / f"{name}.zip", "a") as package:
            package.writestr(f"socratic_{name}/changed.txt", release)
    (folder / "packages.json").write_text(json.dumps({**listed, "release": release}))
    return folder


def release_of(packages: Path) -> str:
    release: str = json.loads((packages / "packages.json").read_text())["release"]
    return release


def test_a_stage_is_deployed_updated_and_rolled_back(packages: Path, tmp_path: Path) -> None:
    if not (DEPLOY / "node_modules" / "aws-cdk").exists():
        missing("CDK's program is not there: `make test-aws` fetches it from npm")
    operator = Operator(packages)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"models": MODELS, "repeats": 1}))
    first = release_of(packages)

    told = operator.deploy(packages, "--bootstrap", "--config", config)
    assert f"Release:    {first}" in told
    assert operator.release_of_answers() == first
    once = operator.versions()

    # A week is planned twice and runs once, through every queue and function.
    for _ in range(2):
        planned = operator.client("lambda").invoke(
            FunctionName=f"socratic-{STAGE}-scheduler", Qualifier="live", Payload='{"task":"plan"}'
        )
        assert "FunctionError" not in planned, planned["Payload"].read()

    def done() -> bool:
        operator.release_of_answers()
        return [model["total_runs"] for model in operator.answer["models"]] == [15, 15]

    block_until(done, "all runs on the page", patience=240)
    assert [model["model_id"] for model in operator.answer["models"]] == list(MODELS)

    # One service alone: the others are left as they are.
    second = changed(packages, tmp_path / "second", "0.1.0-second")
    operator.deploy(second, "--service", "judge")
    after = operator.versions()
    assert after["judge"] != once["judge"]
    assert {**after, "judge": once["judge"]} == once
    assert "judge" in operator.rollback("--service", "judge", "--version", first)
    assert operator.versions() == once

    # All of them, with another configuration, and back.
    config.write_text(json.dumps({"models": MODELS[:1], "repeats": 1}))
    operator.deploy(second, "--config", config)
    assert operator.release_of_answers() == "0.1.0-second"
    operator.rollback("--version", first)
    assert operator.release_of_answers() == first
    assert operator.versions() == once
    bucket = f"socratic-{STAGE}-artifacts-{aws_emulator.ACCOUNT}-{aws_emulator.REGION}"
    stored = operator.client("s3").get_object(Bucket=bucket, Key="artifacts/config.json")
    assert json.load(stored["Body"])["models"] == list(MODELS)

    # And forward again: the earlier and the later version are both kept.
    operator.rollback("--version", "0.1.0-second")
    assert operator.release_of_answers() == "0.1.0-second"
