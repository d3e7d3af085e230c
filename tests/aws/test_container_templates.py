"""The templates of the containers keep the promises that those of the functions keep."""

import json
import re

import pytest

from socratic_bench.consuming.queues import WORK_QUEUES
from tests.aws.environment import lint, run_module, synthesize
from tests.aws.test_templates import (
    ALLOWED_WILDCARDS,
    joined,
    listed,
    properties,
    resources,
    statements,
)

SERVICES = ("api", "curator", "judge", "runner")
TOKEN = "ecr:GetAuthorizationToken"
"""AWS lets nobody name a registry when asking for a token of registries."""


@pytest.fixture(scope="session")
def folder(packages, tmp_path_factory):
    return tmp_path_factory.mktemp("container-templates")


@pytest.fixture(scope="session")
def templates(packages, folder):
    return synthesize(
        folder,
        packages=str(packages),
        compute="containers",
        secrets="openai",
        bedrock_models="amazon.nova-lite-v1:0",
    )


@pytest.fixture(scope="session")
def otherwise(packages, tmp_path_factory):
    """With images of somebody else's, and a canary."""
    return synthesize(
        tmp_path_factory.mktemp("otherwise"),
        packages=str(packages),
        compute="containers",
        images="registry.example/{service}:1.2",
        canary="true",
    )


@pytest.fixture(scope="session")
def release(packages):
    return json.loads((packages / "packages.json").read_text())["release"]


def definitions(templates):
    """The definition of each service's tasks, and its container."""
    found = {
        each["Properties"]["Family"].removeprefix("socratic-dev-"): each["Properties"]
        for each in resources(templates, "AWS::ECS::TaskDefinition")
    }
    return {name: (each, *each["ContainerDefinitions"]) for name, each in found.items()}


def environment(container):
    return {each["Name"]: joined(each["Value"]) for each in container["Environment"]}


def policy_of(templates, service, role="Role"):
    [policy] = [
        each
        for each in properties(templates, "AWS::IAM::Policy")
        if each["PolicyName"].startswith(f"{service}task{role}")
    ]
    return {
        (action, joined(resource).rpartition(":")[2])
        for statement in policy["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def test_the_services_are_tasks_and_the_scheduler_is_a_function(templates):
    assert set(definitions(templates)) == set(SERVICES)
    [function] = properties(templates, "AWS::Lambda::Function")
    assert function["FunctionName"] == "socratic-dev-scheduler"
    assert resources(templates, "AWS::Lambda::EventSourceMapping") == []
    assert len(properties(templates, "AWS::Scheduler::Schedule")) == 2


def test_a_task_runs_the_image_of_its_release_without_rights(templates, release):
    for service, (_, container) in definitions(templates).items():
        assert joined(container["Image"]).endswith(f"/socratic-dev-{service}:{release}")
        assert environment(container)["SOCRATIC_RELEASE"] == release
        assert container["ReadonlyRootFilesystem"] is True
        assert container["User"] == "10001:10001"
        assert container["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
        assert container["HealthCheck"]["Command"][-1].endswith("/healthz")


def test_an_image_can_be_given(otherwise):
    images = {container["Image"] for _, container in definitions(otherwise).values()}
    assert images == {f"registry.example/{service}:1.2" for service in SERVICES}
    assert TOKEN not in json.dumps(otherwise)


def test_a_task_knows_the_same_broker_and_store_as_a_function(templates):
    told = {name: environment(container) for name, (_, container) in definitions(templates).items()}
    for service in ("runner", "judge", "curator"):
        assert told[service]["SOCRATIC_BROKER_URL"].startswith("sqs:///socratic-dev?bucket=")
    assert "SOCRATIC_STORE_URL" not in told["judge"]
    assert "SOCRATIC_BROKER_URL" not in told["api"]
    assert told["api"]["SOCRATIC_ONLY_READS"] == "true"
    assert told["curator"]["SOCRATIC_CURATOR_RECONCILES"] == "false"
    secrets = json.loads(told["runner"]["SOCRATIC_ENDPOINT_SECRETS"])
    assert secrets == {"openai": "socratic-dev/endpoints/openai"}


def test_a_runner_ends_its_calls_before_it_is_killed(templates):
    _, container = definitions(templates)["runner"]
    drain = float(environment(container)["SOCRATIC_DRAIN_DEADLINE"])
    assert drain + 10 < container["StopTimeout"] <= 120


def test_definitions_stay_for_a_rollback(templates):
    kept = resources(templates, "AWS::ECS::TaskDefinition")
    assert {(each["DeletionPolicy"], each["UpdateReplacePolicy"]) for each in kept} == {
        ("Retain", "Retain")
    }
    registries = properties(templates, "AWS::ECR::Repository")
    assert {each["RepositoryName"] for each in registries} == {
        f"socratic-dev-{service}" for service in SERVICES
    }
    assert {each["ImageTagMutability"] for each in registries} == {"IMMUTABLE"}
    assert all(each["ImageScanningConfiguration"] == {"ScanOnPush": True} for each in registries)


def test_a_deployment_that_does_not_start_is_taken_back(templates):
    services = properties(templates, "AWS::ECS::Service")
    assert len(services) == len(SERVICES)
    for each in services:
        deployment = each["DeploymentConfiguration"]
        assert deployment["DeploymentCircuitBreaker"] == {"Enable": True, "Rollback": True}
        assert deployment["MinimumHealthyPercent"] == 100


def test_a_canary_watches_the_errors_of_the_new_tasks(otherwise):
    names = {each["AlarmName"] for each in properties(otherwise, "AWS::CloudWatch::Alarm")}
    for each in properties(otherwise, "AWS::ECS::Service"):
        alarms = each["DeploymentConfiguration"]["Alarms"]
        assert (alarms["Enable"], alarms["Rollback"], len(alarms["AlarmNames"])) == (True, True, 1)
    assert {f"socratic-dev-{service}-task-canary" for service in SERVICES} <= names


def test_no_role_may_do_everything_or_to_everything(templates):
    actions = set()
    for statement in statements(templates):
        actions |= set(listed(statement["Action"]))
        for resource in map(joined, listed(statement["Resource"])):
            if "*" in resource and listed(statement["Action"]) != [TOKEN]:
                assert ALLOWED_WILDCARDS.search(resource.rpartition(">")[2]), resource
    assert [each for each in actions if "*" in each] == []


def test_the_judge_reads_one_queue_and_writes_one_and_knows_no_table(templates):
    allowed = policy_of(templates, "judge")
    own = {"socratic-dev-judge-response-recorded", "socratic-dev-judge-response-recorded-dlq"}
    reads = {queue for action, queue in allowed if action == "sqs:ReceiveMessage"}
    assert reads == {"socratic-dev-judge-response-recorded"}
    sends = {queue for action, queue in allowed if action == "sqs:SendMessage"}
    assert sends - own == {"socratic-dev-curator-response-scored"}
    assert [each for each, _ in allowed if each.startswith(("dynamodb:", "secretsmanager:"))] == []


def test_a_task_may_look_up_every_queue_that_it_declares(templates):
    declared = {
        "judge": ("judge-response-recorded", "curator-response-scored"),
        "runner": ("runner-run-requested", "judge-response-recorded", "curator-run-failed"),
        "curator": ("curator-response-scored", "curator-run-failed"),
    }
    assert {name for names in declared.values() for name in names} == {
        work.name for work in WORK_QUEUES
    }
    for service, names in declared.items():
        allowed = policy_of(templates, service)
        for name in names:
            for queue in (name, f"{name}-dlq"):
                assert ("sqs:GetQueueUrl", f"socratic-dev-{queue}") in allowed


def test_only_the_runner_reads_keys_of_models_and_only_the_apis_start_reads_its_keys(templates):
    def able(role, prefix):
        return {
            service
            for service in SERVICES
            for action, _ in policy_of(templates, service, role)
            if action.startswith(prefix)
        }

    assert able("Role", ("secretsmanager:", "bedrock:")) == {"runner"}
    assert able("Start", ("secretsmanager:", "bedrock:", "dynamodb:", "sqs:")) == set()
    assert able("Start", "ssm:") == {"api"}
    assert able("Role", "ssm:") == set()
    _, api = definitions(templates)["api"]
    assert [each["Name"] for each in api["Secrets"]] == ["SOCRATIC_API_KEYS"]


def test_the_api_only_reads_the_store(templates):
    actions = {action for action, _ in policy_of(templates, "api") if "dynamodb" in action}
    assert actions == {
        "dynamodb:BatchGetItem",
        "dynamodb:DescribeTable",
        "dynamodb:GetItem",
        "dynamodb:Query",
    }


def test_nothing_comes_in_but_what_the_http_api_lets_in(templates):
    for group in properties(templates, "AWS::EC2::SecurityGroup"):
        assert "SecurityGroupIngress" not in group
    [way_in] = properties(templates, "AWS::EC2::SecurityGroupIngress")
    assert (way_in["FromPort"], way_in["ToPort"]) == (8000, 8000)
    assert "LinkGroup" in joined(way_in["SourceSecurityGroupId"])
    [integration] = properties(templates, "AWS::ApiGatewayV2::Integration")
    assert integration["ConnectionType"] == "VPC_LINK"
    assert resources(templates, "AWS::ElasticLoadBalancingV2::LoadBalancer") == []
    [stage] = properties(templates, "AWS::ApiGatewayV2::Stage")
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == 50
    _, api = definitions(templates)["api"]
    host = environment(api)["SOCRATIC_ALLOWED_HOSTS"]
    assert re.fullmatch(r"<Http\w+>\.execute-api\.<AWS::Region>\.<AWS::URLSuffix>", host)


def test_the_network_costs_nothing_by_itself(templates):
    assert resources(templates, "AWS::EC2::NatGateway") == []
    endpoints = properties(templates, "AWS::EC2::VPCEndpoint")
    assert {each["VpcEndpointType"] for each in endpoints} == {"Gateway"}
    assert {each["MapPublicIpOnLaunch"] for each in properties(templates, "AWS::EC2::Subnet")} == {
        False
    }


def test_each_task_has_a_log_with_an_end_and_alarms(templates):
    logs = {
        each["LogGroupName"]: each["RetentionInDays"]
        for each in properties(templates, "AWS::Logs::LogGroup")
    }
    alarms = {each["AlarmName"]: each for each in properties(templates, "AWS::CloudWatch::Alarm")}
    for service in SERVICES:
        assert logs[f"/ecs/socratic-dev-{service}"] == 30
        assert f"socratic-dev-{service}-task-errors" in alarms
        down = alarms[f"socratic-dev-{service}-task-down"]
        assert down["TreatMissingData"] == "breaching"
    for alarm in alarms.values():
        assert alarm["AlarmActions"]
        assert "see the runbook" in alarm["AlarmDescription"]


def test_queues_and_table_are_those_of_the_functions(templates, plain_templates):
    for stack in ("Foundation", "Site"):
        assert templates[stack] == plain_templates[stack]
    # One that is named has to keep its logical name where the other compute replaces it.
    for kind in ("AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Route", "AWS::ApiGatewayV2::Stage"):
        ids = [
            {name for name, each in stacks["Api"]["Resources"].items() if each["Type"] == kind}
            for stacks in (templates, plain_templates)
        ]
        assert ids[0] == ids[1] != set()


def test_no_service_depends_on_what_another_stack_exports(templates):
    for name in ("Runner", "Judge", "Curator", "Api"):
        assert "Fn::ImportValue" not in json.dumps(templates[name])


def test_nothing_names_an_account_or_a_region(templates):
    text = json.dumps(templates)
    assert re.findall(r"\b\d{12}\b", text) == []
    assert re.findall(r"\b(?:us|eu|ap|sa|ca)-[a-z]+-\d\b", text) == []


def test_an_unknown_compute_is_refused(packages):
    context = json.dumps({"packages": str(packages), "compute": "containrs"})
    with pytest.raises(AssertionError, match="'containrs' must be one of functions, containers"):
        run_module("socratic_aws.stacks.app", CDK_CONTEXT_JSON=context)


def test_cfn_lint_finds_nothing(templates, folder):
    assert lint(folder, len(templates)) == ""
