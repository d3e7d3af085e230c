"""cdk-nag's rules over all stacks, and how a stack accepts a finding, with its reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, App, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct


def check(app: App) -> None:
    """Have the synthesis fail at each finding that no stack accepts."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))


def accept(scope: IConstruct, rule: str, reason: str) -> None:
    """Accept the findings of a rule, such as `S1`, within `scope`."""
    Validations.of(scope).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
