"""The settings of a service, as a function and as a task."""

from __future__ import annotations

import json
from typing import Final

from socratic_aws.stacks.names import Resources
from socratic_aws.stacks.permissions import API_KEYS
from socratic_aws.stacks.services import API, CONFIG, CURATOR, RELEASE, RUNNER, SCHEDULER, Service
from socratic_aws.stacks.stage import Stage

DRAIN_SECONDS: Final = 100
"""Seconds for calls in hand when a runner stops: after 120, Fargate ends the task."""


def environment(service: Service, stage: Stage, resources: Resources) -> dict[str, str]:
    """Return the environment variables of a service as a function."""
    settings = _settings(service, stage, resources)
    if service is API:
        settings["SOCRATIC_API_KEYS_PARAMETER"] = f"/{stage.prefix}/{API_KEYS}"
        settings["SOCRATIC_BROKER_URL"] = _broker_url(stage, resources)
    return settings


def task_environment(service: Service, stage: Stage, resources: Resources) -> dict[str, str]:
    """Return the environment variables of a service as a task."""
    settings = _settings(service, stage, resources)
    settings |= dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), resources.region())
    if service is API:
        # Its role may do no more, and it knows no broker: the function has both.
        settings["SOCRATIC_ONLY_READS"] = "true"
    else:
        # Only its own probe asks a task whether it is alive.
        settings["SOCRATIC_HEALTH_HOST"] = "127.0.0.1"
    if service is RUNNER:
        settings["SOCRATIC_DRAIN_DEADLINE"] = str(DRAIN_SECONDS)
    if service is CURATOR:
        # The scheduler does, which is a function.
        settings["SOCRATIC_CURATOR_RECONCILES"] = "false"
    return settings


def _settings(service: Service, stage: Stage, resources: Resources) -> dict[str, str]:
    bucket = resources.bucket_name()
    settings = {RELEASE: stage.packages.release, "SOCRATIC_STAGE": stage.name}
    if service.consumes or service.publishes:
        settings["SOCRATIC_BROKER_URL"] = _broker_url(stage, resources)
    if service.store:
        settings["SOCRATIC_STORE_URL"] = f"dynamodb://{resources.table_name()}?bucket={bucket}"
    if service is RUNNER and stage.secrets:
        settings["SOCRATIC_ENDPOINT_SECRETS"] = json.dumps(
            {name: f"{stage.prefix}/endpoints/{name}" for name in stage.secrets}
        )
    if service is SCHEDULER:
        settings["SOCRATIC_CONFIG_OBJECT"] = f"s3://{bucket}/{CONFIG}"
    return settings


def _broker_url(stage: Stage, resources: Resources) -> str:
    return f"sqs:///{stage.prefix}?bucket={resources.bucket_name()}"
