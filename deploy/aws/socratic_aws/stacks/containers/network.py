"""The network of the tasks, as the stack that makes it and those that use it name it.

Identifiers of a network are no names, so they stand in parameters of Systems Manager: an export
would forbid its stack to change.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_ec2, aws_ecs, aws_ssm
from constructs import Construct

from socratic_aws.stacks.stage import Stage

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
