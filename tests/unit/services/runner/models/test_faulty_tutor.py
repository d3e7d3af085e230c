"""The faulty tutor: everything a provider can do wrong, within one default benchmark."""

from __future__ import annotations

from collections import Counter

import pytest

from socratic_bench import score
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import pack_questions
from socratic_runner.models.registry import open_client

ATTEMPTS = 4


@pytest.fixture
def client() -> ModelClient:
    return open_client(TutorModel(id="reference/faulty"))


async def attempt(client: ModelClient, question: Question) -> Reply | ModelCallFailed:
    try:
        return await client.ask(question)
    except ModelCallFailed as failure:
        return failure


async def first_attempts(client: ModelClient) -> list[Reply | ModelCallFailed]:
    return [await attempt(client, question) for question in pack_questions()]


async def test_the_default_pack_meets_every_kind_of_failure(client):
    outcomes = await first_attempts(client)
    kinds = {outcome.kind for outcome in outcomes if isinstance(outcome, ModelCallFailed)}
    # No connection, so no TLS; no store, so none that refuses a reply.
    assert kinds == set(FailureKind) - {FailureKind.TLS, FailureKind.UNSTORABLE}


async def test_the_default_pack_meets_every_status_of_a_reply(client):
    seen: Counter[tuple[Status, bool]] = Counter()
    for outcome in await first_attempts(client):
        if isinstance(outcome, Reply):
            figure = score(
                outcome.text,
                output_tokens=outcome.usage.visible_output_tokens,
                status=outcome.status,
            )
            seen[figure.status, figure.scored] += 1
    assert set(seen) == {
        (Status.OK, True),
        (Status.EMPTY, False),
        (Status.REFUSED, False),
        (Status.TRUNCATED, False),
        (Status.TRUNCATED, True),
    }


async def test_what_passes_is_answered_within_a_few_attempts(client):
    passing = {
        FailureKind.UNREACHABLE,
        FailureKind.RATE_LIMITED,
        FailureKind.OVERLOADED,
        FailureKind.TIMEOUT,
        FailureKind.CUT_STREAM,
        FailureKind.MALFORMED_REPLY,
    }
    for question in pack_questions():
        outcomes = [await attempt(client, question)]
        while (
            isinstance(outcomes[-1], ModelCallFailed)
            and outcomes[-1].retryable
            and len(outcomes) < ATTEMPTS
        ):
            outcomes.append(await attempt(client, question))
        if isinstance(outcomes[0], ModelCallFailed):
            answered = isinstance(outcomes[-1], Reply)
            assert answered == (outcomes[0].kind in passing), outcomes[0].kind


async def test_only_a_rate_limit_says_how_long_to_wait(client):
    for outcome in await first_attempts(client):
        if isinstance(outcome, ModelCallFailed):
            limited = outcome.kind == FailureKind.RATE_LIMITED
            assert (outcome.retry_after is not None) == limited


async def test_the_same_happens_to_whoever_asks_first(client):
    def told(outcomes):
        return [o.kind if isinstance(o, ModelCallFailed) else o for o in outcomes]

    other = open_client(TutorModel(id="reference/faulty"))
    assert told(await first_attempts(client)) == told(await first_attempts(other))
