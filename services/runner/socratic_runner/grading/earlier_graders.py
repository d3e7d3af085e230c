"""The gradings of other experiments with the same grader."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment, Grader
from socratic_bench.domain.grading import grading_run_id
from socratic_bench.domain.response import Response
from socratic_bench.planning.reuse import MOST_SOURCES
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.responses import Responses
from socratic_runner.grading.grading_conversation import GradingConversation

FRESH: Final = 30.0
"""Seconds for which the runner remembers the experiments with a grader."""


class EarlierGraders:
    """Finds gradings that another experiment paid for."""

    def __init__(self, experiments: Experiments, stored: Responses) -> None:
        self._experiments = experiments
        self._stored = stored
        self._asked_in: dict[str, tuple[Sequence[str], float]] = {}
        """The experiments with each grader, newest first, and when they were found."""

    async def copies(
        self, experiment: Experiment, grader: Grader, texts: Collection[str]
    ) -> Mapping[str, Response]:
        """Return copies of the gradings of these texts, as far as other experiments have them."""
        if not texts:
            return {}
        own = experiment.experiment_id
        sources = [each for each in await self._sources(grader.key) if each != own]
        names = {grading_run_id(source, text): text for text in texts for source in sources}
        if not names:
            return {}
        found = await self._stored.responses(names)
        graded = {names[run_id]: responses[0] for run_id, responses in found.items()}
        return {
            text: response.model_copy(
                update={
                    "run": GradingConversation.of(experiment, grader, text).run,
                    "adopted_from": response.adopted_from or response.run.run_id,
                }
            )
            for text, response in graded.items()
        }

    async def _sources(self, grader_key: str) -> Sequence[str]:
        now = asyncio.get_running_loop().time()
        known = self._asked_in.get(grader_key)
        if known is not None and now - known[1] < FRESH:
            return known[0]
        found = await self._experiments.asked_in([grader_key], MOST_SOURCES + 1)
        self._asked_in = {
            key: each for key, each in self._asked_in.items() if now - each[1] < FRESH
        }
        self._asked_in[grader_key] = found.get(grader_key, ()), now
        return self._asked_in[grader_key][0]
