"""The runs that a runner carries out at the moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from socratic_bench.consuming.outcomes import Work
from socratic_bench.domain.response import Response
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_runner.conversations.conversation import Conversation
from socratic_runner.model_pool import CalledModel, grader_in_hand
from socratic_runner.troubles import model_of


@dataclass(slots=True, eq=False)
class RunInHand:
    """A run that is being carried out."""

    work: Work[RunRequested]
    model: CalledModel
    conversation: Conversation
    published: int = 0
    """How many of its responses this runner has published."""

    on_end: asyncio.Event | None = None
    """Set at its end if another request of the run waits for it."""

    @property
    def run_id(self) -> str:
        return self.conversation.run.run_id

    @property
    def model_in_hand(self) -> ModelInHand:
        return model_of(self.conversation.run)

    @property
    def unpublished(self) -> list[Response]:
        """Its responses that this runner has not published yet."""
        return self.conversation.responses[self.published :]


@dataclass(slots=True)
class RunsInHand:
    """Each run in hand, by its id."""

    _runs: dict[str, RunInHand] = field(default_factory=dict)

    def __iter__(self) -> Iterator[RunInHand]:
        return iter(self._runs.values())

    def models(self) -> set[ModelInHand]:
        """The models whose clients these runs use, graders included."""
        graded = (run.conversation for run in self if run.conversation.is_graded)
        graders = {grader_in_hand(each.experiment) for each in graded}
        return {run.model_in_hand for run in self} | graders

    def get(self, run_id: str) -> RunInHand | None:
        """Return the run if it is in hand."""
        return self._runs.get(run_id)

    def take(self, run: RunInHand) -> None:
        """Note that a run is carried out from now on."""
        self._runs[run.run_id] = run

    def forget(self, run: RunInHand) -> None:
        """Note that a run is not carried out any more, and tell the requests that wait for it."""
        if self._runs.get(run.run_id) is run:
            del self._runs[run.run_id]
            if run.on_end is not None:
                run.on_end.set()

    async def end_of(self, run: RunInHand) -> None:
        """Wait until a run is not in hand any more."""
        if self._runs.get(run.run_id) is run:
            run.on_end = run.on_end or asyncio.Event()
            await run.on_end.wait()
