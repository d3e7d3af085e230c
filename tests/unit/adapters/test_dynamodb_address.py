"""The address of a table, and the errors of AWS in sentences."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from socratic_bench.adapters.stores.dynamodb.clients import TableAddress, explain, parse
from socratic_bench.errors import (
    InvalidSettings,
    StoreBroken,
    StoreError,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)

NAME = "dynamodb://benchmark"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (NAME, TableAddress("benchmark")),
        (f"{NAME}?region=eu-central-1", TableAddress("benchmark", "eu-central-1")),
        (f"{NAME}?bucket=bodies", TableAddress("benchmark", bucket="bodies")),
        (
            f"{NAME}?endpoint=http%3A%2F%2F127.0.0.1%3A4566",
            TableAddress("benchmark", None, "http://127.0.0.1:4566"),
        ),
        (
            f"{NAME}?endpoint=http://127.0.0.1:4566&region=x",
            TableAddress("benchmark", "x", "http://127.0.0.1:4566"),
        ),
    ],
)
def test_an_address_names_the_table_and_perhaps_its_place(url, address):
    assert parse(url) == address
    assert parse(url).name == NAME


@pytest.mark.parametrize(
    "url",
    ["dynamodb://", "dynamodb://ab", f"{NAME}/more", "dynamodb://key:secret@table", f"{NAME}#part"],
)
def test_an_address_of_another_form_is_refused_without_its_secrets(url):
    with pytest.raises(InvalidSettings, match="names no table") as refused:
        parse(url)
    assert "secret" not in str(refused.value)


def test_an_unknown_option_is_named():
    with pytest.raises(InvalidSettings, match="unknown option regoin"):
        parse(f"{NAME}?regoin=eu-central-1")


def answer(code, status=400):
    response = {
        "Error": {"Code": code, "Message": "what AWS says"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "PutItem")


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (answer("ResourceNotFoundException"), StoreBroken, "the deployment makes it"),
        (answer("AccessDeniedException"), StoreNotWritable, "grant it to the role"),
        (answer("NoSuchBucket"), StoreBroken, "no such bucket"),
        (answer("ExpiredTokenException"), StoreNotWritable, "check those of the environment"),
        (answer("ThrottlingException"), StoreUnavailable, "try again later"),
        (answer("TransactionConflictException"), StoreUnavailable, "try again later"),
        (answer("ValidationException"), StoreRefused, "cannot hold"),
        (answer("Whatever", 503), StoreUnavailable, "what AWS says"),
        (answer("Whatever"), StoreError, "what AWS says"),
        (NoCredentialsError(), StoreBroken, "credentials"),
        (EndpointConnectionError(endpoint_url="http://x"), StoreUnavailable, "try again later"),
        (TimeoutError(), StoreUnavailable, "try again later"),
    ],
)
def test_an_error_of_aws_names_the_table_and_the_remedy(error, kind, remedy):
    explained = explain(error, NAME)
    assert type(explained) is kind
    assert str(explained).startswith(f"{NAME}: ")
    assert remedy in str(explained)
