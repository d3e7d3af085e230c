"""Maps stop reasons of providers and gateways to statuses.

Only a known word marks a finished answer. An unknown word is kept with its reply, which stays
unscored: the reply was paid for, and may turn out to be finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from socratic_bench.errors import FailureKind
from socratic_bench.scoring.exchange import UNFINISHED, Status


class Ended(NamedTuple):
    """The end of a reply."""

    status: Status
    error_kind: str | None = None


Meaning = Status | FailureKind

_NOT_PLAIN: Final = re.compile(r"[^a-z0-9]")


def _plain(reason: str) -> str:
    """Normalise a stop reason: gateways change case and signs, and append words after a colon."""
    return _NOT_PLAIN.sub("", reason.partition(":")[0].lower())


def _table(*rows: tuple[Meaning, Iterable[str]]) -> dict[str, Meaning]:
    return {_plain(word): meaning for meaning, words in rows for word in words}


_MEANINGS: Final = _table(
    (
        Status.OK,
        (
            "stop",
            "end_turn",
            "stop_sequence",
            "stop_criteria_met",  # Titan
            "eos",  # Together
            "eos_token",  # Text Generation Inference
            "eos_found",  # LM Studio
            "stop_string_found",
            "endoftext",  # AI21
            "complete",  # Cohere
            "completed",
            "finish",  # Titan
            "finished",
        ),
    ),
    (
        Status.TRUNCATED,
        (
            "length",
            "max_tokens",
            "max_output_tokens",
            "max_predicted_tokens_reached",  # LM Studio
            "context_length_reached",
            "model_length",  # Mistral: the end of the context
            "model_context_window_exceeded",
        ),
    ),
    (
        Status.REFUSED,
        (
            "refusal",
            "content_filter",
            "content_filtered",
            "guardrail_intervened",
            "safety",  # Google, from here on
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "model_armor",
            "image_safety",
            "image_prohibited_content",
            "image_recitation",
            "sensitive",  # Zhipu
            "error_toxic",  # Cohere
        ),
    ),
    (
        FailureKind.CUT_STREAM,
        (
            "abort",  # vLLM and SGLang
            "aborted",
            "cancelled",
            "canceled",
            "user_cancel",
            "user_stopped",
            "model_unloaded",
            "network_error",  # Zhipu
        ),
    ),
    (FailureKind.UNKNOWN, ("error", "failed")),
    (FailureKind.TIMEOUT, ("timeout",)),
    (FailureKind.OVERLOADED, ("insufficient_system_resource",)),  # DeepSeek
    (
        FailureKind.MALFORMED_REPLY,
        (
            "malformed_model_output",
            "malformed_tool_use",
            "malformed_function_call",
            "malformed_response",
        ),
    ),
)
"""`tool_calls`, `pause_turn` and the like are missing on purpose: such a model waits for an
answer, and would ask for the same again."""


def tells_of_an_unfinished_reply(reason: str) -> bool:
    """Whether a stop reason is known as one of an unfinished, cut off or refused reply."""
    return _MEANINGS.get(_plain(reason), Status.OK) is not Status.OK


# D-081: an unknown reason makes a stored, unscored reply, never a retry.
def how_it_ended(reason: str) -> Ended | FailureKind:
    """Return the end of a reply with this stop reason, or the class of a passing failure."""
    meaning = _MEANINGS.get(_plain(reason))
    if meaning is None:
        return Ended(Status.ERROR, UNFINISHED)
    return Ended(meaning) if isinstance(meaning, Status) else meaning
