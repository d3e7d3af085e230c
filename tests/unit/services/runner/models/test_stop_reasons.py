"""Only a stop reason that is known to end a finished answer makes one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.errors import FailureKind
from socratic_bench.scoring.exchange import UNFINISHED, Status
from socratic_runner.models.stop_reasons import Ended, how_it_ended

FINISHED = Ended(Status.OK)
CUT = Ended(Status.TRUNCATED)
FILTERED = Ended(Status.REFUSED)
NOT_KNOWN = Ended(Status.ERROR, UNFINISHED)


@pytest.mark.parametrize(
    ("reason", "ended"),
    [
        # OpenAI
        ("stop", FINISHED),
        ("length", CUT),
        ("content_filter", FILTERED),
        ("tool_calls", NOT_KNOWN),
        ("function_call", NOT_KNOWN),
        # Anthropic
        ("end_turn", FINISHED),
        ("stop_sequence", FINISHED),
        ("max_tokens", CUT),
        ("model_context_window_exceeded", CUT),
        ("refusal", FILTERED),
        ("tool_use", NOT_KNOWN),
        ("pause_turn", NOT_KNOWN),
        ("compaction", NOT_KNOWN),
        # Bedrock
        ("guardrail_intervened", FILTERED),
        ("content_filtered", FILTERED),
        ("malformed_model_output", FailureKind.MALFORMED_REPLY),
        ("malformed_tool_use", FailureKind.MALFORMED_REPLY),
        # Google, through its OpenAI endpoint and through gateways
        ("STOP", FINISHED),
        ("MAX_TOKENS", CUT),
        ("content_filter: RECITATION", FILTERED),
        ("SAFETY", FILTERED),
        ("RECITATION", FILTERED),
        ("BLOCKLIST", FILTERED),
        ("PROHIBITED_CONTENT", FILTERED),
        ("SPII", FILTERED),
        ("MALFORMED_FUNCTION_CALL", FailureKind.MALFORMED_REPLY),
        ("OTHER", NOT_KNOWN),
        ("LANGUAGE", NOT_KNOWN),
        ("FINISH_REASON_UNSPECIFIED", NOT_KNOWN),
        # vLLM and SGLang
        ("abort", FailureKind.CUT_STREAM),
        ("repetition", NOT_KNOWN),
        # Others
        ("eos_token", FINISHED),
        ("COMPLETE", FINISHED),
        ("ERROR_TOXIC", FILTERED),
        ("sensitive", FILTERED),
        ("network_error", FailureKind.CUT_STREAM),
        ("insufficient_system_resource", FailureKind.OVERLOADED),
        ("error", FailureKind.UNKNOWN),
        # Other spellings of gateways
        ("content-filter", FILTERED),
        ("endTurn", FINISHED),
        ("a_reason_of_next_year", NOT_KNOWN),
    ],
)
def test_each_word_of_a_provider_is_known_or_ends_nothing(reason, ended):
    assert how_it_ended(reason) == ended


SCORED = {
    *("stop", "endturn", "stopsequence", "stopcriteriamet", "stopstringfound", "endoftext"),
    *("eos", "eostoken", "eosfound", "complete", "completed", "finish", "finished"),
    *("length", "maxtokens", "maxoutputtokens", "maxpredictedtokensreached", "modellength"),
    *("contextlengthreached", "modelcontextwindowexceeded"),
}
"""Every word that makes a scored reply, without signs. Hypothesis finds such words in the code."""


@given(reason=st.text())
def test_no_other_word_makes_a_scored_reply(reason):
    ended = how_it_ended(reason)
    if isinstance(ended, Ended) and ended.status in {Status.OK, Status.TRUNCATED}:
        word = reason.partition(":")[0].lower()
        assert "".join(each for each in word if each.isascii() and each.isalnum()) in SCORED
