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

from socratic_aws.stacks.containers.api_tasks import add_api_tasks, domain_of
from socratic_aws.stacks.containers.base import Network
from socratic_aws.stacks.containers.task import ServiceTask
from socratic_aws.stacks.function import LOGS_KEPT, ServiceFunction
from socratic_aws.stacks.names import Resources
from socratic_aws.stacks.services import API, SCHEDULER, STACKED
from socratic_aws.stacks.stage import Stage, accept

REQUESTS_PER_SECOND: Final = 50
REQUESTS_AT_ONCE: Final = 100

ACCESS: Final = json.dumps(
    {
        name: f"$context.{name}"
        for name in ("requestId", "requestTime", "httpMethod", "path", "status", "responseLatency")
    }
)
"""A line of the access log: no address and no query of whoever asks."""

OPEN: Final = "Reading is open, as a leaderboard is; the API itself asks for a key where it writes."

PLAN_AT: Final = "cron(0 3 ? * MON *)"
"""Mondays at 03:00 UTC."""

RECONCILE_EVERY: Final = "rate(1 minute)"


class ServiceStack(CdkStack):
    """One service, as functions or as tasks."""

    def __init__(self, scope: Construct, name: str, stage: Stage) -> None:
        super().__init__(
            scope,
            name.capitalize(),
            stack_name=stage.named(name),
            description=f"Socratic Bench: the {name}",
        )
        self._stage = stage
        resources = Resources(self, stage)
        in_tasks = stage.compute == "containers"
        self.functions = {
            service.name: ServiceFunction(self, service, stage, resources)
            for service in STACKED[name]
            if not in_tasks or service is SCHEDULER
        }
        if SCHEDULER.name in self.functions:
            self._schedule(self.functions[SCHEDULER.name])
        self.api: aws_apigatewayv2.HttpApi | None = None
        if not in_tasks:
            if API.name in self.functions:
                way = HttpLambdaIntegration("Api", self.functions[API.name].alias)
                self.api = self._http_api(way)
            return
        network = Network(self, stage)
        for service in STACKED[name]:
            if service not in {SCHEDULER, API}:
                ServiceTask(self, service, stage, resources, network)
        if name == API.name:
            self.api = self._http_api(None)
            way_in = add_api_tasks(
                self, stage, resources, network, domain_of(self, self.api.api_id)
            )
            # The name of a function's route: a change of what computes keeps it, not a second one.
            route = aws_apigatewayv2.HttpRoute(
                self.api,
                "DefaultRoute",
                http_api=self.api,
                route_key=aws_apigatewayv2.HttpRouteKey.DEFAULT,
                integration=way_in,
            )
            accept(route, "APIG4", OPEN)

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

    def _http_api(
        self, integration: aws_apigatewayv2.HttpRouteIntegration | None
    ) -> aws_apigatewayv2.HttpApi:
        """Add the HTTP API; without an integration the caller adds its route."""
        api = aws_apigatewayv2.HttpApi(
            self,
            "Http",
            api_name=self._stage.named("api"),
            create_default_stage=False,
            default_integration=integration,
        )
        accept(api, "APIG4", OPEN)
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
    return domain_of(CdkStack.of(api), api.api_id)
