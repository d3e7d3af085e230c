"""Scores the texts in the body of a request, and shows the scores as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json, to_json

from socratic_api.http.problems import Problem
from socratic_api.score_shapes import ConvertedAnswer, ScoreBatch, ScoreRequest
from socratic_bench.errors import BrokenPlugin, BrokenProfile, InvalidInput, UnknownProfile
from socratic_bench.invalid_values import mistakes_in, quoted, shown
from socratic_bench.scoring.evidence import Evidence, Span
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.legacy import is_legacy, legacy_scores
from socratic_bench.scoring.score import Score, score

KEYS_NAMED: Final = 8
"""The most keys of a wrong body that its error names."""

SPANS_SHOWN: Final = 1000
"""The most listed spans of one kind; all of them count."""

Item = ScoreRequest | ConvertedAnswer | InvalidInput
"""The text to score, the scores of an old record, or the reason why nothing can be scored."""


def items_in(body: bytes) -> Item | list[Item]:
    """Return the item in a body, or those of a batch. Raises InvalidInput for neither."""
    try:
        data = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"body: not JSON: {error}") from None
    if isinstance(data, dict) and _is_old(data):
        return _item(data, "")
    if not isinstance(data, dict) or not data.keys() & {"text", "items"}:
        expected = '{"text": "…"} or {"items": […]}'
        raise InvalidInput(f"body: must be {expected}, not {_outline(data)}")
    if "items" not in data:
        return _item(data, "")
    try:
        batch = ScoreBatch.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error, ScoreBatch, shows_values=True)) from None
    return [_item(each, f"items.{at}") for at, each in enumerate(batch.items)]


def _outline(data: JsonValue) -> str:
    """Return what a body is instead of a request, without its values."""
    if not isinstance(data, dict):
        return shown(data)
    keys = [quoted(key) for key in islice(data, KEYS_NAMED)]
    more = ", …" if len(data) > KEYS_NAMED else ""
    return f"an object with {', '.join(keys)}{more}" if keys else "an empty object"


def one_answer(item: Item) -> bytes:
    """Return the answer to a request for one score. Raises InvalidInput."""
    if isinstance(item, InvalidInput):
        raise item
    if isinstance(item, ConvertedAnswer):
        return to_json(item)
    return to_json(_scored(item, ""))


def batch_answer(items: Sequence[Item]) -> bytes:
    """Return the answer to a request for many scores."""
    return b'{"scores":[%b]}' % batch_answers(items, 0)


def batch_answers(items: Sequence[Item], first: int) -> bytes:
    """Return the answers to these items with commas between; the first is the batch's `first`."""
    return b",".join(to_json(_score_or_problem(each, at)) for at, each in enumerate(items, first))


def _is_old(data: dict[str, Any]) -> bool:
    return not data.keys() & {"text", "items"} and is_legacy(data)


def _converted(data: dict[str, Any], place: str) -> Item:
    try:
        return ConvertedAnswer(scores=legacy_scores(data))
    except ValueError as error:
        return InvalidInput(f"{place}.{error}" if place else str(error))


def _item(data: object, place: str) -> Item:
    try:
        if isinstance(data, dict) and _is_old(data):
            return _converted(data, place)
        return ScoreRequest.model_validate(data)
    except ValidationError as error:
        return InvalidInput(mistakes_in(error, ScoreRequest, within=place, shows_values=True))


def _score_or_problem(item: Item, at: int) -> dict[str, Any]:
    try:
        if isinstance(item, InvalidInput):
            raise item
        if isinstance(item, ConvertedAnswer):
            return item.model_dump()
        return _scored(item, f"items.{at}")
    except InvalidInput as error:
        problem = Problem.of(422, str(error))
        return {"error": problem.model_dump()}


def _scored(asked: ScoreRequest, place: str) -> dict[str, Any]:
    try:
        return shown_score(
            score(
                asked.text,
                output_tokens=asked.output_tokens,
                status=asked.status,
                dimension=asked.dimension,
                student_message=asked.student_message,
                earlier_turns=[
                    EarlierTurn(turn.student, turn.tutor, turn.output_tokens, turn.status)
                    for turn in asked.earlier_turns
                ],
                answer_key=asked.answer_key,
                profile=asked.profile,
            )
        )
    except (UnknownProfile, BrokenPlugin, BrokenProfile) as error:
        raise InvalidInput(f"{place}.profile: {error}" if place else f"profile: {error}") from None


def shown_score(scored: Score) -> dict[str, Any]:
    """Return a score as the API shows it: vectors, `overall`, status and evidence."""
    return scored.as_dict(_shortened(scored.evidence))


def _shortened(evidence: Evidence) -> Evidence:
    """Return the evidence with at most SPANS_SHOWN spans of a kind, and a note about more."""
    if len(evidence.spans) <= SPANS_SHOWN:
        return evidence
    seen: Counter[str] = Counter()
    kept: list[Span] = []
    for span in evidence.spans:
        seen[span.kind] += 1
        if seen[span.kind] <= SPANS_SHOWN:
            kept.append(span)
    more = tuple(
        f"the first {SPANS_SHOWN:,} of {count:,} {kind} spans are listed"
        for kind, count in seen.items()
        if count > SPANS_SHOWN
    )
    return replace(evidence, spans=tuple(kept), notes=(*evidence.notes, *more))
