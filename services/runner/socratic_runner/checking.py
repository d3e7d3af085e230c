"""Calls each model once before a benchmark, on the path of a run's calls, without a store.

Like a run, a check gets a permit from the model's limiter, keeps the deadline of a call, and uses
the same client. It takes no lease, stores nothing, and retries nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from structlog.contextvars import bound_contextvars

from socratic_bench.concurrency.deadlines import ThawingTimeout
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.money import most_a_call_costs, tokens_at_most
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.domain.student import INSTRUCTION as STUDENT_INSTRUCTION
from socratic_bench.errors import InvalidInput, ModelCallFailed
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.models import Reply
from socratic_runner.conversations.asking import ask, log_fields
from socratic_runner.conversations.call_outcomes import UNOBSERVED, not_callable
from socratic_runner.conversations.conversation import Conversation
from socratic_runner.conversations.response_grader import GradingConversation
from socratic_runner.conversations.student_player import StudentConversation
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.model_pool import CalledModel, ModelPool, OpenClient
from socratic_runner.settings import RunnerSettings


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of the check of one model."""

    model: TutorModel
    result: Response | ModelCallFailed
    """The response as a run would store it."""

    seconds: float
    is_tutor: bool = True
    """False for the grader, and for the model that plays the student."""


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Asks the models of an experiment the first turn of its first scenario; a student's model says
    the next message.
    """

    experiment: Experiment
    pool: ModelPool
    clock: Clock

    async def ask_all(self) -> Sequence[Checked]:
        """Ask every model once, side by side, and then the others for what follows an answer."""
        experiment, manifest = self.experiment, self.experiment.manifest
        async with asyncio.TaskGroup() as tasks:
            asking = [
                tasks.create_task(
                    self._ask(
                        manifest.models_by_id[run.model_id],
                        partial(self.pool.model, experiment, run.model_id),
                        Conversation(run, experiment),
                    )
                )
                for run in _first_runs(experiment)
            ]
        checked = [task.result() for task in asking]
        results = [each.result for each in checked]
        answers = [each for each in results if isinstance(each, Response) and each.text.strip()]
        for answer in answers[:1]:
            for model, open_model, conversation in self._after(answer):
                asked = await self._ask(model, open_model, conversation)
                checked.append(replace(asked, is_tutor=False))
        return checked

    def _after(
        self, answer: Response
    ) -> Iterator[tuple[TutorModel, Callable[[], CalledModel], Conversation]]:
        """Yield the student's model and the grader, each with its conversation about an answer."""
        experiment, manifest = self.experiment, self.experiment.manifest
        student, grader = manifest.student, manifest.use_llm_exploratory
        if student is not None and not answer.last_turn:
            tutored = Conversation(answer.run, experiment, [answer])
            opened = partial(self.pool.student, experiment, student)
            yield student.model, opened, StudentConversation.of(tutored, student)
        if grader is not None:
            graded = GradingConversation.of(experiment, grader, answer.text)
            yield grader.model, partial(self.pool.grader, experiment, grader), graded

    async def _ask(
        self, model: TutorModel, open_model: Callable[[], CalledModel], conversation: Conversation
    ) -> Checked:
        begun = asyncio.get_running_loop().time()
        try:
            result = await self._result(open_model(), conversation)
        except InvalidInput as error:
            result = not_callable(error)
        seconds = asyncio.get_running_loop().time() - begun
        return Checked(model, result, seconds)

    async def _result(
        self, model: CalledModel, conversation: Conversation
    ) -> Response | ModelCallFailed:
        question = conversation.question()
        max_tokens = question.parameters.max_tokens
        most = most_a_call_costs(model.entry.price, question.texts, max_tokens)
        with model.limiter.ticket(tokens_at_most(question.texts, max_tokens)) as ticket:
            permit = await ticket.permit()
            conversation.call_begins(asyncio.get_running_loop().time())
            # One call without a lease or a retry, so that the check ends soon.
            with bound_contextvars(**log_fields(question)):
                deadline = ThawingTimeout(asyncio.get_running_loop().time() + model.deadline)
                result = await ask(model, question, most, UNOBSERVED, deadline)
            if isinstance(result, Reply):
                permit.replied(result)
            else:
                permit.failed(result)
        if isinstance(result, ModelCallFailed):
            return result
        return conversation.response(question, result, model, self.clock.now())


def most_a_check_costs(experiment: Experiment) -> int:
    """Nanodollars that asking each model once can cost, where prices are known."""
    models = experiment.manifest.models_by_id
    questions = [
        (models[run.model_id].price, Conversation(run, experiment).question())
        for run in _first_runs(experiment)
    ]
    costs = [
        most_a_call_costs(price, each.texts, each.parameters.max_tokens)
        for price, each in questions
    ]
    # A token has some four characters, and the answer no more than these tokens.
    text = "grade" * max(each.parameters.max_tokens for _, each in questions)
    if (grader := experiment.manifest.use_llm_exploratory) is not None:
        question = GradingConversation.of(experiment, grader, text).question()
        costs.append(most_a_call_costs(grader.model.price, question.texts, grader.max_tokens))
    if (student := experiment.manifest.student) is not None:
        texts = [STUDENT_INSTRUCTION, experiment.manifest.scenarios[0].model_dump_json(), text]
        costs.append(most_a_call_costs(student.model.price, texts, student.max_tokens))
    return sum(costs)


def _first_runs(experiment: Experiment) -> list[Run]:
    """The first run of each model."""
    return list(islice(experiment.runs(), len(experiment.manifest.models)))


async def check_models(
    experiment: Experiment, open_client: OpenClient, settings: RunnerSettings, clock: Clock
) -> Sequence[Checked]:
    """Ask every model of an experiment once, and close its client."""
    pool = ModelPool(open_client, ConcurrencyLimiters(most=settings.runner_in_flight_per_model))
    try:
        return await ModelCheck(experiment, pool, clock).ask_all()
    finally:
        await pool.close()
