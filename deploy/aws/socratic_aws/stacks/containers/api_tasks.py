"""The API as tasks: its HTTP API reaches them through a link into the network.

The HTTP API finds tasks by Cloud Map. A load balancer would cost much more than that: D-233.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, Stack, aws_apigatewayv2, aws_ec2, aws_ecs, aws_servicediscovery
from aws_cdk.aws_apigatewayv2_integrations import HttpServiceDiscoveryIntegration
from constructs import Construct

from socratic_aws.stacks.containers.base import Network
from socratic_aws.stacks.containers.task import ServiceTask
from socratic_aws.stacks.names import Resources
from socratic_aws.stacks.services import API, PORTS
from socratic_aws.stacks.stage import Stage

FORGOTTEN_AFTER: Final = Duration.seconds(10)
"""How long the address of a task may be used after the task has gone."""


def add_api_tasks(
    scope: Construct, stage: Stage, resources: Resources, network: Network, domain: str
) -> aws_apigatewayv2.HttpRouteIntegration:
    """Add the API's tasks, which answer to the name `domain`; returns the way to them."""
    namespace = aws_servicediscovery.PrivateDnsNamespace(
        scope, "Namespace", name=f"{stage.prefix}.internal", vpc=network.vpc
    )
    tasks = ServiceTask(
        scope,
        API,
        stage,
        resources,
        network,
        settings={"SOCRATIC_ALLOWED_HOSTS": domain},
        # Of an SRV record the HTTP API reads the port, too.
        cloud_map=aws_ecs.CloudMapOptions(
            name=API.name,
            cloud_map_namespace=namespace,
            dns_record_type=aws_servicediscovery.DnsRecordType.SRV,
            dns_ttl=FORGOTTEN_AFTER,
        ),
    )
    link = _link(scope, stage, network, tasks)
    found = tasks.service.cloud_map_service
    if found is None:
        raise ValueError("the tasks of the API have no name")
    return HttpServiceDiscoveryIntegration(
        "Api",
        found,
        vpc_link=link,
        # The API refuses names that are not its own, such as a task's address.
        parameter_mapping=aws_apigatewayv2.ParameterMapping().overwrite_header(
            "Host", aws_apigatewayv2.MappingValue.context_variable("domainName")
        ),
    )


def _link(
    scope: Construct, stage: Stage, network: Network, tasks: ServiceTask
) -> aws_apigatewayv2.VpcLink:
    """Return the only way into the network: from the HTTP API to the port of the API's tasks."""
    port = aws_ec2.Port.tcp(PORTS[API.name])
    group = aws_ec2.SecurityGroup(
        scope,
        "LinkGroup",
        vpc=network.vpc,
        description=f"The HTTP API of {stage.prefix}",
        allow_all_outbound=False,
    )
    group.add_egress_rule(tasks.security_group, port, "The tasks of the API")
    tasks.security_group.add_ingress_rule(group, port, "The HTTP API")
    return aws_apigatewayv2.VpcLink(
        scope,
        "Link",
        vpc_link_name=stage.named("api"),
        vpc=network.vpc,
        subnets=aws_ec2.SubnetSelection(subnet_type=aws_ec2.SubnetType.PUBLIC),
        security_groups=[group],
    )


def domain_of(scope: Construct, api_id: str) -> str:
    """Return the domain name of an HTTP API."""
    stack = Stack.of(scope)
    return f"{api_id}.execute-api.{stack.region}.{stack.url_suffix}"
