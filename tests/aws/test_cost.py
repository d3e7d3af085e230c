"""The runbook's cost follows from the templates, and stays under a dollar a month."""

import json
import re

import pytest

from socratic_bench.consuming.queues import WORK_QUEUES
from tests.aws.environment import ROOT

RUNBOOK = ROOT / "docs" / "how-to" / "deploy-aws.md"
MINUTES = 43_800
"""Of a month."""

RUNS = 4_875
MILLION = 1_000_000
GB_SECOND, INVOCATION, SQS_REQUEST = 0.0000133, 0.0000002, 0.40 / MILLION
READ_UNIT, WRITE_UNIT = 0.125 / MILLION, 0.625 / MILLION
ALARM, METRIC = 0.10, 0.30


@pytest.fixture(scope="module")
def counted(plain_templates):
    """The number of resources of each kind in all templates."""
    kinds = [
        resource["Type"].removeprefix("AWS::")
        for template in plain_templates.values()
        for resource in template["Resources"].values()
    ]
    return {kind: kinds.count(kind) for kind in set(kinds)}


def table():
    """The rows of the runbook's first table of costs: with and without what is free."""
    text = RUNBOOK.read_text().partition("## What it costs")[2].partition("### With containers")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return {
        row[0].strip(" *"): (float(row[2].strip(" *")), float(row[3].strip(" *")))
        for row in rows
        if len(row) == 4 and re.search(r"\d", row[2])
    }


def memory_of(templates, function):
    [found] = [
        resource["Properties"]["MemorySize"]
        for template in templates.values()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
        and resource["Properties"]["FunctionName"].endswith(f"-{function}")
    ]
    return found / 1024


def test_what_depends_on_the_templates_is_what_the_templates_have(plain_templates, counted):
    rows = table()
    assert counted["Lambda::EventSourceMapping"] == len(WORK_QUEUES)
    polls = counted["Lambda::EventSourceMapping"] * 5 * 3 * MINUTES
    alarms = counted["CloudWatch::Alarm"]
    looks = MINUTES
    assert '"rate(1 minute)"' in json.dumps(plain_templates)
    scheduler = looks * (0.2 * memory_of(plain_templates, "scheduler") * GB_SECOND + INVOCATION)
    store = looks * READ_UNIT + looks / 10 * (6 * WRITE_UNIT + 10 * READ_UNIT)
    runner = 325 * 4.33 * 15 * memory_of(plain_templates, "runner") * GB_SECOND
    facts = RUNS * 12 * WRITE_UNIT + RUNS * 4 / MILLION * 0.45
    expected = {
        "idle polling of SQS": ((polls - MILLION) * SQS_REQUEST, polls * SQS_REQUEST),
        "alarms": (max(0, alarms - 10) * ALARM, alarms * ALARM),
        "metrics": (0, 10 * METRIC),
        "scheduler": (0, scheduler),
        "scheduler's looks at the store": (store, store),
        "runner": (0, runner),
        "store": (facts, facts),
    }
    for part, costs in expected.items():
        assert rows[part] == pytest.approx(costs, abs=0.005), part


def test_the_sums_are_those_of_the_rows_and_the_first_is_under_a_dollar():
    rows = table()
    sums = rows.pop("sum")
    for column in (0, 1):
        assert sums[column] == pytest.approx(sum(each[column] for each in rows.values()))
    assert sums[0] < 1


def test_nothing_that_is_billed_by_the_hour_is_in_the_templates(counted):
    billed = ("EC2::NatGateway", "EC2::VPCEndpoint", "ElasticLoadBalancingV2::LoadBalancer")
    for kind in (*billed, "ECS::Service", "SecretsManager::Secret", "KMS::Key", "WAFv2::WebACL"):
        assert kind not in counted
