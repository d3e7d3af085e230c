"""Plug-ins: the objects that installed distributions offer under an entry point group."""

import sys

import pytest

from socratic_bench.errors import BrokenPlugin
from socratic_bench.plugins import found

GROUP = "socratic_bench.tests"


def test_a_plugin_is_found_by_its_name_and_imported_when_it_is_loaded(install):
    install("mine", GROUP, "one", "mine_module:OFFERED", {"mine_module.py": "OFFERED = 7"})
    plugins = found(GROUP)
    assert list(plugins) == ["one"]
    assert "mine_module" not in sys.modules
    assert plugins["one"].load() == 7
    assert plugins["one"].distribution == "mine 1.2"


def test_a_group_without_plugins_is_empty():
    assert dict(found("socratic_bench.nothing")) == {}


@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        ("mine_module:MISSING", "", "AttributeError"),
        ("absent_module:OFFERED", "", "ModuleNotFoundError: No module named 'absent_module'"),
        ("mine_module:OFFERED", "raise RuntimeError('no luck')", "RuntimeError: no luck"),
    ],
)
def test_a_plugin_that_cannot_be_imported_names_its_distribution(install, value, code, said):
    install("mine", GROUP, "one", value, {"mine_module.py": code})
    with pytest.raises(BrokenPlugin, match=rf"'one' of mine 1\.2: cannot import .*{said}"):
        found(GROUP)["one"].load()


def test_a_name_that_two_distributions_offer_is_refused_with_both(install):
    install("mine", GROUP, "one", "mine_module:OFFERED", {"mine_module.py": "OFFERED = 7"})
    install("other", GROUP, "one", "other_module:OFFERED", {"other_module.py": "OFFERED = 8"})
    with pytest.raises(BrokenPlugin, match=r"mine 1\.2 and other 1\.2: .*uninstall"):
        found(GROUP)["one"].load()
