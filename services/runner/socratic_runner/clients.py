"""The models a runner speaks to: one client each, opened when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from socratic_bench.domain.manifest import Experiment, TutorModel
from socratic_bench.domain.response import Usage
from socratic_bench.ports.models import ModelClient

OpenClient = Callable[[TutorModel], ModelClient]


@dataclass(frozen=True, slots=True, eq=False)
class Tutor:
    """A model with its client and the slots for calls to it."""

    model: TutorModel
    client: ModelClient
    slots: AbstractAsyncContextManager[Any]
    """Entered for the time of one call."""

    @property
    def deadline(self) -> float:
        """Seconds that one call may take."""
        return self.model.limits.timeout_seconds

    def cost_nanodollars(self, usage: Usage) -> int | None:
        """What a call cost; None where its price or its tokens are unknown."""
        price, visible = self.model.price, usage.visible_output_tokens
        if price is None or visible is None or usage.input_tokens is None:
            return None
        return price.cost_nanodollars(usage.input_tokens, visible + usage.reasoning_tokens)


class TutorPool:
    """Opens one client per model of an experiment, keeps it, and closes them all."""

    def __init__(self, open_client: OpenClient) -> None:
        self._open_client = open_client
        self._tutors: dict[tuple[str, str], Tutor] = {}

    def tutor(self, experiment: Experiment, model_id: str) -> Tutor:
        """The tutor for a model of an experiment.

        Raises InvalidInput if the model cannot be spoken to, saying why.
        """
        key = (experiment.experiment_id, model_id)
        tutor = self._tutors.get(key)
        if tutor is None:
            model = experiment.manifest.models_by_id[model_id]
            client = self._open_client(model)
            tutor = self._tutors[key] = Tutor(model, client, _slots(model, client))
        return tutor

    async def close(self) -> None:
        """Close every client."""
        tutors, self._tutors = self._tutors, {}
        for tutor in tutors.values():
            await tutor.client.close()


def _slots(model: TutorModel, client: ModelClient) -> AbstractAsyncContextManager[Any]:
    ceilings = [
        ceiling for ceiling in (client.concurrency, model.limits.concurrency) if ceiling is not None
    ]
    return asyncio.Semaphore(min(ceilings)) if ceilings else nullcontext()
