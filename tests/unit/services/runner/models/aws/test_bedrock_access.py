"""Models on Bedrock by their ids and options, and their mistakes before any request."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput, MissingCredential, MissingExtra
from socratic_bench.providers.registry import check_model, destination, fingerprint
from socratic_runner.models.aws.access import region_of
from socratic_runner.models.registry import check_access, open_client

NAME = "bedrock/amazon.nova-lite-v1:0"
MODEL = TutorModel(id=NAME, options={"region": "eu-west-1"})
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI"}


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


WRONG = [
    ({"options": {"regoin": "us-east-1"}}, r"unknown option 'regoin'; .* region, stream"),
    ({"options": {"stream": "yes"}}, "option stream: must be `true` or `false`"),
    ({"options": {"omit": ["max_tokens"]}}, "option omit.0: .* 'temperature' or 'top_p'"),
    ({"options": {"additional_model_request_fields": []}}, "additional_model_request_fields: "),
    ({"base_url": "ftp://127.0.0.1"}, "base_url must begin with http"),
    ({"base_url": "https://vpce.example/?secret=1"}, "base_url holds a query"),
    ({"base_url": "https://"}, "base_url "),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_a_wrong_model_is_refused_early_and_late_in_the_same_words(fields, message):
    model = TutorModel(**{"id": NAME, **fields})
    with pytest.raises(InvalidInput, match=message) as early:
        check_model(model)
    with pytest.raises(InvalidInput) as late:
        open_client(model)
    assert str(early.value) == str(late.value)
    assert NAME in str(early.value)


def test_a_password_in_a_base_url_is_refused_and_not_repeated():
    model = TutorModel(id=NAME, base_url="https://somebody:hunter2@vpce.example")
    with pytest.raises(InvalidInput, match="holds a user or a password") as refusal:
        check_model(model)
    assert "hunter2" not in str(refusal.value)
    assert "somebody" not in str(refusal.value)


def test_an_endpoint_of_ones_own_is_taken_as_it_is():
    where = destination(TutorModel(id=NAME, base_url="http://[::1]:80/x/"))
    assert (where.url, where.own) == ("http://[::1]:80/x", False)
    assert destination(TutorModel(id=NAME)) is None


ARN = TutorModel(id="bedrock/arn:aws:bedrock:eu-west-3:123456789012:inference-profile/eu.x.y-v1:0")


def test_the_region_is_the_options_then_the_arns_then_the_environments_then_the_profiles(
    monkeypatch, tmp_path
):
    model = TutorModel(id=NAME)
    (tmp_path / "config").write_text(
        "[default]\nregion = sa-east-1\n[profile other]\nregion = af-south-1\n"
    )
    assert region_of(model, None) == "sa-east-1"
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert region_of(model, None) == "af-south-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-1")
    assert region_of(model, None) == "us-west-1"
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert region_of(model, None) == "us-west-2"
    assert region_of(ARN, None) == "eu-west-3"
    assert region_of(ARN, "eu-north-1") == "eu-north-1"


def test_without_a_region_it_is_said_how_to_name_one():
    with pytest.raises(InvalidInput, match=r"set AWS_REGION .*, or the option region"):
        region_of(TutorModel(id=NAME), None)


@pytest.mark.parametrize("region", ["us east", "evil.example/?", "us-east-1\n", "USA", "-", "us"])
def test_a_region_that_could_lead_elsewhere_is_refused(region, monkeypatch):
    with pytest.raises(InvalidInput, match="is not an AWS region"):
        region_of(TutorModel(id=NAME), region)


@pytest.mark.parametrize(
    "environment",
    [
        KEYS,
        {"AWS_BEARER_TOKEN_BEDROCK": "a-key"},
        {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/role"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/x"},
        {"AWS_EC2_METADATA_DISABLED": "false"},  # there may be a role of the instance
    ],
    ids=lambda environment: next(iter(environment)),
)
def test_credentials_that_may_be_there_are_not_looked_for(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    check_access(MODEL)
    open_client(MODEL)


@pytest.mark.parametrize(
    "profile",
    [
        "aws_access_key_id = AKIA\naws_secret_access_key = x",
        "credential_process = /usr/bin/vault",
        "sso_session = company",
        "role_arn = arn:aws:iam::1:role/x\nsource_profile = default",
    ],
)
def test_a_profile_that_leads_to_credentials_will_do(profile, monkeypatch, tmp_path):
    (tmp_path / "config").write_text(f"[profile work]\nregion = us-east-1\n{profile}\n")
    with pytest.raises(MissingCredential):
        check_access(MODEL)
    monkeypatch.setenv("AWS_PROFILE", "work")
    check_access(MODEL)


def test_no_credentials_anywhere_are_missed_early(tmp_path):
    (tmp_path / "config").write_text("[default]\nregion = us-east-1\noutput = json\n")
    for attempt in (check_access, open_client):
        with pytest.raises(
            MissingCredential, match=r"no AWS credentials; set AWS_ACCESS_KEY_ID .* AWS_PROFILE in"
        ):
            attempt(MODEL)


def test_half_a_key_is_none(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["AWS_ACCESS_KEY_ID"])
    with pytest.raises(MissingCredential, match="AWS_SECRET_ACCESS_KEY is not; set both") as error:
        check_access(MODEL)
    assert KEYS["AWS_ACCESS_KEY_ID"] not in str(error.value)


def test_a_profile_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "elsewhere")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MissingCredential, match=r"profile \(elsewhere\) could not be found"):
        check_access(MODEL)


def test_without_the_library_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiobotocore", None)
    check_model(MODEL)
    with pytest.raises(
        MissingExtra, match=r"aiobotocore.*pip install 'socratic-ai-bench\[bedrock\]'"
    ):
        check_access(MODEL)


def test_no_file_decides_about_the_responses():
    assert fingerprint(MODEL) is None
