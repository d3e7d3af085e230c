"""The foundation of a stage: queues, table, artifacts, and the topic of the alarms.

It changes seldom, and holds all that may not be lost: `make destroy` leaves table and artifacts.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import (
    Duration,
    RemovalPolicy,
    aws_budgets,
    aws_cloudwatch,
    aws_dynamodb,
    aws_iam,
    aws_lambda,
    aws_s3,
    aws_sns,
    aws_sns_subscriptions,
    aws_sqs,
)
from aws_cdk import Stack as CdkStack
from aws_cdk.aws_cloudwatch_actions import SnsAction
from constructs import Construct

from socratic_aws.stacks.names import (
    DEAD_LETTERS,
    TABLE,
    TOPIC,
    artifacts_bucket,
    broadcast_topic,
    claims,
)
from socratic_aws.stacks.services import RUNNER, visibility_seconds
from socratic_aws.stacks.stage import Stage, accept
from socratic_bench.adapters.brokers.sqs.address import (
    LAST_RESORT_RECEIVES,
    RETENTION_SECONDS,
)
from socratic_bench.adapters.stores.dynamodb.keys import LARGE_RESPONSES
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.hosting.functions.embedded_metrics import NAMESPACE
from socratic_bench.ports.broker import WorkQueue

KEPT: Final = Duration.seconds(RETENTION_SECONDS)
"""How long SQS keeps a message, at most; a dead letter's time counts from its first sending."""

NO_ACCESS_LOG: Final = (
    "Only the stage's own roles reach the bucket, and each may name its objects alone; a log of "
    "every request would cost more than the requests."
)

OLDEST: Final = {RUNNER.name: Duration.hours(6)}
"""The age of the oldest message at which to alarm, where it is not the usual one: runs of a week
wait for the limits of their models."""

USUAL_OLDEST: Final = Duration.minutes(15)


class Foundation(CdkStack):
    """Queues, table, artifacts and alarms."""

    def __init__(self, scope: Construct, stage: Stage) -> None:
        super().__init__(
            scope,
            "Foundation",
            stack_name=stage.named("foundation"),
            description="Socratic Bench: queues, table, artifacts, alarms",
        )
        self._stage = stage
        self.topic = self._topic()
        for queue in WORK_QUEUES:
            self._queue(queue)
        for event_type in BROADCASTS:
            name = broadcast_topic(stage, event_type)
            aws_sns.Topic(self, event_type, topic_name=name, enforce_ssl=True)
        self._table()
        self._artifacts()
        # One alarm for all functions: each costs ten cents a month, and the cause is the account's.
        self._alarm(
            "throttles",
            "AWS refuses invocations for being too many: see the runbook, Throttles",
            aws_lambda.Function.metric_all_throttles(period=Duration.minutes(5), statistic="Sum"),
            threshold=10,
        )
        if stage.monthly_budget:
            self._budget(stage.monthly_budget)
        if stage.daily_call_usd:
            self._alarm(
                "call-cost",
                f"A day's calls to models cost {stage.daily_call_usd} USD: see the runbook, Calls",
                aws_cloudwatch.Metric(
                    namespace=NAMESPACE,
                    metric_name="CallUSD",
                    dimensions_map={"Stage": stage.name, "Service": RUNNER.name},
                    period=Duration.days(1),
                    statistic="Sum",
                ),
                threshold=stage.daily_call_usd,
            )

    def _topic(self) -> aws_sns.Topic:
        topic = aws_sns.Topic(self, "Topic", topic_name=self._stage.named(TOPIC), enforce_ssl=True)
        for service in ("cloudwatch", "budgets"):
            topic.grant_publish(
                aws_iam.ServicePrincipal(
                    f"{service}.amazonaws.com",
                    conditions={"StringEquals": {"aws:SourceAccount": self.account}},
                )
            )
        if self._stage.alarm_email:
            topic.add_subscription(aws_sns_subscriptions.EmailSubscription(self._stage.alarm_email))
        return topic

    def _queue(self, queue: WorkQueue) -> None:
        name = self._stage.named(queue.name)
        dead_letters = aws_sqs.Queue(
            self,
            f"{queue.name}{DEAD_LETTERS}",
            queue_name=f"{name}{DEAD_LETTERS}",
            encryption=aws_sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=KEPT,
            redrive_allow_policy=aws_sqs.RedriveAllowPolicy(
                redrive_permission=aws_sqs.RedrivePermission.BY_QUEUE,
                source_queues=[
                    aws_sqs.Queue.from_queue_arn(
                        self, f"{queue.name}-source", self.format_arn(service="sqs", resource=name)
                    )
                ],
            ),
        )
        work = aws_sqs.Queue(
            self,
            queue.name,
            queue_name=name,
            encryption=aws_sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=KEPT,
            receive_message_wait_time=Duration.seconds(20),
            visibility_timeout=Duration.seconds(visibility_seconds(queue)),
            dead_letter_queue=aws_sqs.DeadLetterQueue(
                queue=dead_letters, max_receive_count=LAST_RESORT_RECEIVES
            ),
        )
        self._alarm(
            f"{queue.name}-dead-letters",
            f"{queue.name} has dead letters: see the runbook, Dead letters",
            dead_letters.metric_approximate_number_of_messages_visible(
                period=Duration.minutes(1), statistic="Maximum"
            ),
            threshold=1,
        )
        oldest = OLDEST.get(queue.name.partition("-")[0], USUAL_OLDEST)
        self._alarm(
            f"{queue.name}-oldest",
            f"A message of {queue.name} waits too long: see the runbook, Oldest message",
            work.metric_approximate_age_of_oldest_message(
                period=Duration.minutes(5), statistic="Maximum"
            ),
            threshold=oldest.to_seconds(),
        )

    def _table(self) -> None:
        aws_dynamodb.TableV2(
            self,
            "Table",
            table_name=self._stage.named(TABLE),
            partition_key=aws_dynamodb.Attribute(name="PK", type=aws_dynamodb.AttributeType.STRING),
            sort_key=aws_dynamodb.Attribute(name="SK", type=aws_dynamodb.AttributeType.STRING),
            billing=aws_dynamodb.Billing.on_demand(),
            encryption=aws_dynamodb.TableEncryptionV2.dynamo_owned_key(),
            point_in_time_recovery_specification=aws_dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="expires",
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )

    def _artifacts(self) -> None:
        bucket = aws_s3.Bucket(
            self,
            "Artifacts",
            bucket_name=artifacts_bucket(self._stage, self),
            encryption=aws_s3.BucketEncryption.S3_MANAGED,
            block_public_access=aws_s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=aws_s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        bucket.add_lifecycle_rule(
            id="incomplete-uploads", abort_incomplete_multipart_upload_after=Duration.days(1)
        )
        bucket.add_lifecycle_rule(id="replaced", noncurrent_version_expiration=Duration.days(90))
        bucket.add_lifecycle_rule(id="claims", prefix=claims(self._stage), expiration=KEPT)
        bucket.add_lifecycle_rule(
            id="large-responses",
            prefix=LARGE_RESPONSES,
            transitions=[
                aws_s3.Transition(
                    storage_class=aws_s3.StorageClass.INFREQUENT_ACCESS,
                    transition_after=Duration.days(30),
                )
            ],
        )
        accept(bucket, "S1", NO_ACCESS_LOG)

    def _budget(self, monthly: int) -> None:
        """Tell the topic of the month's cost, as forecast and as reached."""

        def told(kind: str) -> aws_budgets.CfnBudget.NotificationWithSubscribersProperty:
            return aws_budgets.CfnBudget.NotificationWithSubscribersProperty(
                notification=aws_budgets.CfnBudget.NotificationProperty(
                    comparison_operator="GREATER_THAN",
                    notification_type=kind,
                    threshold=100,
                    threshold_type="PERCENTAGE",
                ),
                subscribers=[
                    aws_budgets.CfnBudget.SubscriberProperty(
                        address=self.topic.topic_arn, subscription_type="SNS"
                    )
                ],
            )

        aws_budgets.CfnBudget(
            self,
            "Budget",
            budget=aws_budgets.CfnBudget.BudgetDataProperty(
                budget_name=self._stage.named("monthly"),
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=aws_budgets.CfnBudget.SpendProperty(amount=monthly, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:socratic-stage${self._stage.name}"]},
            ),
            notifications_with_subscribers=[told("ACTUAL"), told("FORECASTED")],
        )

    def _alarm(
        self, name: str, description: str, metric: aws_cloudwatch.Metric, *, threshold: float
    ) -> None:
        alarm = aws_cloudwatch.Alarm(
            self,
            f"{name}-alarm",
            alarm_name=self._stage.named(name),
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=1,
            comparison_operator=(
                aws_cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=aws_cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(SnsAction(self.topic))
