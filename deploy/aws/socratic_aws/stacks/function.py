"""A service as a function: its code, its versions, its alias, its log and its alarms."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, RemovalPolicy, aws_cloudwatch, aws_codedeploy, aws_iam, aws_logs
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from constructs import Construct

from socratic_aws.stacks.names import Resources, claims
from socratic_aws.stacks.permissions import controlling, environment, grant, reading_keys
from socratic_aws.stacks.services import API, CURATOR, JUDGE, LIVE, Service
from socratic_aws.stacks.stage import Stage, accept

LOGS_KEPT: Final = aws_logs.RetentionDays.ONE_MONTH

WATCHED_BY_THEIR_QUEUES: Final = (JUDGE, CURATOR)
"""Services whose errors leave their messages waiting: the alarm of a queue's oldest message rises
as soon as one of errors would, and each alarm costs (D-363)."""

CODEDEPLOY_POLICY: Final = "service-role/AWSCodeDeployRoleForLambdaLimited"


class ServiceFunction(Construct):
    """A function with its own layer, and the alias `live` of its newest version.

    Each function has a layer of its own, so that one service deploys and rolls back without
    another. Versions and layers are kept when a newer one comes: a rollback needs them.
    """

    def __init__(
        self, scope: Construct, service: Service, stage: Stage, resources: Resources
    ) -> None:
        super().__init__(scope, f"{service.name}-function")
        self._service = service
        self._stage = stage
        self._resources = resources
        name = stage.named(service.name)
        layer = lambda_.LayerVersion(
            self,
            "Layer",
            layer_version_name=name,
            code=lambda_.Code.from_asset(stage.packages.path("layer")),
            compatible_runtimes=[self._runtime()],
            compatible_architectures=[self._architecture()],
            description=f"The library of release {stage.packages.release}",
            removal_policy=RemovalPolicy.RETAIN,
        )
        logs = aws_logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/lambda/{name}",
            retention=LOGS_KEPT,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            description=f"Socratic Bench: the {service.name}",
            runtime=self._runtime(),
            architecture=self._architecture(),
            code=lambda_.Code.from_asset(stage.packages.path(service.of_package)),
            handler=f"socratic_{service.of_package}.entrypoints.{service.entry_point}.handler",
            layers=[layer],
            timeout=Duration.seconds(service.timeout),
            memory_size=service.memory,
            role=self._role(logs),
            log_group=logs,
            environment=environment(service, stage, resources),
            current_version_options=lambda_.VersionOptions(
                removal_policy=RemovalPolicy.RETAIN,
                description=stage.packages.release,
                retry_attempts=0,
            ),
        )
        self.alias = lambda_.Alias(
            self, "Live", alias_name=LIVE, version=self.function.current_version
        )
        accept(
            self.function,
            "L1",
            "The runtime is that of the Python that compiled the package; it is supported.",
        )
        self._consume()
        if service not in WATCHED_BY_THEIR_QUEUES:
            # Once is noise, which a retry mends: AWS restarts functions as it likes.
            self._errors_alarm("errors", "Errors", minutes=5, breaching=2, of=3)
        if stage.canary:
            self._canary()

    def _runtime(self) -> lambda_.Runtime:
        return lambda_.Runtime(self._stage.packages.runtime, lambda_.RuntimeFamily.PYTHON)

    def _architecture(self) -> lambda_.Architecture:
        return lambda_.Architecture.custom(self._stage.packages.architecture)

    def _role(self, logs: aws_logs.LogGroup) -> aws_iam.Role:
        """Return the role of the function, which may write its own log besides its work."""
        role = aws_iam.Role(
            self,
            "Role",
            assumed_by=aws_iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"What the {self._service.name} of {self._stage.prefix} may do",
        )
        logs.grant_write(role)
        grant(role, self._service, self._stage, self._resources)
        if self._service is API:
            role.add_to_policy(reading_keys(self._resources))
            for statement in controlling(self._stage, self._resources):
                role.add_to_policy(statement)
            bodies = self._resources.in_reports(claims(self._stage))
            reason = "The bodies of large messages are named by their content."
            accept(role, f"IAM5[Resource::{bodies}]", reason)
        return role

    def _consume(self) -> None:
        for each in self._service.consumes:
            source = SqsEventSource(
                self._resources.queue(each.queue),
                batch_size=each.batch,
                max_batching_window=Duration.seconds(each.window) if each.window else None,
                max_concurrency=each.concurrency,
                report_batch_item_failures=True,
            )
            self.alias.add_event_source(source)

    def _canary(self) -> None:
        """Give a new version a tenth of the invocations first, and take it back on an error.

        The usual alarm rises after ten minutes, when the canary is over; so it has its own.
        """
        error = self._errors_alarm("canary", "Update", minutes=1, breaching=1, of=1)
        group = aws_codedeploy.LambdaDeploymentGroup(
            self,
            "Canary",
            alias=self.alias,
            deployment_config=aws_codedeploy.LambdaDeploymentConfig.CANARY_10_PERCENT_5_MINUTES,
            alarms=[error],
        )
        accept(
            group,
            f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{CODEDEPLOY_POLICY}]",
            "AWS keeps its policy in line with what CodeDeploy calls; CodeDeploy alone has it.",
        )

    def _errors_alarm(
        self, name: str, section: str, *, minutes: int, breaching: int, of: int
    ) -> aws_cloudwatch.Alarm:
        """Return an alarm: errors in `breaching` of the last `of` periods of some minutes."""
        alarm = aws_cloudwatch.Alarm(
            self,
            name,
            alarm_name=self._stage.named(f"{self._service.name}-{name}"),
            alarm_description=f"The {self._service.name} has errors: see the runbook, {section}",
            metric=self.alias.metric_errors(period=Duration.minutes(minutes), statistic="Sum"),
            threshold=1,
            evaluation_periods=of,
            datapoints_to_alarm=breaching,
            comparison_operator=(
                aws_cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=aws_cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(SnsAction(self._resources.topic))
        return alarm
