"""The settings of the function of a service."""

from __future__ import annotations

import json

from socratic_aws.stacks.names import Resources
from socratic_aws.stacks.permissions import API_KEYS
from socratic_aws.stacks.services import API, CONFIG, RELEASE, RUNNER, SCHEDULER, Service
from socratic_aws.stacks.stage import Stage


def environment(service: Service, stage: Stage, resources: Resources) -> dict[str, str]:
    """Return the environment variables of a service."""
    bucket = resources.bucket_name()
    settings = {RELEASE: stage.packages.release, "SOCRATIC_STAGE": stage.name}
    if service.consumes or service.publishes:
        settings["SOCRATIC_BROKER_URL"] = f"sqs:///{stage.prefix}?bucket={bucket}"
    if service.store:
        settings["SOCRATIC_STORE_URL"] = f"dynamodb://{resources.table_name()}?bucket={bucket}"
    if service is RUNNER and stage.secrets:
        settings["SOCRATIC_ENDPOINT_SECRETS"] = json.dumps(
            {name: f"{stage.prefix}/endpoints/{name}" for name in stage.secrets}
        )
    if service is SCHEDULER:
        settings["SOCRATIC_CONFIG_OBJECT"] = f"s3://{bucket}/{CONFIG}"
    if service is API:
        settings["SOCRATIC_API_KEYS_PARAMETER"] = f"/{stage.prefix}/{API_KEYS}"
    return settings
