"""Gives the responses of runs their gradings: stored ones, adopted ones, and new ones by calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from structlog.contextvars import bound_contextvars

from socratic_bench.domain.experiment.manifest import Experiment, Grader
from socratic_bench.domain.grading import INSTRUCTION, Grading, grade_of, grading_run_id, message_of
from socratic_bench.domain.identifiers import sampling_seed
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.errors import InvalidInput
from socratic_bench.planning.reuse import MOST_SOURCES
from socratic_bench.ports.models import Question, Reply
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.scoring.exchange import Status, effective_status
from socratic_bench.scoring.profiles import profile_named
from socratic_runner.conversations.asking import log_fields
from socratic_runner.conversations.call_outcomes import not_callable
from socratic_runner.conversations.conversation import Conversation, Ending, TurnFailed
from socratic_runner.conversations.conversation_runner import ConversationRunner, nothing
from socratic_runner.leases.recorder import Recorded
from socratic_runner.model_pool import CalledModel, ModelPool, grader_in_hand

DIMENSION: Final = "grading"
"""Instead of a scenario's dimension."""


@dataclass(slots=True, eq=False)
class GradingConversation(Conversation):
    """A run whose question is to grade one text."""

    grader: Grader = field(kw_only=True)
    text: str = field(kw_only=True)

    @classmethod
    def of(cls, experiment: Experiment, grader: Grader, text: str) -> GradingConversation:
        """Return the conversation that grades a text for an experiment."""
        run = Run(
            run_id=grading_run_id(experiment.experiment_id, text),
            experiment_id=experiment.experiment_id,
            model_id=grader.model.id,
            scenario_id=grader.rubric,
            dimension=DIMENSION,
            repeat=1,
        )
        return cls(run, experiment, grader=grader, text=text)

    def question(self) -> Question:
        """The rubric and the text."""
        return Question(
            run=self.run,
            turn=1,
            system_prompt=INSTRUCTION,
            student_message=message_of(self.text),
            earlier_turns=(),
            parameters=self.grader.parameters,
            seed=sampling_seed(self.grader.key, 1, 1),
        )

    def response(
        self, question: Question, reply: Reply, model: CalledModel, now: datetime
    ) -> Response:
        """The grading to record for a reply."""
        return Response(
            run=self.run,
            turn=1,
            last_turn=True,
            profile=self.grader.rubric,
            student_message=question.student_message,
            text=reply.text,
            status=effective_status(reply.status, reply.text),
            error_kind=reply.error_kind,
            usage=reply.usage,
            latency_ms=reply.latency_ms,
            first_token_ms=reply.first_token_ms,
            cost_nanodollars=model.cost_nanodollars(reply.usage),
            stop_reason=reply.stop_reason,
            model_version=reply.model_version,
            routed_to=reply.routed_to,
            attempts=self.attempts,
            recorded_at=now,
        )


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


class _Outcome(NamedTuple):
    """The end of one grading, for those who waited for it."""

    experiment_id: str
    result: Response | Ending


class ResponseGrader:
    """Grades responses that have a score, for experiments with a grader."""

    def __init__(
        self,
        stored: Responses,
        earlier: EarlierGraders,
        pool: ModelPool,
        runner: ConversationRunner,
    ) -> None:
        self._stored = stored
        self._earlier = earlier
        self._pool = pool
        self._runner = runner
        self._in_hand: dict[tuple[str, str], asyncio.Future[_Outcome | None]] = {}
        """The gradings under way, by grader and text."""

        self._deadlines = Counter[float]()
        """How many calls with each deadline may be in flight."""

        self._called = Counter[ModelInHand]()
        """How many calls of each grader may be in flight."""

    def longest(self) -> float:
        """Seconds that the calls in flight may take."""
        return max(+self._deadlines, default=0.0)

    def models(self) -> set[ModelInHand]:
        """The graders whose clients the calls in flight use."""
        return set(self._called)

    async def grade(self, conversation: Conversation) -> Ending | None:
        """Add the gradings to the responses of a run, or return what stopped it.

        The responses of an experiment without a grader stay as they are, and so do those that
        have no score. A response whose grading failed gets the class of the failure.
        """
        experiment, grader = conversation.experiment, conversation.manifest.use_llm_exploratory
        if grader is None:
            return None
        responses = conversation.responses
        due = [number for number, each in enumerate(responses) if _needs_grading(each)]
        if not due:
            return None
        known = await self._known(experiment, grader, [responses[number].text for number in due])
        for number in due:
            response = responses[number]
            result = known.get(response.text) or await self._graded(
                experiment, grader, response.text
            )
            if not isinstance(result, Response | TurnFailed):
                return result
            responses[number] = response.model_copy(update={"grading": _grading_of(result)})
        return None

    async def _known(
        self, experiment: Experiment, grader: Grader, texts: Sequence[str]
    ) -> Mapping[str, Response]:
        """Return the stored gradings of texts; adopts those of earlier experiments."""
        names = {grading_run_id(experiment.experiment_id, text): text for text in texts}
        stored = await self._stored.responses(names)
        known = {names[run_id]: found[0] for run_id, found in stored.items()}
        missing = [text for text in names.values() if text not in known]
        copies = await self._earlier.copies(experiment, grader, missing)
        if copies:
            adopted = await self._runner.recorder.record(
                [Recorded(copy, None) for copy in copies.values()]
            )
            known |= dict(zip(copies, adopted, strict=True))
        return known

    async def _graded(self, experiment: Experiment, grader: Grader, text: str) -> Response | Ending:
        """Grade a text, once at a time in this process: others wait for the outcome."""
        key = grader.key, text
        while (running := self._in_hand.get(key)) is not None:
            outcome = await asyncio.shield(running)
            if outcome is not None and outcome.experiment_id == experiment.experiment_id:
                return outcome.result
            if known := await self._known(experiment, grader, [text]):
                return known[text]
        future = self._in_hand[key] = asyncio.get_running_loop().create_future()
        outcome = None
        try:
            result = await self._call(experiment, grader, text)
            outcome = _Outcome(experiment.experiment_id, result)
            return result
        finally:
            del self._in_hand[key]
            future.set_result(outcome)

    async def _call(self, experiment: Experiment, grader: Grader, text: str) -> Response | Ending:
        conversation = GradingConversation.of(experiment, grader, text)
        try:
            model = self._pool.grader(experiment, grader)
        except InvalidInput as error:
            failure = not_callable(error)
            self._runner.troubles.failed(conversation.run, failure, 0, 0, None)
            return TurnFailed(1, failure, 0)
        with (
            self._calling(grader_in_hand(experiment), model.deadline),
            # The log fields of the graded run come back afterwards.
            bound_contextvars(**log_fields(conversation.question())),
        ):
            await self._runner.run(model, conversation, nothing)
        return conversation.ended_by or conversation.responses[0]

    @contextmanager
    def _calling(self, key: ModelInHand, deadline: float) -> Iterator[None]:
        self._deadlines[deadline] += 1
        self._called[key] += 1
        try:
            yield
        finally:
            self._deadlines[deadline] -= 1
            self._called[key] -= 1
            if not self._called[key]:
                del self._called[key]


def _needs_grading(response: Response) -> bool:
    """Whether a response has a score, and no grading yet."""
    if response.grading is not None or response.status is Status.EMPTY:
        return False
    profile = profile_named(response.profile)
    return profile.may_score(response.status, response.usage.visible_output_tokens)


def _grading_of(result: Response | TurnFailed) -> Grading:
    if isinstance(result, TurnFailed):
        return Grading(score=None, failure=result.failure.kind)
    return Grading(score=grade_of(result.text))
