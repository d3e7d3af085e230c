"""A service as tasks on Fargate: its image, its settings, its role, its log and its alarms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import (
    CfnOutput,
    Duration,
    RemovalPolicy,
    Stack,
    aws_cloudwatch,
    aws_ec2,
    aws_ecr,
    aws_ecs,
    aws_iam,
    aws_logs,
    aws_ssm,
)
from aws_cdk.aws_cloudwatch_actions import SnsAction
from constructs import Construct

from socratic_aws.stacks.containers.base import Network
from socratic_aws.stacks.function import LOGS_KEPT
from socratic_aws.stacks.names import Resources
from socratic_aws.stacks.permissions import API_KEYS, grant, task_environment
from socratic_aws.stacks.services import API, PORTS, RUNNER, Service
from socratic_aws.stacks.stage import Stage, accept

PROCESSOR: Final = 256
"""Units of a processor of each task: a quarter of one."""

MEMORY: Final = 512
"""MiB of each task."""

STOP_SECONDS: Final = 120
"""The longest that Fargate waits for a task that was told to stop."""

USER: Final = "10001:10001"


class ServiceTask(Construct):
    """The tasks of a service, and the ECS service that keeps them running.

    Definitions of tasks are kept when a newer one comes: a rollback needs them.
    """

    def __init__(
        self,
        scope: Construct,
        service: Service,
        stage: Stage,
        resources: Resources,
        network: Network,
        *,
        settings: Mapping[str, str] | None = None,
        cloud_map: aws_ecs.CloudMapOptions | None = None,
    ) -> None:
        """`settings` are those that only the stack knows; `cloud_map` names the tasks to others."""
        super().__init__(scope, f"{service.name}-task")
        self._service = service
        self._stage = stage
        self._resources = resources
        name = stage.named(service.name)
        self._logs = aws_logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/ecs/{name}",
            retention=LOGS_KEPT,
            removal_policy=RemovalPolicy.DESTROY,
        )
        lines = self._error_lines()
        self._errors_alarm("errors", lines, minutes=5, breaching=2, of=3)
        self.security_group = self._security_group(network)
        definition = self._definition({**(settings or {})})
        self.service = aws_ecs.FargateService(
            self,
            "Service",
            service_name=name,
            cluster=network.cluster,
            task_definition=definition,
            desired_count=1,
            min_healthy_percent=100,
            max_healthy_percent=200,
            # Without an address of its own a task reaches neither AWS nor models: D-233.
            assign_public_ip=True,
            vpc_subnets=aws_ec2.SubnetSelection(subnet_type=aws_ec2.SubnetType.PUBLIC),
            security_groups=[self.security_group],
            circuit_breaker=aws_ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            deployment_alarms=self._watched(lines) if stage.canary else None,
            cloud_map_options=cloud_map,
            enable_ecs_managed_tags=True,
            propagate_tags=aws_ecs.PropagatedTagSource.SERVICE,
        )
        if definition.execution_role is not None:
            # Else the first task may start before its image can be pulled.
            self.service.node.add_dependency(definition.execution_role)
        self._down_alarm()
        # By it, a rollback knows what runs the service.
        CfnOutput(Stack.of(self), "Compute", value=stage.compute)

    def _watched(self, lines: aws_logs.MetricFilter) -> aws_ecs.DeploymentAlarmConfig:
        """Return the alarm that takes a deployment back; the usual one rises too late."""
        error = self._errors_alarm("canary", lines, minutes=1, breaching=1, of=1)
        return aws_ecs.DeploymentAlarmConfig(
            alarm_names=[error.alarm_name], behavior=aws_ecs.AlarmBehavior.ROLLBACK_ON_ALARM
        )

    def _definition(self, settings: dict[str, str]) -> aws_ecs.FargateTaskDefinition:
        definition = aws_ecs.FargateTaskDefinition(
            self,
            "Task",
            family=self._stage.named(self._service.name),
            cpu=PROCESSOR,
            memory_limit_mib=MEMORY,
            runtime_platform=aws_ecs.RuntimePlatform(
                cpu_architecture=aws_ecs.CpuArchitecture.of(
                    self._stage.packages.architecture.upper()
                ),
                operating_system_family=aws_ecs.OperatingSystemFamily.LINUX,
            ),
            task_role=self._task_role(),
            execution_role=self._execution_role(),
        )
        definition.apply_removal_policy(RemovalPolicy.RETAIN)
        accept(
            definition,
            "ECS2",
            "The variables hold no secrets: keys come from Secrets Manager and Systems Manager.",
        )
        port = PORTS[self._service.name]
        limits = aws_ecs.LinuxParameters(self, "Limits", init_process_enabled=True)
        limits.drop_capabilities(aws_ecs.Capability.ALL)
        probe = f"http://127.0.0.1:{port}/healthz"
        definition.add_container(
            self._service.name,
            image=self._image(),
            environment=task_environment(self._service, self._stage, self._resources) | settings,
            secrets=self._secrets(),
            logging=aws_ecs.LogDrivers.aws_logs(stream_prefix="task", log_group=self._logs),
            health_check=aws_ecs.HealthCheck(
                command=["CMD", "python", "-m", "socratic_bench.hosting.http.probe", probe],
                interval=Duration.seconds(10),
                timeout=Duration.seconds(5),
                retries=3,
                start_period=Duration.seconds(40),
            ),
            linux_parameters=limits,
            readonly_root_filesystem=True,
            user=USER,
            stop_timeout=Duration.seconds(STOP_SECONDS),
            port_mappings=(
                [aws_ecs.PortMapping(container_port=port)] if self._service is API else None
            ),
        )
        return definition

    def _image(self) -> aws_ecs.ContainerImage:
        """Return the image of the release, which a push cannot replace."""
        if self._stage.images is not None:
            address = self._stage.images.replace("{service}", self._service.name)
            return aws_ecs.ContainerImage.from_registry(address)
        registry = aws_ecr.Repository.from_repository_name(
            self, "Registry", self._stage.named(self._service.name)
        )
        return aws_ecs.ContainerImage.from_ecr_repository(registry, self._stage.packages.release)

    def _secrets(self) -> dict[str, aws_ecs.Secret]:
        if self._service is not API:
            return {}
        keys = aws_ssm.StringParameter.from_secure_string_parameter_attributes(
            self, "Keys", parameter_name=f"/{self._stage.prefix}/{API_KEYS}"
        )
        return {"SOCRATIC_API_KEYS": aws_ecs.Secret.from_ssm_parameter(keys)}

    def _task_role(self) -> aws_iam.Role:
        role = self._role("Role", f"What the {self._service.name} of {self._stage.prefix} may do")
        grant(role, self._service, self._stage, self._resources)
        return role

    def _execution_role(self) -> aws_iam.Role:
        """Return the role by which Fargate starts the task: its image, its log, the API's keys."""
        role = self._role("Start", f"What starts the {self._service.name} of {self._stage.prefix}")
        if self._stage.images is None:
            accept(
                role,
                "IAM5[Resource::*]",
                "AWS lets nobody name a registry when asking for a token.",
            )
        return role

    def _role(self, name: str, description: str) -> aws_iam.Role:
        return aws_iam.Role(
            self,
            name,
            assumed_by=aws_iam.ServicePrincipal(
                "ecs-tasks.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            ),
            description=description,
        )

    def _security_group(self, network: Network) -> aws_ec2.SecurityGroup:
        """Let nothing in, and out only to HTTPS; a model of the runner may listen elsewhere."""
        group = aws_ec2.SecurityGroup(
            self,
            "Group",
            vpc=network.vpc,
            description=f"The {self._service.name} of {self._stage.prefix}",
            allow_all_outbound=self._service is RUNNER,
        )
        if self._service is not RUNNER:
            group.add_egress_rule(aws_ec2.Peer.any_ipv4(), aws_ec2.Port.tcp(443), "AWS")
        return group

    def _error_lines(self) -> aws_logs.MetricFilter:
        return aws_logs.MetricFilter(
            self,
            "ErrorLines",
            log_group=self._logs,
            filter_pattern=aws_logs.FilterPattern.string_value("$.level", "=", "error"),
            metric_namespace=self._stage.prefix,
            metric_name=f"{self._service.name}-errors",
        )

    def _errors_alarm(
        self,
        name: str,
        lines: aws_logs.MetricFilter,
        *,
        minutes: int,
        breaching: int,
        of: int,
    ) -> aws_cloudwatch.Alarm:
        """Return an alarm: errors in the log in `breaching` of the last `of` periods."""
        return self._alarm(
            name,
            f"The {self._service.name} has errors: see the runbook, Errors",
            lines.metric(statistic="Sum", period=Duration.minutes(minutes)),
            breaching=breaching,
            of=of,
        )

    def _down_alarm(self) -> aws_cloudwatch.Alarm:
        """Return an alarm: no task runs. A running one reports its processor each minute."""
        return self._alarm(
            "down",
            f"No task of the {self._service.name} runs: see the runbook, Down",
            self.service.metric_cpu_utilization(
                statistic="SampleCount", period=Duration.minutes(5)
            ),
            breaching=2,
            of=3,
            comparison=aws_cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            missing=aws_cloudwatch.TreatMissingData.BREACHING,
        )

    def _alarm(
        self,
        name: str,
        description: str,
        metric: aws_cloudwatch.Metric,
        *,
        breaching: int,
        of: int,
        comparison: aws_cloudwatch.ComparisonOperator = (
            aws_cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        ),
        missing: aws_cloudwatch.TreatMissingData = aws_cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> aws_cloudwatch.Alarm:
        alarm = aws_cloudwatch.Alarm(
            self,
            name,
            # The name of a function's alarm is taken until the function is gone.
            alarm_name=self._stage.named(f"{self._service.name}-task-{name}"),
            alarm_description=description,
            metric=metric,
            threshold=1,
            evaluation_periods=of,
            datapoints_to_alarm=breaching,
            comparison_operator=comparison,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(SnsAction(self._resources.topic))
        return alarm
