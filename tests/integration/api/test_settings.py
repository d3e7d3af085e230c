"""The settings of the API: the sentence about a wrong one names it."""

from __future__ import annotations

import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.errors import InvalidSettings
from socratic_bench.service_settings import load_settings


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SOCRATIC_PORT", "70000"),
        ("SOCRATIC_PORT", "http"),
        ("SOCRATIC_FRESHNESS_MS", "-1"),
        ("SOCRATIC_STORE_TIMEOUT", "0"),
    ],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str):
    monkeypatch.setenv(variable, value)

    with pytest.raises(InvalidSettings, match=variable):
        load_settings(ApiSettings)
