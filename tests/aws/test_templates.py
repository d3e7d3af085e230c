"""The templates keep the promises of the deployment, and the linters find nothing."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from socratic_bench.adapters.brokers.sqs.address import LAST_RESORT_RECEIVES
from socratic_bench.adapters.stores.dynamodb.items import PK, SK
from socratic_bench.adapters.stores.dynamodb.schema import EXPIRES, TABLE
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from tests.architecture.api_types import openapi_document
from tests.aws.environment import lint, synthesize

ALLOWED_WILDCARDS = re.compile(r"^/socratic-dev-claims/\*$|^/responses/\*$|^:\*$|^/\*$")
"""Ends of resources: the bodies of large messages, large responses, the streams of a log, and
the objects of a bucket that only its own policy names."""

CONTEXT = {
    "secrets": "openai",
    "bedrock_models": "amazon.nova-lite-v1:0",
    "alarm_email": "operator@example.org",
}


@pytest.fixture(scope="session")
def templates(packages, tmp_path_factory):
    return synthesize(tmp_path_factory.mktemp("templates"), packages=str(packages), **CONTEXT)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("with-all")


@pytest.fixture(scope="session")
def with_all(packages, folder):
    """With a canary and an alarm of the calls' cost, too."""
    return synthesize(folder, packages=str(packages), canary="true", daily_call_usd="25", **CONTEXT)


def resources(templates: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [
        resource
        for template in templates.values()
        for resource in template["Resources"].values()
        if resource["Type"] == kind
    ]


def properties(templates: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in resources(templates, kind)]


def joined(value: Any) -> str:
    """A value as text, with its references in angle brackets."""
    match value:
        case {"Fn::Join": [between, parts]}:
            return between.join(map(joined, parts))
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case str():
            return value
    return json.dumps(value)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(templates: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for policy in properties(templates, "AWS::IAM::Policy"):
        yield from policy["PolicyDocument"]["Statement"]


def policy_of(templates, service):
    """The actions of a service's role, with the ends of their resources."""
    [policy] = [
        each
        for each in properties(templates, "AWS::IAM::Policy")
        if each["PolicyName"].startswith(f"{service}functionRole")
    ]
    return {
        (action, joined(resource).rpartition(":")[2])
        for statement in policy["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def test_every_work_queue_has_a_dead_letter_queue_and_an_alarm_for_it(templates):
    queues = {each["QueueName"]: each for each in properties(templates, "AWS::SQS::Queue")}
    alarms = json.dumps(properties(templates, "AWS::CloudWatch::Alarm"))
    for work in WORK_QUEUES:
        name = f"socratic-dev-{work.name}"
        assert queues[name]["RedrivePolicy"]["maxReceiveCount"] == LAST_RESORT_RECEIVES
        target = queues[name]["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        dead = templates["Foundation"]["Resources"][target]["Properties"]
        assert dead["QueueName"] == f"{name}-dlq"
        assert "RedriveAllowPolicy" in dead
        assert f'["{target}", "QueueName"]' in alarms
        assert f"{work.name} has dead letters" in alarms
    assert len(queues) == 2 * len(WORK_QUEUES)


def test_each_broadcast_has_the_topic_that_the_broker_looks_for(templates):
    topics = {each["TopicName"] for each in properties(templates, "AWS::SNS::Topic")}
    assert {f"socratic-dev-{each.replace('.', '-')}" for each in BROADCASTS} <= topics


def test_a_message_stays_invisible_for_six_timeouts_of_its_function(templates):
    queues = {each["QueueName"]: each for each in properties(templates, "AWS::SQS::Queue")}
    timeouts = {
        each["FunctionName"]: each["Timeout"]
        for each in properties(templates, "AWS::Lambda::Function")
    }
    assert timeouts["socratic-dev-runner"] <= 300
    for work in WORK_QUEUES:
        service = work.name.partition("-")[0]
        visible = queues[f"socratic-dev-{work.name}"]["VisibilityTimeout"]
        assert visible >= 6 * timeouts[f"socratic-dev-{service}"]


def test_each_queue_feeds_its_function_in_part_and_with_a_limit(templates):
    sources = properties(templates, "AWS::Lambda::EventSourceMapping")
    assert len(sources) == len(WORK_QUEUES)
    for each in sources:
        assert each["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert each["ScalingConfig"]["MaximumConcurrency"] >= 2
        assert "Live" in joined(each["FunctionName"])


def test_no_role_may_do_everything_or_to_everything(templates):
    actions, found = set(), set()
    for statement in statements(templates):
        actions |= set(listed(statement["Action"]))
        for resource in map(joined, listed(statement["Resource"])):
            if "*" in resource:
                end = resource[resource.index("*") - 1 :]
                found.add(resource)
                assert ALLOWED_WILDCARDS.search(resource.rpartition(">")[2]), (resource, end)
    assert actions
    assert [each for each in actions if "*" in each] == []


def test_the_judge_reads_one_queue_and_writes_one_and_knows_no_table(templates):
    allowed = policy_of(templates, "judge")
    reads = {queue for action, queue in allowed if action == "sqs:ReceiveMessage"}
    assert reads == {"socratic-dev-judge-response-recorded"}
    sends = {queue for action, queue in allowed if action == "sqs:SendMessage"}
    own = {"socratic-dev-judge-response-recorded", "socratic-dev-judge-response-recorded-dlq"}
    assert sends - own == {"socratic-dev-curator-response-scored"}
    assert [each for each, _ in allowed if each.startswith(("dynamodb:", "secretsmanager:"))] == []


def test_only_the_runner_reads_keys_and_calls_models(templates):
    able = {
        service
        for service in ("runner", "judge", "curator", "scheduler", "api")
        for action, _ in policy_of(templates, service)
        if action.startswith(("secretsmanager:", "bedrock:"))
    }
    assert able == {"runner"}
    runner = policy_of(templates, "runner")
    secrets = {name for action, name in runner if action == "secretsmanager:GetSecretValue"}
    assert secrets == {"socratic-dev/endpoints/openai-??????"}


def test_the_api_submits_and_puts_dead_letters_back_and_consumes_no_queue(templates):
    allowed = policy_of(templates, "api")
    work = {f"socratic-dev-{each.name}" for each in WORK_QUEUES}
    letters = {f"{name}-dlq" for name in work}

    def resources_of(action: str) -> set[str]:
        return {resource for each, resource in allowed if each == action}

    assert resources_of("sqs:SendMessage") == work | letters
    assert resources_of("sqs:ReceiveMessage") == resources_of("sqs:DeleteMessage") == letters
    assert resources_of("dynamodb:PutItem") == {"table/socratic-dev-store"}
    topics = {f"socratic-dev-{each.replace('.', '-')}" for each in BROADCASTS}
    assert resources_of("sns:CreateTopic") == topics
    # What it does is on behalf of somebody with a key, and never a call of a model.
    services = {action.partition(":")[0] for action, _ in allowed}
    assert services <= {"dynamodb", "logs", "s3", "sns", "sqs", "ssm"}
    assert resources_of("sns:Publish") == set()


def test_services_with_a_store_may_list_the_bucket_so_that_s3_tells_what_is_gone(templates):
    """S3 refuses others: a response deleted meanwhile would look like a missing right."""
    able = {
        (service, "*" in resource)
        for service in ("runner", "judge", "curator", "scheduler", "api")
        for action, resource in policy_of(templates, service)
        if action == "s3:ListBucket"
    }
    assert able == {(service, False) for service in ("runner", "curator", "scheduler", "api")}


def test_the_table_can_be_restored_and_is_kept(templates):
    [table] = resources(templates, "AWS::DynamoDB::GlobalTable")
    [replica] = table["Properties"]["Replicas"]
    assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert replica["DeletionProtectionEnabled"] is True
    assert table["DeletionPolicy"] == "Retain"
    assert table["Properties"]["BillingMode"] == TABLE["BillingMode"]
    assert table["Properties"]["TimeToLiveSpecification"]["AttributeName"] == EXPIRES


def test_the_table_is_the_one_that_the_store_reads(templates):
    [table] = properties(templates, "AWS::DynamoDB::GlobalTable")
    for part in ("KeySchema", "AttributeDefinitions"):
        assert sorted(table[part], key=str) == sorted(TABLE[part], key=str)
    assert "GlobalSecondaryIndexes" not in table
    assert {each["AttributeName"] for each in table["KeySchema"]} == {PK, SK}


def test_no_bucket_is_public_or_without_encryption_or_versions(templates):
    buckets = resources(templates, "AWS::S3::Bucket")
    assert len(buckets) == 2
    for bucket in buckets:
        told = bucket["Properties"]
        assert all(told["PublicAccessBlockConfiguration"].values())
        assert "BucketEncryption" in told
        assert told["VersioningConfiguration"] == {"Status": "Enabled"}
        assert bucket["DeletionPolicy"] == "Retain"


def test_queues_are_encrypted_and_refuse_plain_http(templates):
    assert all(each["SqsManagedSseEnabled"] for each in properties(templates, "AWS::SQS::Queue"))
    refused = [
        statement
        for policy in properties(templates, "AWS::SQS::QueuePolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
    ]
    assert len(refused) == 2 * len(WORK_QUEUES)


def test_versions_and_layers_stay_for_a_rollback(templates):
    for kind in ("AWS::Lambda::Version", "AWS::Lambda::LayerVersion"):
        kept = resources(templates, kind)
        assert len(kept) == 5
        assert {each["DeletionPolicy"] for each in kept} == {"Retain"}


def test_each_function_has_an_alias_a_log_with_an_end_and_alarms(templates):
    functions = {each["FunctionName"] for each in properties(templates, "AWS::Lambda::Function")}
    assert functions == {
        f"socratic-dev-{name}" for name in ("api", "curator", "judge", "runner", "scheduler")
    }
    assert {each["Name"] for each in properties(templates, "AWS::Lambda::Alias")} == {"live"}
    logs = {
        each["LogGroupName"]: each["RetentionInDays"]
        for each in properties(templates, "AWS::Logs::LogGroup")
    }
    alarms = {each["AlarmName"] for each in properties(templates, "AWS::CloudWatch::Alarm")}
    for function in functions:
        assert logs[f"/aws/lambda/{function}"] == 30
    errors = {each for each in alarms if each.endswith("-errors")}
    assert errors == {f"socratic-dev-{name}-errors" for name in ("api", "runner", "scheduler")}
    # The messages of the others wait while they fail, and are watched.
    oldest = {f"socratic-dev-{work.name}-oldest" for work in WORK_QUEUES}
    assert oldest | {"socratic-dev-throttles"} <= alarms
    assert "socratic-dev-call-cost" not in alarms


def test_the_cost_of_a_day_s_calls_has_an_alarm_where_it_is_asked_for(with_all):
    [alarm] = [
        each
        for each in properties(with_all, "AWS::CloudWatch::Alarm")
        if each["AlarmName"] == "socratic-dev-call-cost"
    ]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("SocraticBench", "CallUSD")
    assert {each["Name"]: each["Value"] for each in alarm["Dimensions"]} == {
        "Stage": "dev",
        "Service": "runner",
    }
    assert (alarm["Threshold"], alarm["Period"], alarm["Statistic"]) == (25, 86_400, "Sum")
    assert "see the runbook" in alarm["AlarmDescription"]


def test_every_alarm_tells_the_topic_and_names_what_to_do(templates):
    for alarm in properties(templates, "AWS::CloudWatch::Alarm"):
        assert alarm["AlarmActions"]
        assert "see the runbook" in alarm["AlarmDescription"]


def test_the_week_is_planned_on_monday_and_lost_work_looked_for_each_minute(templates):
    schedules = {
        each["Name"]: (each["ScheduleExpression"], json.loads(each["Target"]["Input"]))
        for each in properties(templates, "AWS::Scheduler::Schedule")
    }
    assert schedules == {
        "socratic-dev-plan": ("cron(0 3 ? * MON *)", {"task": "plan"}),
        "socratic-dev-reconcile": ("rate(1 minute)", {"task": "reconcile"}),
    }


def test_the_api_is_throttled(templates):
    [stage] = properties(templates, "AWS::ApiGatewayV2::Stage")
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == 50
    assert "sourceIp" not in stage["AccessLogSettings"]["Format"]


def test_no_service_depends_on_what_another_stack_exports(templates):
    for name in ("Runner", "Judge", "Curator", "Api"):
        assert "Fn::ImportValue" not in json.dumps(templates[name])


def test_nothing_names_an_account_or_a_region(templates):
    text = json.dumps(templates)
    assert re.findall(r"\b\d{12}\b", text) == []
    assert re.findall(r"\b(?:us|eu|ap|sa|ca)-[a-z]+-\d\b", text) == []


def test_cfn_lint_finds_nothing(with_all, folder):
    assert lint(folder, len(with_all)) == ""


def test_a_canary_falls_back_within_its_five_minutes(with_all):
    groups = properties(with_all, "AWS::CodeDeploy::DeploymentGroup")
    aliases = resources(with_all, "AWS::Lambda::Alias")
    assert len(groups) == len(aliases) == 5
    assert all("CodeDeployLambdaAliasUpdate" in each["UpdatePolicy"] for each in aliases)
    alarms = {
        name: resource["Properties"]
        for template in with_all.values()
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }
    for group in groups:
        assert group["DeploymentConfigName"].endswith("LambdaCanary10Percent5Minutes")
        assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
        [alarm] = [alarms[each["Name"]["Ref"]] for each in group["AlarmConfiguration"]["Alarms"]]
        assert alarm["Period"] * alarm["DatapointsToAlarm"] < 300
        assert "see the runbook" in alarm["AlarmDescription"]


async def test_cloudfront_leads_the_paths_of_the_api_to_it_and_those_of_pages_to_files(
    templates: dict[str, Any],
) -> None:
    [distribution] = properties(templates, "AWS::CloudFront::Distribution")
    config = distribution["DistributionConfig"]
    patterns = [f"/{each['PathPattern']}" for each in config["CacheBehaviors"]]
    paths = (await openapi_document())["paths"]
    files = {path for path in paths if path.startswith("/assets/") or path.endswith(".html")}

    led = {path for path in paths if any(fnmatchcase(path, each) for each in patterns)}

    # The metrics are those of one process, and the first page is the bucket's.
    assert led == set(paths) - files - {"/", "/metrics"}
