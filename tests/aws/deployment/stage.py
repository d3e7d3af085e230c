"""A stage on the emulator, as the person sees it who deploys it, and as its schedules call it."""

from __future__ import annotations

import json
import shutil
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from botocore.session import get_session

from socratic_bench.addresses import open_store
from socratic_bench.ports.stores.store import Store
from tests.aws.environment import run_module
from tests.servers import aws_emulator
from tests.waiting import PATIENCE

STAGE = "drill"
FUNCTIONS = ("api", "curator", "judge", "runner", "scheduler")
SERVICES = ("api", "curator", "judge", "runner")
QUEUES = (
    "runner-run-requested",
    "judge-response-recorded",
    "curator-response-scored",
    "curator-run-failed",
)
BUCKET = f"socratic-{STAGE}-artifacts-{aws_emulator.ACCOUNT}-{aws_emulator.REGION}"
CONFIG = "artifacts/config.json"
BROKER = f"sqs://{aws_emulator.REGION}/socratic-{STAGE}"


class FunctionFailed(Exception):
    """A function ended with this error."""


class Operator:
    """Somebody who deploys the stage to the emulator."""

    def __init__(self, packages: Path) -> None:
        self.packages = packages
        self.release = release_of(packages)
        self.endpoint = aws_emulator.SERVER.address()
        self.environment = {**aws_emulator.credentials(), "AWS_ENDPOINT_URL": self.endpoint}
        self.broker_url = f"{BROKER}?{urlencode({'endpoint': self.endpoint, 'bucket': BUCKET})}"

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
        return {name: self.live_version(name) for name in FUNCTIONS}

    def live_version(self, name: str) -> str:
        alias = self.client("lambda").get_alias(FunctionName=function(name), Name="live")
        version: str = alias["FunctionVersion"]
        return version

    def request(self, path: str) -> tuple[str, Any]:
        """The release that answers a request to the API, and its answer."""
        apis = self.client("apigatewayv2").get_apis()["Items"]
        [api] = [each for each in apis if each["Name"] == function("api")]
        request = urllib.request.Request(
            f"{self.endpoint}{path}", headers={"Host": f"{api['ApiId']}.execute-api.localhost"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return str(answer.headers["x-socratic-release"]), json.load(answer)

    def release_of_answers(self) -> str:
        """The release that answers a request to the API."""
        return self.request("/api/experiments")[0]

    def api_key(self) -> str:
        """The key for writing that the deployment made."""
        found = self.client("ssm").get_parameter(
            Name=f"/socratic-{STAGE}/api-keys", WithDecryption=True
        )
        key: str = found["Parameter"]["Value"]
        return key

    def configure(self, config: Mapping[str, Any]) -> None:
        """Have the next plan follow this configuration."""
        self.client("s3").put_object(Bucket=BUCKET, Key=CONFIG, Body=json.dumps(config).encode())

    def call_scheduler(self, task: str) -> dict[str, Any]:
        """Call the scheduler as a schedule does; its answer. Raises FunctionFailed."""
        called = self.client("lambda").invoke(
            FunctionName=function("scheduler"),
            Qualifier="live",
            Payload=json.dumps({"task": task}),
        )
        answer: dict[str, Any] = json.load(called["Payload"])
        if "FunctionError" in called:
            raise FunctionFailed(answer)
        return answer

    def store(self) -> Store:
        """The store of the stage, to be closed."""
        options = urlencode({"endpoint": self.endpoint, "bucket": BUCKET})
        return open_store(f"dynamodb://socratic-{STAGE}-store?{options}")

    def client(self, service: str) -> Any:
        return get_session().create_client(
            service,
            endpoint_url=self.endpoint,
            region_name=aws_emulator.REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )


def function(name: str) -> str:
    """The name of a function in the stage."""
    return f"socratic-{STAGE}-{name}"


def changed(packages: Path, folder: Path, release: str, services: Sequence[str] = SERVICES) -> Path:
    """Packages with other bytes, as a change of the code would give them."""
    shutil.copytree(packages, folder, ignore=shutil.ignore_patterns("*-unzipped"))
    listed = json.loads((folder / "packages.json").read_text())
    for name in services:
        with zipfile.ZipFile(folder / f"{name}.zip", "a") as package:
            package.writestr(f"socratic_{name}/changed.txt", release)
    (folder / "packages.json").write_text(json.dumps({**listed, "release": release}))
    return folder


def release_of(packages: Path) -> str:
    """The release of packages."""
    release: str = json.loads((packages / "packages.json").read_text())["release"]
    return release


def week_of(occasion: str) -> dict[str, Any]:
    """The configuration of a week: 25 models without latency, 15 runs of each."""
    kinds = ("socratic", "lecturer", "hedger", "drifter")
    models = [f"reference/{kinds[n % len(kinds)]}@{n}" for n in range(25)]
    return {"models": models, "repeats": 1, "occasion": occasion}
