"""A stage: its name, and what its stacks are told by the context of CDK."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from aws_cdk import Acknowledgment, App, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct, Node


def check(app: App) -> None:
    """Have the synthesis fail at each finding that no stack accepts."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))


def accept(scope: IConstruct, rule: str, reason: str) -> None:
    """Accept the findings of a rule, such as `S1`, within `scope`."""
    Validations.of(scope).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))


Compute: TypeAlias = Literal["functions", "containers"]

_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,15}")


class WrongContext(Exception):
    """A value of the context is wrong; the message names it."""


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages of the functions, as `socratic_aws.packaging.build` lists them."""

    folder: Path
    release: str
    runtime: str
    architecture: str
    files: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> Packages:
        """Read the list in a folder of packages. Raises WrongContext."""
        try:
            listed = json.loads((folder / "packages.json").read_text())
        except OSError as error:
            raise WrongContext(
                f"packages: {folder} has no packages; build them with `make packages`"
            ) from error
        return cls(
            folder,
            listed["release"],
            listed["runtime"],
            listed["architecture"],
            {name: package["file"] for name, package in listed["packages"].items()},
        )

    def path(self, name: str) -> str:
        """Return the path of a package."""
        return str(self.folder / self.files[name])


@dataclass(frozen=True, slots=True)
class Stage:
    """One installation: everything in it is named after it."""

    name: str
    packages: Packages
    alarm_email: str | None
    monthly_budget: int
    """USD after which the topic hears of the cost; 0 for no such alarm."""

    daily_call_usd: int
    """USD of calls to models in a day at which the topic hears of it; 0 for no such alarm."""

    bedrock_models: tuple[str, ...]
    """The foundation models that the runner may call with its role."""

    secrets: tuple[str, ...]
    """The endpoints whose keys the runner may read from Secrets Manager."""

    canary: bool
    """Whether a new version is watched: CodeDeploy moves a tenth of a function's traffic first, and
    ECS takes new tasks back on errors."""

    compute: Compute = "functions"
    """What runs the services; the scheduler is a function in both."""

    images: str | None = None
    """The address of each image, with `{service}` for the service, in a registry that asks for no
    password; None for the stage's own registry."""

    @classmethod
    def from_context(cls, node: Node) -> Stage:
        """Read the context. Raises WrongContext."""
        folder = Path(_text(node, "packages", "build/aws"))
        stage = cls(
            name=_text(node, "stage", "dev"),
            packages=Packages.read(folder),
            alarm_email=_text(node, "alarm_email", "") or None,
            monthly_budget=_number(node, "monthly_budget", 10),
            daily_call_usd=_number(node, "daily_call_usd", 0),
            bedrock_models=_listed(node, "bedrock_models"),
            secrets=_listed(node, "secrets"),
            canary=_text(node, "canary", "false") == "true",
            compute=_compute(_text(node, "compute", "functions")),
            images=_images(_text(node, "images", "")),
        )
        if not _NAME.fullmatch(stage.name):
            raise WrongContext(
                f"stage: {stage.name!r} must be 1 to 16 lower-case letters and digits"
            )
        return stage

    @property
    def prefix(self) -> str:
        """What every name of the stage begins with."""
        return f"socratic-{self.name}"

    def named(self, name: str) -> str:
        """Return the name of something in this stage."""
        return f"{self.prefix}-{name}"


def _text(node: Node, key: str, default: str) -> str:
    value: Any = node.try_get_context(key)
    return default if value is None else str(value)


def _number(node: Node, key: str, default: int) -> int:
    text = _text(node, key, str(default))
    if not text.isdigit():
        raise WrongContext(f"{key}: {text!r} is no whole number")
    return int(text)


def _compute(text: str) -> Compute:
    if text not in get_args(Compute):
        raise WrongContext(f"compute: {text!r} must be one of {', '.join(get_args(Compute))}")
    return cast("Compute", text)


def _images(text: str) -> str | None:
    if text and "{service}" not in text:
        raise WrongContext(f"images: {text!r} must hold {{service}}, as registry/{{service}}:1.2")
    return text or None


def _listed(node: Node, key: str) -> tuple[str, ...]:
    return tuple(entry for each in _text(node, key, "").split(",") if (entry := each.strip()))
