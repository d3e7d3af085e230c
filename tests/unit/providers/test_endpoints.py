"""The operator's list decides which key goes to which address."""

from __future__ import annotations

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput, UnlistedEndpoint
from socratic_bench.providers.endpoints import (
    ANYWHERE,
    AWS,
    Endpoint,
    Endpoints,
    KeySource,
)
from socratic_bench.providers.registry import destination

THERE = "https://llm.example.org"
OURS, THEIRS = KeySource(variable="OUR_KEY"), KeySource(variable="THEIR_KEY")
MODEL = TutorModel(id="openai-compatible/m", base_url=f"{THERE}/v1")


def key_for(endpoints: Endpoints, model: TutorModel, key_variable: str | None = None):
    where = destination(model)
    assert where is not None
    return endpoints.key_for(model, where, key_variable)


def listing(*endpoints: Endpoint, only_listed: bool = True) -> Endpoints:
    return Endpoints(endpoints, only_listed=only_listed)


@pytest.mark.parametrize("only_listed", [True, False])
def test_a_key_is_sent_to_the_origin_it_is_listed_for(only_listed):
    endpoints = listing(Endpoint("ours", THERE, OURS), only_listed=only_listed)
    assert key_for(endpoints, MODEL) == OURS
    for other in (f"{THERE}:8443/v1", "http://llm.example.org/v1", f"{THERE}.evil.example/v1"):
        model = MODEL.model_copy(update={"base_url": other})
        if only_listed:
            with pytest.raises(UnlistedEndpoint, match="SOCRATIC_ENDPOINTS"):
                key_for(endpoints, model)
        else:
            assert key_for(endpoints, model) is None


def test_of_several_keys_for_one_origin_the_model_names_one():
    endpoints = listing(Endpoint("ours", THERE, OURS), Endpoint("theirs", THERE, THEIRS))
    with pytest.raises(InvalidInput, match="several keys for https://llm"):
        key_for(endpoints, MODEL)
    assert key_for(endpoints, MODEL.model_copy(update={"endpoint": "theirs"})) == THEIRS


def test_an_endpoint_that_a_model_names_lends_its_key_to_no_other_origin():
    endpoints = listing(
        Endpoint("ours", THERE, OURS), Endpoint("evil", "https://evil.example"), only_listed=False
    )
    model = TutorModel(id="openai/m", base_url="https://evil.example/v1", endpoint="ours")
    with pytest.raises(UnlistedEndpoint, match=r"no endpoint 'ours' with the origin https://evil"):
        key_for(endpoints, model)


def test_a_second_account_of_a_provider_is_named():
    own = "https://api.openai.com"
    endpoints = listing(Endpoint("second", own, OURS))
    assert key_for(endpoints, TutorModel(id="openai/m")) == KeySource(variable="OPENAI_API_KEY")
    assert key_for(endpoints, TutorModel(id="openai/m", endpoint="second")) == OURS


def test_a_providers_key_stays_with_it():
    elsewhere = TutorModel(id="openai/m", base_url=f"{THERE}/v1")
    assert key_for(ANYWHERE, elsewhere) is None
    assert key_for(listing(Endpoint("here", THERE)), elsewhere) is None
    of_another = TutorModel(id="groq/m", base_url="https://api.openai.com/v1")
    with pytest.raises(UnlistedEndpoint):
        key_for(Endpoints(), of_another)


def test_aws_credentials_and_keys_do_not_stand_for_each_other():
    bedrock = TutorModel(id="bedrock/m", base_url=THERE)
    with pytest.raises(UnlistedEndpoint):
        key_for(listing(Endpoint("ours", THERE, OURS)), bedrock)
    signed = listing(Endpoint("ours", THERE, aws=True))
    assert key_for(signed, bedrock) is None
    with pytest.raises(UnlistedEndpoint):
        key_for(signed, MODEL)
    with pytest.raises(UnlistedEndpoint):
        key_for(signed, MODEL.model_copy(update={"endpoint": "ours"}))
    assert key_for(ANYWHERE.allowing([(AWS, THERE)]), bedrock) is None


@pytest.mark.parametrize(
    "base_url",
    [
        "https://bedrock-runtime.eu-west-1.amazonaws.com",
        "https://bedrock-runtime-fips.us-east-1.amazonaws.com/",
        "https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
    ],
)
def test_awss_own_address_may_be_written_out(base_url):
    assert key_for(Endpoints(), TutorModel(id="bedrock/m", base_url=base_url)) is None
