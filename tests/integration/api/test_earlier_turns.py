"""POST /api/score with `earlier_turns`: a profile sees the conversation as it was sent."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from socratic_api.score_shapes import TEXT_LIMIT, TURN_LIMIT
from socratic_bench.scoring import profiles
from socratic_bench.scoring.exchange import EarlierTurn, Exchange, Status
from socratic_bench.scoring.score import MOST_TOKENS, score
from socratic_bench.scoring.socratic_v1.profile import SocraticV1

ADDRESS = "/api/score"
SENT: list[dict[str, Any]] = [
    {"student": "I am stuck.", "tutor": "Where?"},
    {"student": "At the loop.", "tutor": "Because", "output_tokens": 7, "status": "truncated"},
]
MEANT = (
    EarlierTurn("I am stuck.", "Where?"),
    EarlierTurn("At the loop.", "Because", 7, Status.TRUNCATED),
)


class Listening(SocraticV1):
    """Keeps its input, and scores by the length of the conversation."""

    name = "listening-v1"

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Exchange] = []

    def measure(self, exchange: Exchange) -> tuple[float, float, float]:
        self.heard.append(exchange)
        return len(exchange.earlier_turns) / 10, 0.0, 0.0


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Listening:
    profile = Listening()
    monkeypatch.setitem(profiles._BUILT_IN, profile.name, profile)
    return profile


async def test_a_profile_sees_each_earlier_turn_with_its_tokens_and_status(
    client: httpx.AsyncClient, listening: Listening
):
    asked = {"text": "Why?", "student_message": "Help?", "earlier_turns": SENT}
    answer = await client.post(ADDRESS, json={**asked, "profile": listening.name})

    assert answer.status_code == 200
    assert listening.heard == [Exchange("Why?", None, "Help?", MEANT)]
    assert answer.json()["verbosity"] == 0.2


async def test_a_profile_sees_the_answer_key_and_the_status(
    client: httpx.AsyncClient, listening: Listening
):
    asked = {"text": "Why? " * 500, "status": "truncated", "output_tokens": 600}
    key = {"answer_key": ["0 N", "zero"], "profile": listening.name}
    assert (await client.post(ADDRESS, json={**asked, **key})).status_code == 200
    (heard,) = listening.heard
    assert (heard.status, heard.key) == (Status.TRUNCATED, ("0 N", "zero"))


async def test_each_item_of_a_batch_has_a_conversation_of_its_own(
    client: httpx.AsyncClient, listening: Listening
):
    items = [
        {"text": "Why?", "profile": listening.name, "earlier_turns": SENT[:turns]}
        for turns in (2, 0, 1)
    ]
    scores = (await client.post(ADDRESS, json={"items": items})).json()["scores"]

    assert [each["verbosity"] for each in scores] == [0.2, 0.0, 0.1]


async def test_earlier_turns_change_no_score_of_a_profile_that_looks_at_the_response_alone(
    client: httpx.AsyncClient,
):
    answer = await client.post(ADDRESS, json={"text": "Why?", "earlier_turns": SENT})

    assert answer.json() == score("Why?").as_dict()


WRONG: list[tuple[object, str]] = [
    ("none", "earlier_turns: "),
    ([{"student": "Hi"}], "earlier_turns.0.tutor: "),
    ([SENT[0], {"student": 5, "tutor": "Well"}], "earlier_turns.1.student: "),
    ([{**SENT[0], "surprise": 1}], "earlier_turns.0.surprise: "),
    ([{**SENT[0], "status": "fine"}], "earlier_turns.0.status: "),
    ([{**SENT[0], "output_tokens": -1}], "earlier_turns.0.output_tokens: "),
    ([{**SENT[0], "output_tokens": MOST_TOKENS + 1}], "earlier_turns.0.output_tokens: "),
    ([{**SENT[0], "tutor": "a" * (TEXT_LIMIT + 1)}], "earlier_turns.0.tutor: "),
    ([SENT[0]] * (TURN_LIMIT + 1), "earlier_turns: "),
]


async def test_a_turn_that_is_none_is_422_and_names_the_place(client: httpx.AsyncClient):
    for turns, place in WRONG:
        asked = {"text": "Why?", "earlier_turns": turns}
        alone = await client.post(ADDRESS, json=asked)
        items = [{"text": "Why?"}, asked]
        _, second = (await client.post(ADDRESS, json={"items": items})).json()["scores"]

        assert alone.status_code == 422, place
        assert alone.json()["detail"].startswith(place)
        assert second["error"]["detail"].startswith(f"items.1.{place}")


async def test_a_broken_profile_costs_its_own_item_a_score_and_no_other(
    client: httpx.AsyncClient, listening: Listening, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listening, "measure", lambda _: (2.0, 0.0, 0.0))
    items = [{"text": "Why?", "profile": listening.name}, {"text": "Why?"}]

    bad, good = (await client.post(ADDRESS, json={"items": items})).json()["scores"]

    assert bad["error"]["detail"].startswith("items.0.profile: profile listening-v1 measured 2.0")
    assert good == score("Why?").as_dict()
