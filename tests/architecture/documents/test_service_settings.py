"""The table of settings in each service's README is the one that the code has."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from socratic_api.settings import ApiSettings
from socratic_bench.service_settings import PREFIX
from socratic_curator.settings import CuratorProcessSettings
from socratic_judge.settings import JudgeProcessSettings
from socratic_runner.settings import RunnerProcessSettings

SERVICES = Path(__file__).parents[3] / "services"
SETTINGS = {
    "api": ApiSettings,
    "curator": CuratorProcessSettings,
    "judge": JudgeProcessSettings,
    "runner": RunnerProcessSettings,
}
ROW = re.compile(r"^\| `(SOCRATIC_\w+)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)


def shown(default: Any) -> str:
    """A default as the tables write it."""
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if isinstance(default, bool):
        default = str(default).lower()
    if isinstance(default, int | float):
        return f"{default:g}"
    return f"`{default}`" if default else "none"


@pytest.mark.parametrize(("service", "settings"), SETTINGS.items())
def test_the_readme_lists_every_setting_with_its_default_and_no_other(service, settings):
    rows = ROW.findall((SERVICES / service / "README.md").read_text())
    in_code = {
        f"{PREFIX}{name.upper()}": "needed" if field.is_required() else shown(field.default)
        for name, field in settings.model_fields.items()
    }
    assert dict(rows) == in_code
    assert len(rows) == len(in_code)
