"""The resources that several stacks name, found by their names.

A stack that refers to another one's resource by an export forbids the other to change it. By name,
each service deploys on its own.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import ArnFormat, Stack, aws_sns, aws_sqs
from constructs import Construct

from socratic_aws.stacks.stage import Stage
from socratic_bench.adapters.stores.dynamodb.keys import LARGE_RESPONSES
from socratic_bench.ports.broker import WorkQueue

DEAD_LETTERS: Final = "-dlq"
ARTIFACTS: Final = "artifacts"
TOPIC: Final = "alarms"
TABLE: Final = "store"


class Resources:
    """The resources of the foundation, as another stack refers to them."""

    def __init__(self, scope: Construct, stage: Stage) -> None:
        self._scope = scope
        self._stage = stage
        self._stack = Stack.of(scope)
        self._queues: dict[str, aws_sqs.IQueue] = {}
        self.topic: aws_sns.ITopic = aws_sns.Topic.from_topic_arn(
            scope, "Alarms", self._arn("sns", stage.named(TOPIC))
        )
        """The topic of the alarms."""

    def region(self) -> str:
        """Return the region that the stage is deployed to."""
        return self._stack.region

    def queue(self, queue: WorkQueue) -> aws_sqs.IQueue:
        """Return a work queue."""
        if queue.name not in self._queues:
            self._queues[queue.name] = aws_sqs.Queue.from_queue_arn(
                self._scope, queue.name, self.queue_arn(queue)
            )
        return self._queues[queue.name]

    def queue_arn(self, queue: WorkQueue, suffix: str = "") -> str:
        """Return the ARN of a queue."""
        return self._arn("sqs", self._stage.named(queue.name + suffix))

    def table_arn(self) -> str:
        """Return the ARN of the store's table."""
        return self._arn("dynamodb", f"table/{self.table_name()}")

    def table_name(self) -> str:
        """Return the name of the store's table."""
        return self._stage.named(TABLE)

    def bucket_name(self) -> str:
        """Return the name of the artifacts' bucket, which no other account may have."""
        return artifacts_bucket(self._stage, self._stack)

    def claims_arn(self) -> str:
        """Return the ARN of the bodies of large messages."""
        return f"{self.bucket_arn()}/{claims(self._stage)}*"

    def responses_arn(self) -> str:
        """Return the ARN of the responses that are too large for the table."""
        return f"{self.bucket_arn()}/{LARGE_RESPONSES}*"

    def in_reports(self, prefix: str) -> str:
        """Return the ARN of all objects whose keys begin so, as cdk-nag writes it."""
        bucket = f"{self._stage.named(ARTIFACTS)}-<AWS::AccountId>-<AWS::Region>"
        return f"arn:<AWS::Partition>:s3:::{bucket}/{prefix}*"

    def topic_arn(self, event_type: str) -> str:
        """Return the ARN of the topic of a broadcast."""
        return self._arn("sns", broadcast_topic(self._stage, event_type))

    def bucket_arn(self) -> str:
        """Return the ARN of the artifacts' bucket."""
        return self._stack.format_arn(
            service="s3",
            region="",
            account="",
            resource=self.bucket_name(),
            arn_format=ArnFormat.NO_RESOURCE_NAME,
        )

    def model_arn(self, model_id: str) -> str:
        """Return the ARN of a foundation model of Bedrock."""
        return self._stack.format_arn(
            service="bedrock", account="", resource="foundation-model", resource_name=model_id
        )

    def secret_arn(self, endpoint: str) -> str:
        """Return the ARN of an endpoint's key; AWS adds six characters of its own."""
        name = f"{self._stage.prefix}/endpoints/{endpoint}-??????"
        return self._stack.format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def parameter_arn(self, name: str) -> str:
        """Return the ARN of a parameter of the stage."""
        return self._stack.format_arn(
            service="ssm", resource="parameter", resource_name=f"{self._stage.prefix}/{name}"
        )

    def _arn(self, service: str, resource: str) -> str:
        kind, _, name = resource.rpartition("/")
        if kind:
            return self._stack.format_arn(service=service, resource=kind, resource_name=name)
        return self._stack.format_arn(
            service=service, resource=name, arn_format=ArnFormat.NO_RESOURCE_NAME
        )


def artifacts_bucket(stage: Stage, stack: Stack) -> str:
    """Return the name of the artifacts' bucket."""
    return f"{stage.named(ARTIFACTS)}-{stack.account}-{stack.region}"


def claims(stage: Stage) -> str:
    """Return what the keys of large messages begin with, as the broker writes them."""
    return f"{stage.named('claims')}/"


def broadcast_topic(stage: Stage, event_type: str) -> str:
    """Return the name of the topic of a broadcast, as the broker finds it."""
    return stage.named(event_type.replace(".", "-"))
