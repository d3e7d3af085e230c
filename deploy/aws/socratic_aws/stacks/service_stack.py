"""A stack for each service, so that each deploys and rolls back alone."""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import (
    CfnOutput,
    RemovalPolicy,
    aws_apigatewayv2,
    aws_iam,
    aws_logs,
    aws_scheduler,
)
from aws_cdk import Stack as CdkStack
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from socratic_aws.stacks.function import LOGS_KEPT, ServiceFunction
from socratic_aws.stacks.nag import accept
from socratic_aws.stacks.names import Resources
from socratic_aws.stacks.services import API, SCHEDULER, STACKED
from socratic_aws.stacks.stage import Stage

REQUESTS_PER_SECOND: Final = 50
REQUESTS_AT_ONCE: Final = 100

ACCESS: Final = json.dumps(
    {
        name: f"$context.{name}"
        for name in ("requestId", "requestTime", "httpMethod", "path", "status", "responseLatency")
    }
)
"""A line of the access log: no address and no query of whoever asks."""

PLAN_AT: Final = "cron(0 3 ? * MON *)"
"""Mondays at 03:00 UTC."""

RECONCILE_EVERY: Final = "rate(1 minute)"


class ServiceStack(CdkStack):
    """The functions of one service."""

    def __init__(self, scope: Construct, name: str, stage: Stage) -> None:
        super().__init__(
            scope,
            name.capitalize(),
            stack_name=stage.named(name),
            description=f"Socratic Bench: the {name}",
        )
        self._stage = stage
        resources = Resources(self, stage)
        self.functions = {
            service.name: ServiceFunction(self, service, stage, resources)
            for service in STACKED[name]
        }
        if SCHEDULER.name in self.functions:
            self._schedule(self.functions[SCHEDULER.name])
        self.api = self._http_api(self.functions[API.name]) if name == API.name else None

    def _schedule(self, scheduler: ServiceFunction) -> None:
        """Plan each week, and look for lost work each minute."""
        role = aws_iam.Role(
            self,
            "ScheduleRole",
            assumed_by=aws_iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": self.account}},
            ),
            description="What calls the scheduler",
        )
        role.add_to_policy(
            aws_iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[scheduler.alias.function_arn]
            )
        )
        for name, expression, retries in (
            ("plan", PLAN_AT, 5),
            ("reconcile", RECONCILE_EVERY, 0),
        ):
            aws_scheduler.CfnSchedule(
                self,
                f"{name}-schedule",
                name=self._stage.named(name),
                schedule_expression=expression,
                schedule_expression_timezone="UTC",
                flexible_time_window=aws_scheduler.CfnSchedule.FlexibleTimeWindowProperty(
                    mode="OFF"
                ),
                target=aws_scheduler.CfnSchedule.TargetProperty(
                    arn=scheduler.alias.function_arn,
                    role_arn=role.role_arn,
                    input=f'{{"task": "{name}"}}',
                    retry_policy=aws_scheduler.CfnSchedule.RetryPolicyProperty(
                        maximum_retry_attempts=retries, maximum_event_age_in_seconds=3600
                    ),
                ),
            )

    def _http_api(self, function: ServiceFunction) -> aws_apigatewayv2.HttpApi:
        api = aws_apigatewayv2.HttpApi(
            self,
            "Http",
            api_name=self._stage.named("api"),
            create_default_stage=False,
            default_integration=HttpLambdaIntegration("Api", function.alias),
        )
        accept(
            api,
            "APIG4",
            "Reading is open, as a leaderboard is; the API itself asks for a key where it writes.",
        )
        logs = aws_logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=f"/aws/apigateway/{self._stage.named('api')}",
            retention=LOGS_KEPT,
            removal_policy=RemovalPolicy.DESTROY,
        )
        stage = aws_apigatewayv2.HttpStage(
            self,
            "Stage",
            http_api=api,
            auto_deploy=True,
            throttle=aws_apigatewayv2.ThrottleSettings(
                rate_limit=REQUESTS_PER_SECOND, burst_limit=REQUESTS_AT_ONCE
            ),
        )
        settings = stage.node.default_child
        if isinstance(settings, aws_apigatewayv2.CfnStage):
            settings.access_log_settings = aws_apigatewayv2.CfnStage.AccessLogSettingsProperty(
                destination_arn=logs.log_group_arn, format=ACCESS
            )
        CfnOutput(self, "Address", value=stage.url)
        return api


def stage_domain(api: aws_apigatewayv2.HttpApi) -> str:
    """Return the domain name of an API."""
    stack = CdkStack.of(api)
    return f"{api.api_id}.execute-api.{stack.region}.{stack.url_suffix}"
