"""The address names region, namespace, endpoint and bucket, and never credentials."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.brokers.sqs.address import Address, address_of
from socratic_bench.errors import InvalidSettings


@pytest.fixture(autouse=True)
def no_region(monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def test_an_address_may_name_everything():
    found = address_of("sqs://eu-central-1/prod?bucket=my-claims&endpoint=http://127.0.0.1:4566")
    assert found == Address("eu-central-1", "prod", "http://127.0.0.1:4566", "my-claims")
    assert found.named("judge") == "prod-judge"
    assert found.name == "sqs://eu-central-1/prod"


def test_an_address_may_name_nothing(monkeypatch):
    assert address_of("sqs://") == Address(None, "", None, None)
    assert address_of("sqs://").named("judge") == "judge"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert address_of("sqs:///prod").region == "us-east-1"
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert address_of("sqs:///prod").region == "eu-west-1"


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("amqp://localhost/", "does not begin with sqs://"),
        ("sqs://Frankfurt/", "Frankfurt"),
        ("sqs://eu-central-1/prod.one", r"prod\.one"),
        ("sqs://eu-central-1/prod?queue=x", "queue"),
        ("sqs://eu-central-1/prod?endpoint=localhost", "http://"),
        ("sqs://eu-central-1/prod?bucket=My_Bucket", "My_Bucket"),
    ],
)
def test_a_wrong_part_is_named(url, named):
    with pytest.raises(InvalidSettings, match=named):
        address_of(url)


def test_credentials_are_refused_and_not_shown():
    with pytest.raises(InvalidSettings) as refused:
        address_of("sqs://AKIAEXAMPLE:hidden@eu-central-1/prod")
    assert "environment" in str(refused.value)
    assert "hidden" not in str(refused.value)
