"""What all tasks of a stage share: network, cluster, and a registry for each image.

Identifiers of a network are no names, so they stand in parameters of Systems Manager: an export
would forbid its stack to change.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import RemovalPolicy, aws_ec2, aws_ecr, aws_ecs, aws_ssm
from aws_cdk import Stack as CdkStack
from constructs import Construct

from socratic_aws.stacks.services import STACKED
from socratic_aws.stacks.stage import Stage, accept

ZONES: Final = 2
"""Availability zones: a task starts in the other one where one has no room."""

VPC: Final = "vpc"


def parameter(stage: Stage, name: str) -> str:
    """Return the name of a parameter of the network."""
    return f"/{stage.prefix}/network/{name}"


def subnet(index: int) -> str:
    """Return what the parameter of a subnet is called."""
    return f"subnet-{index + 1}"


class Network:
    """The network and the cluster of a stage, as a service's stack refers to them."""

    def __init__(self, scope: Construct, stage: Stage) -> None:
        def read(name: str) -> str:
            return aws_ssm.StringParameter.value_for_string_parameter(scope, parameter(stage, name))

        self.vpc: aws_ec2.IVpc = aws_ec2.Vpc.from_vpc_attributes(
            scope,
            "Network",
            vpc_id=read(VPC),
            availability_zones=[f"zone-{index}" for index in range(ZONES)],
            public_subnet_ids=[read(subnet(index)) for index in range(ZONES)],
        )
        self.cluster: aws_ecs.ICluster = aws_ecs.Cluster.from_cluster_attributes(
            scope, "Cluster", cluster_name=stage.prefix, vpc=self.vpc, security_groups=[]
        )


IMAGES_KEPT: Final = 50
"""Releases of a service that a rollback can go back to."""


class ContainerBase(CdkStack):
    """The network of a stage, its cluster and its registries. It holds no results."""

    def __init__(self, scope: Construct, stage: Stage) -> None:
        super().__init__(
            scope,
            "Containers",
            stack_name=stage.named("containers"),
            description="Socratic Bench: network, cluster and registries of the containers",
        )
        self._stage = stage
        self._network()
        cluster = aws_ecs.CfnCluster(self, "Cluster", cluster_name=stage.prefix)
        accept(
            cluster,
            "ECS4",
            "Container Insights cost more than a task; alarms take ECS's own metrics and the log.",
        )
        for service in STACKED:
            self._registry(service)

    # D-233: a NAT gateway, or endpoints for eight services, cost more than all tasks together.
    def _network(self) -> None:
        vpc = aws_ec2.Vpc(
            self,
            "Vpc",
            vpc_name=self._stage.prefix,
            ip_addresses=aws_ec2.IpAddresses.cidr("10.0.0.0/24"),
            max_azs=ZONES,
            nat_gateways=0,
            subnet_configuration=[
                aws_ec2.SubnetConfiguration(
                    name="tasks",
                    subnet_type=aws_ec2.SubnetType.PUBLIC,
                    cidr_mask=26,
                    # A task asks for its address by itself; nothing else gets one.
                    map_public_ip_on_launch=False,
                )
            ],
            gateway_endpoints={
                "S3": aws_ec2.GatewayVpcEndpointOptions(
                    service=aws_ec2.GatewayVpcEndpointAwsService.S3
                ),
                "DynamoDB": aws_ec2.GatewayVpcEndpointOptions(
                    service=aws_ec2.GatewayVpcEndpointAwsService.DYNAMODB
                ),
            },
        )
        accept(
            vpc,
            "VPC7",
            "No rule lets anything in but the gateway to the API, which logs its requests; a log "
            "of every flow would cost more than the tasks.",
        )
        told = {VPC: vpc.vpc_id}
        told |= {subnet(index): each.subnet_id for index, each in enumerate(vpc.public_subnets)}
        for name, value in told.items():
            aws_ssm.StringParameter(
                self,
                f"{name}-parameter",
                parameter_name=parameter(self._stage, name),
                string_value=value,
            )

    def _registry(self, service: str) -> None:
        """Make the registry of an image. It goes with the stack: images can be built again."""
        registry = aws_ecr.Repository(
            self,
            service,
            repository_name=self._stage.named(service),
            image_tag_mutability=aws_ecr.TagMutability.IMMUTABLE,
            image_scan_on_push=True,
            encryption=aws_ecr.RepositoryEncryption.AES_256,
            empty_on_delete=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        registry.add_lifecycle_rule(max_image_count=IMAGES_KEPT)
