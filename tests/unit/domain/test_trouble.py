"""A model in trouble, in one sentence that names it, the reason, the attempt and the next one."""

import pytest

from socratic_bench.domain.trouble import REASON_LENGTH, Trouble, one_line


def trouble(reason, *, attempt=1, next_in_seconds=0.4):
    return Trouble(
        experiment_id="exp",
        model_id="vllm/down",
        kind="unreachable",
        reason=reason,
        attempt=attempt,
        attempts=12,
        next_in_seconds=next_in_seconds,
    )


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            trouble("vllm at http://host cannot be reached: connection refused"),
            (
                "vllm/down at http://host cannot be reached: connection refused "
                "(attempt 1 of 12, next in 1 s)"
            ),
        ),
        (
            trouble("no answer within 5 s", attempt=3, next_in_seconds=7.2),
            "vllm/down: no answer within 5 s (attempt 3 of 12, next in 8 s)",
        ),
        (
            trouble("vllm at noon", attempt=1, next_in_seconds=None),
            "vllm/down at noon (given up after 1 attempt)",
        ),
        (
            trouble("there is no key", attempt=0, next_in_seconds=None),
            "vllm/down: there is no key (not called)",
        ),
    ],
)
def test_the_sentence_says_what_whom_how_often_and_when_again(told, sentence):
    assert told.sentence == sentence


def test_a_reason_is_one_short_line_whatever_a_provider_says():
    assert one_line("a\x1b[31m\r\nb\u202ec") == "a [31m b c"
    assert len(one_line("x" * 10_000)) == REASON_LENGTH
