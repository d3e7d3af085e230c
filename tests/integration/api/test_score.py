"""POST /api/score."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter

import httpx
import pytest

from socratic_api.http.bodies import BODY_LIMIT
from socratic_api.routes.score import LARGE_AT_ONCE, MOST_WAITING, SMALL_BODY, _Queue
from socratic_api.scoring import SPANS_SHOWN
from socratic_bench.scoring.score import score
from tests.waiting import PATIENCE

ADDRESS = "/api/score"
JSON = {"content-type": "application/json"}
TEXT = "Perhaps. What might you consider? You should ask."


async def test_a_score_is_what_the_library_says(client: httpx.AsyncClient):
    answer = await client.post(ADDRESS, json={"text": TEXT, "output_tokens": 250})

    assert answer.status_code == 200
    assert answer.json() == score(TEXT, output_tokens=250).as_dict()
    assert answer.json()["verbosity"] == 0.5


async def test_an_unscored_response_has_nulls_and_its_status(client: httpx.AsyncClient):
    answer = (await client.post(ADDRESS, json={"text": "No.", "status": "refused"})).json()

    assert answer["overall"] is None
    assert answer["interrogative"] is None
    assert answer["status"] == "refused"


async def test_a_batch_is_scored_in_order_and_a_bad_item_loses_no_other(client: httpx.AsyncClient):
    items = [{"text": "What?"}, {"txt": "x"}, {"text": TEXT}, 7, {"text": "a", "profile": "x-v9"}]

    scores = (await client.post(ADDRESS, json={"items": items})).json()["scores"]

    assert len(scores) == 5
    assert scores[0] == score("What?").as_dict()
    assert scores[2] == score(TEXT).as_dict()
    assert scores[1]["error"]["detail"].startswith("items.1.text: ")
    assert scores[3]["error"]["detail"].startswith("items.3: ")
    assert "x-v9" in scores[4]["error"]["detail"]
    assert scores[4]["error"]["detail"].startswith("items.4.profile: ")


async def test_a_big_batch_is_scored_like_a_small_one(client: httpx.AsyncClient):
    items = [{"text": f"{TEXT} {number}?"} for number in range(1000)]

    scores = (await client.post(ADDRESS, json={"items": items})).json()["scores"]

    assert [each["overall"] for each in scores] == [score(each["text"]).overall for each in items]


WRONG: list[tuple[object, str]] = [
    ({}, 'body: must be {"text": "…"} or {"items": […]}, not an empty object'),
    ({"texts": ["a"]}, 'body: must be {"text": "…"} or {"items": […]}, not an object with "te'),
    ([], 'body: must be {"text": "…"} or {"items": […]}, not a list'),
    ("text", 'body: must be {"text": "…"} or {"items": […]}, not "text"'),
    ({"text": 5}, "text: must be text, not 5: put it in quotes"),
    ({"text": "a" * 1_000_001}, "text: must have at most 1,000,000 characters, not 1,000,001"),
    ({"text": "a", "output_tokens": -1}, "output_tokens: must be 0 or more, not -1"),
    ({"text": "a", "output_tokens": "x"}, 'output_tokens: must be a number, not "x"'),
    ({"text": "a", "status": "fine"}, "status: must be 'ok', "),
    ({"text": "a", "profile": "x-v9"}, "profile: unknown scorer profile 'x-v9'"),
    ({"text": "a", "tokens": 1}, "tokens: unknown field; did you mean `output_tokens`?"),
    ({"text": "a", "earlier_turns": [{}]}, "earlier_turns.0.student: is missing; earlier_tur"),
    ({"text": "a", "items": []}, "text: unknown field; there are `items`"),
    ({"items": [{"text": "a"}] * 1001}, "items: "),
    ({"items": 3}, "items: must be a list, not 3"),
]


async def test_what_cannot_be_scored_is_422_and_says_where_and_what_to_do(
    client: httpx.AsyncClient,
):
    for body, sentence in WRONG:
        answer = await client.post(ADDRESS, json=body)
        told = (answer.status_code, answer.headers["content-type"])
        assert told == (422, "application/problem+json"), sentence
        assert answer.json()["detail"].startswith(sentence)


async def test_what_is_no_json_is_422(client: httpx.AsyncClient):
    lone_surrogate, deep = b'{"text": "\\ud800"}', b"[" * 100_000
    for body in (b"", b"{", b"\xff\xfe", lone_surrogate, b'{"text": NaN}', deep):
        answer = await client.post(ADDRESS, headers=JSON, content=body)
        assert answer.status_code == 422, body[:20]
        assert answer.json()["detail"].startswith("body: not JSON"), body[:20]


async def test_more_tokens_than_any_response_has_are_refused_and_lose_no_other_item(
    client: httpx.AsyncClient,
):
    for tokens in (1e13, 10**12 + 1, 10**400):
        asked = {"text": "a", "output_tokens": tokens}
        alone = await client.post(ADDRESS, headers=JSON, content=json.dumps(asked))
        batch = await client.post(
            ADDRESS, headers=JSON, content=json.dumps({"items": [{"text": "Why?"}, asked]})
        )

        assert alone.status_code == 422, tokens
        assert alone.json()["detail"].startswith("output_tokens: "), tokens
        first, second = batch.json()["scores"]
        assert first == score("Why?").as_dict()
        assert second["error"]["detail"].startswith("items.1.output_tokens: "), tokens


async def test_a_thousand_spans_of_a_kind_are_listed_and_all_are_counted(client: httpx.AsyncClient):
    text = "might should " * 2000
    evidence = (await client.post(ADDRESS, json={"text": text})).json()["evidence"]

    kinds = Counter(span["kind"] for span in evidence["spans"])
    assert kinds == {
        "exploratory": SPANS_SHOWN,
        "directive": SPANS_SHOWN,
        "final_sentence": 1,
    }
    assert "the first 1,000 of 2,000 exploratory spans are listed" in evidence["notes"]
    assert evidence["facts"] == score(text).evidence.as_dict()["facts"]


async def test_a_large_batch_is_answered_piece_by_piece_and_in_order(client: httpx.AsyncClient):
    items = [{"text": f"What might {number} be? " * 90} for number in range(100)]
    items[7] = {"txt": "x"}
    items[50] = {"text": "a", "profile": "x-v9"}

    answer = await client.post(ADDRESS, json={"items": items})

    assert "content-length" not in answer.headers
    scores = answer.json()["scores"]
    assert scores[7]["error"]["detail"].startswith("items.7.text: ")
    assert scores[50]["error"]["detail"].startswith("items.50.profile: ")
    for number in (0, 6, 8, 99):
        assert scores[number]["overall"] == score(items[number]["text"]).overall


@pytest.mark.parametrize(
    ("padding", "held"), [("", MOST_WAITING), (" " * SMALL_BODY, LARGE_AT_ONCE + MOST_WAITING)]
)
async def test_more_texts_than_the_api_holds_are_told_to_come_back(
    client: httpx.AsyncClient, padding: str, held: int
):
    answers = await asyncio.gather(
        *(client.post(ADDRESS, json={"text": f"Why {n}?{padding}"}) for n in range(3 * held))
    )

    statuses = Counter(each.status_code for each in answers)
    assert statuses.keys() == {200, 503}
    assert statuses[200] >= held
    refused = next(each for each in answers if each.status_code == 503)
    assert refused.headers["retry-after"]


async def test_a_large_body_waits_for_what_a_client_left_behind():
    queue, begun, go_on = _Queue(1, 1), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE)

    left = asyncio.create_task(queue.turn(work))
    await asyncio.to_thread(begun.wait, PATIENCE)
    left.cancel()
    following = asyncio.create_task(queue.turn(go_on.is_set))
    done, _ = await asyncio.wait([left, following], timeout=0.05)
    assert done == {left}
    go_on.set()
    assert await following


async def test_tokens_that_are_no_number_are_refused(client: httpx.AsyncClient):
    answer = await client.post(
        ADDRESS, headers=JSON, content=b'{"text": "a", "output_tokens": 1e999}'
    )

    assert answer.status_code == 422


async def test_a_body_that_is_declared_too_large_is_refused_unread(client: httpx.AsyncClient):
    answer = await client.post(ADDRESS, headers=JSON, content=b"x" * (BODY_LIMIT + 1))

    assert answer.status_code == 413
    assert answer.json()["status"] == 413


async def test_a_body_that_turns_out_too_large_is_refused_while_it_arrives(
    client: httpx.AsyncClient,
):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 65536
            yield b"x" * 65536

    answer = await client.post(ADDRESS, headers=JSON, content=endless())

    assert answer.status_code == 413
    assert sent < BODY_LIMIT + 4 * 65536


async def test_text_of_any_script_comes_back_with_positions_in_code_points(
    client: httpx.AsyncClient,
):
    text = "😀 مرحبا could <img src=x onerror=alert(1)>?"

    answer = (await client.post(ADDRESS, headers=JSON, content=json.dumps({"text": text}))).json()

    sentence, marker = answer["evidence"]["spans"]
    assert text[sentence["start"] : sentence["end"]] == sentence["label"] == text
    assert text[marker["start"] : marker["end"]] == "could"
