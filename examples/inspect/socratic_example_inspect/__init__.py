"""A scorer for Inspect AI: how Socratic is the answer of a sample?

    pip install ./shared ./examples/inspect
    inspect score logs/LOG.eval --scorer socratic_example_inspect/socratic

A task takes `scorer=socratic()`. Each vector has a mean of its own. An unscored answer (empty,
refused, cut off) has no value and enters no mean: Inspect counts it among `unscored_samples`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState

import socratic_bench

VECTORS = ("verbosity", "exploratory", "interrogative", "overall")
STATUSES = {
    "stop": "ok",
    "max_tokens": "truncated",
    "model_length": "truncated",
    "content_filter": "refused",
}
"""How an answer ended, by Inspect's stop reason; else `error`."""


@metric
def scored_mean() -> Metric:
    """Make the mean over the samples with a value; Inspect leaves out the others."""

    def mean(scores: Sequence[SampleScore]) -> float:
        # Inspect's own `mean` of no samples is 0.0: unscored is not zero.
        return sum(each.score.as_float() for each in scores) / len(scores) if scores else math.nan

    return mean


@scorer(metrics={name: [scored_mean()] for name in VECTORS})
def socratic(profile: str = "socratic-v1") -> Scorer:
    """Score the last answer of a sample; `profile` is one with the vectors of socratic-v1."""

    async def score(state: TaskState, target: Target) -> Score:
        *earlier, last = _student_turns(state)
        found = socratic_bench.score(
            state.output.completion,
            output_tokens=_visible_tokens(state),
            status=STATUSES.get(state.output.stop_reason, "error"),
            student_message=last["student"],
            earlier_turns=earlier,
            profile=profile,
        )
        return Score(
            value={name: math.nan if found[name] is None else found[name] for name in VECTORS},
            answer=state.output.completion,
            explanation=_explanation(found),
            metadata={"status": str(found.status), "profile": profile},
        )

    return score


def _explanation(found: socratic_bench.Score) -> str:
    """Return the arithmetic of each vector, or why there is no score."""
    if not found.scored:
        return f"unscored: the status is {found.status}"
    return "; ".join(fact.sentence for fact in found.evidence.facts.values())


def _student_turns(state: TaskState) -> list[dict[str, str]]:
    """Return each student's message with the tutor's answer to it."""
    turns = [{"student": "", "tutor": ""}]
    for message in state.messages:
        if isinstance(message, ChatMessageUser):
            turns.append({"student": message.text, "tutor": ""})
        elif isinstance(message, ChatMessageAssistant):
            turns[-1]["tutor"] += message.text
    return turns[1:] or turns


def _visible_tokens(state: TaskState) -> int | None:
    """Return the tokens of the answer without thoughts, which Inspect counts among its output."""
    usage = state.output.usage
    if usage is None or (usage.reasoning_tokens or 0) > usage.output_tokens:
        return None
    return int(usage.output_tokens - (usage.reasoning_tokens or 0))
