"""What each service may do: named actions on named resources, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from aws_cdk.aws_iam import PolicyStatement, Role

from socratic_aws.stacks.names import DEAD_LETTERS, Resources, claims
from socratic_aws.stacks.services import (
    API,
    CONFIG,
    CURATOR,
    JUDGE,
    RELEASE,
    RUNNER,
    SCHEDULER,
    Service,
)
from socratic_aws.stacks.stage import Stage, accept
from socratic_bench.adapters.stores.dynamodb.keys import LARGE_RESPONSES
from socratic_bench.consuming.queues import BROADCASTS

CONSUMED: Final = tuple(
    consumption for service in (RUNNER, JUDGE, CURATOR) for consumption in service.consumes
)

API_KEYS: Final = "api-keys"
"""The parameter with the keys for writing; Systems Manager keeps it without charge."""

_READING: Final = (
    "dynamodb:BatchGetItem",
    "dynamodb:DescribeTable",
    "dynamodb:GetItem",
    "dynamodb:Query",
)
_WRITING: Final = (
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)
_CONSUMING: Final = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
)
_PUBLISHING: Final = ("sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage")


def statements(service: Service, stage: Stage, resources: Resources) -> Iterator[PolicyStatement]:
    """Yield what a service may do."""
    yield from _messages(service, resources)
    yield from _store(service, resources)
    if service is RUNNER:
        yield from _models(stage, resources)
    if service is SCHEDULER:
        yield PolicyStatement(
            actions=["s3:GetObject"], resources=[f"{resources.bucket_arn()}/{CONFIG}"]
        )


def reading_keys(resources: Resources) -> PolicyStatement:
    """Return what the API's function needs for its keys; what starts its task gives a task them."""
    return PolicyStatement(
        actions=["ssm:GetParameter"], resources=[resources.parameter_arn(API_KEYS)]
    )


def controlling(stage: Stage, resources: Resources) -> Iterator[PolicyStatement]:
    """Yield what the API's function needs to submit, change and delete experiments, and to put dead
    letters back. It consumes no queue.
    """
    writer = replace(API, store="write", publishes=tuple(each.queue for each in CONSUMED))
    yield from statements(writer, stage, resources)
    letters = [resources.queue_arn(each.queue, DEAD_LETTERS) for each in CONSUMED]
    yield PolicyStatement(actions=[*_CONSUMING, "sqs:SendMessage"], resources=letters)
    topics = [resources.topic_arn(event_type) for event_type in BROADCASTS]
    yield PolicyStatement(actions=["sns:CreateTopic"], resources=topics)


def grant(role: Role, service: Service, stage: Stage, resources: Resources) -> None:
    """Let the role of a service do what it may, wherever the service runs."""
    for statement in statements(service, stage, resources):
        role.add_to_policy(statement)
    if service.publishes or service.consumes:
        objects = resources.in_reports(claims(stage))
        reason = "The bodies of large messages are named by their content."
        accept(role, f"IAM5[Resource::{objects}]", reason)
    if service.store:
        objects = resources.in_reports(LARGE_RESPONSES)
        accept(role, f"IAM5[Resource::{objects}]", "Large responses are named by their runs.")


def _messages(service: Service, resources: Resources) -> Iterator[PolicyStatement]:
    consumed = [each.queue for each in service.consumes]
    if consumed:
        arns = [resources.queue_arn(queue) for queue in consumed]
        yield PolicyStatement(actions=[*_CONSUMING], resources=arns)
    # A message that has to come back later is sent again, and one that cannot be handled goes to
    # the dead letters with its reason.
    sent = [resources.queue_arn(queue) for queue in (*service.publishes, *consumed)]
    sent += [resources.queue_arn(queue, DEAD_LETTERS) for queue in consumed]
    if sent:
        yield PolicyStatement(actions=[*_PUBLISHING], resources=sent)
        yield PolicyStatement(
            actions=["s3:GetObject", "s3:PutObject"], resources=[resources.claims_arn()]
        )
    # The broker looks up the dead letters of every queue that it declares.
    others = [resources.queue_arn(queue, DEAD_LETTERS) for queue in service.publishes]
    if others:
        yield PolicyStatement(actions=["sqs:GetQueueUrl"], resources=others)
    if service.announces:
        # The broker asks for a topic by creating it; one that is there stays as it is.
        topics = [resources.topic_arn(event_type) for event_type in BROADCASTS]
        yield PolicyStatement(actions=["sns:CreateTopic", "sns:Publish"], resources=topics)


def _store(service: Service, resources: Resources) -> Iterator[PolicyStatement]:
    if not service.store:
        return
    writes = service.store == "write"
    table = [resources.table_arn()]
    yield PolicyStatement(actions=[*_READING, *(_WRITING if writes else ())], resources=table)
    large = ("s3:GetObject", *(("s3:DeleteObject", "s3:PutObject") if writes else ()))
    yield PolicyStatement(actions=[*large], resources=[resources.responses_arn()])
    # S3 tells only a role that may list the bucket that an object is gone; it refuses others.
    yield PolicyStatement(actions=["s3:ListBucket"], resources=[resources.bucket_arn()])


def _models(stage: Stage, resources: Resources) -> Iterator[PolicyStatement]:
    if stage.bedrock_models:
        yield PolicyStatement(
            actions=["bedrock:InvokeModel"],
            resources=[resources.model_arn(model) for model in stage.bedrock_models],
        )
    if stage.secrets:
        yield PolicyStatement(
            actions=["secretsmanager:GetSecretValue"],
            resources=[resources.secret_arn(name) for name in stage.secrets],
        )


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
