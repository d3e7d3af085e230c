"""Providers of other distributions: found by name, never instead of a built-in one."""

import subprocess
import sys

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import BrokenPlugin, InvalidInput, MissingCredential, UnknownProvider
from socratic_bench.providers.registry import (
    account_scope,
    check_model,
    destination,
    is_free,
    is_reference,
    provider_names,
    simulated_latency_ms,
    spec_of,
)
from socratic_runner.models.registry import check_access, open_client

SPECS = "socratic_bench.providers"
CLIENTS = "socratic_runner.clients"
SPEC = """
from socratic_bench.providers.options import Options, read_options
from socratic_bench.providers.spec import ProviderSpec

class EchoOptions(Options):
    volume: int = 1

SPEC = ProviderSpec(EchoOptions, lambda model, folder: read_options(model, EchoOptions) and None)
"""
CLIENT = """
def check_access(model, access):
    pass

def open_client(model, access):
    return f"a client for {model.id}"
"""
MODEL = TutorModel(id="echo/words")


def test_an_installed_provider_is_checked_and_opened_like_a_built_in_one(install):
    install("spec_dist", SPECS, "echo", "echo_spec:SPEC", {"echo_spec.py": SPEC})
    install("client_dist", CLIENTS, "echo", "echo_client", {"echo_client.py": CLIENT})
    assert "echo" in provider_names()
    assert "echo_spec" not in sys.modules
    check_model(MODEL)
    check_access(MODEL)
    assert str(open_client(MODEL)) == "a client for echo/words"
    assert (destination(MODEL), account_scope(MODEL)) == (None, "echo/words")
    with pytest.raises(InvalidInput, match="unknown option 'loud'; the options are volume"):
        check_model(TutorModel(id="echo/words", options={"loud": True}))


def test_a_provider_without_a_client_says_what_to_install(install):
    install("spec_dist", SPECS, "echo", "echo_spec:SPEC", {"echo_spec.py": SPEC})
    check_model(MODEL)
    with pytest.raises(UnknownProvider, match=rf"no client .* 'echo' in the group {CLIENTS}"):
        check_access(MODEL)


@pytest.mark.parametrize("value", ["echo_spec:EchoOptions", "echo_spec:MISSING"])
def test_a_provider_that_cannot_be_used_names_its_distribution(install, value):
    install("spec_dist", SPECS, "echo", value, {"echo_spec.py": SPEC})
    with pytest.raises(BrokenPlugin, match=r"'echo' of spec_dist 1\.2: (must be a |cannot import)"):
        check_model(MODEL)
    assert account_scope(MODEL) == "echo/words"


def test_a_client_that_cannot_be_used_names_its_distribution(install):
    install("spec_dist", SPECS, "echo", "echo_spec:SPEC", {"echo_spec.py": SPEC})
    install("client_dist", CLIENTS, "echo", "echo_client", {"echo_client.py": "open_client = 1"})
    with pytest.raises(BrokenPlugin, match=r"client_dist 1\.2: needs .* check_access and open_c"):
        open_client(MODEL)


def test_two_distributions_of_one_provider_are_refused_with_both(install):
    install("one_dist", SPECS, "echo", "one_spec:SPEC", {"one_spec.py": SPEC})
    install("other_dist", SPECS, "echo", "other_spec:SPEC", {"other_spec.py": SPEC})
    with pytest.raises(BrokenPlugin, match=r"one_dist 1\.2 and other_dist 1\.2: .*uninstall"):
        check_model(MODEL)


def test_a_distribution_cannot_replace_a_built_in_provider(install):
    install("thief", SPECS, "reference", "thief_module:SPEC", {"thief_module.py": "raise OSError"})
    model = TutorModel(id="reference/socratic")
    check_model(model)
    check_access(model)
    assert provider_names().count("reference") == 1


OPENAI = """
from socratic_bench.providers.built_in import openai_spec
from socratic_bench.providers.built_in import Preset

SPEC = openai_spec(Preset("https://llm.example.org/v1", "EXAMPLE_KEY"))
"""


async def test_a_service_of_openais_format_needs_a_preset_alone(install, monkeypatch):
    monkeypatch.setenv("EXAMPLE_KEY", "a-key")
    client = "socratic_runner.models.openai.chat_completions"
    install("spec_dist", SPECS, "echo", "openai_like:SPEC", {"openai_like.py": OPENAI})
    install("client_dist", CLIENTS, "echo", client, {})
    await open_client(MODEL).close()
    monkeypatch.delenv("EXAMPLE_KEY")
    with pytest.raises(MissingCredential, match="EXAMPLE_KEY"):
        check_access(MODEL)


FACTS = SPEC.replace(
    "and None)",
    "and None, free=True, reference=True, simulated_latency_ms=lambda model: 7)",
)


def test_what_the_spec_says_of_its_models_is_known_wherever_they_are_shown(install):
    assert (is_free(MODEL), is_reference(MODEL), simulated_latency_ms(MODEL)) == (False, False, 0)
    install("spec_dist", SPECS, "echo", "echo_spec:SPEC", {"echo_spec.py": FACTS})
    assert (is_free(MODEL), is_reference(MODEL), simulated_latency_ms(MODEL)) == (True, True, 7)


def test_stored_models_of_a_broken_provider_can_still_be_shown(install):
    install("spec_dist", SPECS, "echo", "absent:SPEC", {})
    assert (is_free(MODEL), is_reference(MODEL), simulated_latency_ms(MODEL)) == (False, False, 0)


@pytest.mark.parametrize(
    ("model_id", "facts"),
    [
        ("reference/socratic", (True, True, 20, False)),
        ("local/smollm2", (True, False, 0, False)),
        ("replay/file.jsonl", (True, False, 0, True)),
        ("ollama/llama3", (False, False, 0, False)),
        ("bedrock/amazon.nova-lite-v1:0", (False, False, 0, False)),
    ],
)
def test_the_facts_of_built_in_providers(model_id, facts):
    model = TutorModel(id=model_id, options={"latency_ms": 20})
    found = (is_free(model), is_reference(model), simulated_latency_ms(model))
    assert (*found, spec_of(model).reads_files) == facts


WITHOUT_METADATA = """
import sys
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.plugins import found
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_runner.models.registry import open_client

load_pack()
for model_id in ("reference/socratic", "ollama/llama3"):
    open_client(TutorModel(id=model_id), endpoints=ANYWHERE)
sys.exit(found.cache_info().misses)
"""


def test_built_in_providers_and_packs_are_found_without_reading_metadata():
    assert subprocess.run([sys.executable, "-c", WITHOUT_METADATA], check=False).returncode == 0
