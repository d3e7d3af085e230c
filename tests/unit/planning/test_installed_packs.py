"""Scenario packs of other distributions: found by name, never instead of a built-in one."""

import re

import pytest

from socratic_bench.planning.config_file.scenario_selection import load_pack
from tests.unit.planning.catalogue import config_of, mistakes_of

PACK = """
pack: debts
version: 1
scenarios:
- {id: ethical-debt, dimension: ethical, prompt: May I read her diary?}
"""
PACKS = "socratic_bench.packs"
CONFIG = "models: [reference/x]\nscenarios: debts"


def mistakes(install, content=PACK):
    files = {"my_packs/__init__.py": "", "my_packs/debts.yaml": content}
    install("pack_dist", PACKS, "debts", "my_packs", files)
    return mistakes_of(CONFIG)


def test_a_configuration_can_name_an_installed_pack(install):
    assert mistakes(install) == []
    assert [scenario.id for scenario in config_of(CONFIG).manifest.scenarios] == ["ethical-debt"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PACK.replace("pack: debts", "pack: loans"), "needs `pack: debts`"),
        (PACK + "- {id: ethical-debt, dimension: ethical, prompt: Why?}\n", "a unique id"),
        (
            PACK.replace("version: 1", "version: 0"),
            r"cannot read debts.yaml .*: version: must be 1 or more, not 0$",
        ),
        (PACK.replace("pack: debts", "pack: ["), "cannot read debts.yaml of its package"),
    ],
)
def test_a_pack_that_cannot_be_used_is_a_mistake_that_names_its_distribution(
    install, content, said
):
    mistake = "\n".join(mistakes(install, content))
    assert mistake.startswith(
        "benchmark.yaml line 2, scenarios: socratic_bench.packs 'debts' of pack_dist 1.2"
    )
    assert re.search(said, mistake)


def test_a_distribution_cannot_replace_a_built_in_pack(install):
    install("thief", PACKS, "socratic-15", "absent", {})
    assert len(load_pack("socratic-15")) == 15
