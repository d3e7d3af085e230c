"""The promises of a provider's spec.

The tests need two fixtures: `spec`, a ProviderSpec, and `model`, a TutorModel that it accepts.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Never

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.spec import ProviderSpec

UNKNOWN = "an_option_that_no_provider_has"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Never:
        raise AssertionError("a spec uses no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_right_model_is_accepted_again_and_again(
    spec: ProviderSpec, model: TutorModel, tmp_path: Path
) -> None:
    for _ in range(2):
        spec.check(model, tmp_path)


def test_an_unknown_option_is_refused_by_its_name(
    spec: ProviderSpec, model: TutorModel, tmp_path: Path
) -> None:
    wrong = model.model_copy(update={"options": {**model.options, UNKNOWN: 1}})
    with pytest.raises(InvalidInput, match=UNKNOWN) as refused:
        spec.check(wrong, tmp_path)
    assert model.id in str(refused.value)


def test_a_wrong_value_of_an_option_is_refused(
    spec: ProviderSpec, model: TutorModel, tmp_path: Path
) -> None:
    for option in spec.options.model_fields:
        wrong = model.model_copy(update={"options": {**model.options, option: object()}})
        with pytest.raises(InvalidInput, match=option):
            spec.check(wrong, tmp_path)


def test_what_is_said_of_a_model_stays_the_same(
    spec: ProviderSpec, model: TutorModel, tmp_path: Path
) -> None:
    for say in (spec.destination, spec.simulated_latency_ms):
        assert say(model) == say(model)
    assert spec.fingerprint(model, tmp_path) == spec.fingerprint(model, tmp_path)


def test_calls_go_to_an_address_over_http_or_use_no_network(
    spec: ProviderSpec, model: TutorModel
) -> None:
    destination = spec.destination(model)
    if destination is not None:
        assert destination.url.startswith(("http://", "https://"))
        assert not destination.url.endswith("/")
