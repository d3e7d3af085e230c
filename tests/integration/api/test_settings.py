"""The settings of the API: named where they are wrong, and described where people look."""

from __future__ import annotations

from pathlib import Path

import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.errors import InvalidSettings
from socratic_bench.service_settings import PREFIX, load_settings

README = Path(__file__).parents[3] / "services" / "api" / "README.md"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SOCRATIC_PORT", "70000"),
        ("SOCRATIC_PORT", "http"),
        ("SOCRATIC_HOST", ""),
        ("SOCRATIC_FRESHNESS_MS", "-1"),
        ("SOCRATIC_STORE_TIMEOUT", "0"),
    ],
)
def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str):
    monkeypatch.setenv(variable, value)

    with pytest.raises(InvalidSettings, match=variable):
        load_settings(ApiSettings)


@pytest.mark.parametrize("field", ApiSettings.model_fields)
def test_every_setting_stands_in_the_readme(field: str):
    assert f"`{PREFIX}{field.upper()}`" in README.read_text()
