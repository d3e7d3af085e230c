"""The cautions of a leaderboard: what it mixes, pools and leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from socratic_bench.domain.aggregates.leaderboard import Leaderboard
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.reporting.formats import printable
from socratic_bench.reporting.leaderboard import answer_sentences
from socratic_bench.reporting.leaderboard.choice import LeftOutReason
from socratic_bench.reporting.leaderboard.figures import ModelFigures
from socratic_bench.reporting.leaderboard.selection import Selection

MOST_NAMED: Final = 4
"""The most conditions that a note names, and the most experiments of each group."""

_REASONS: Final[Mapping[LeftOutReason, str]] = {
    LeftOutReason.NOT_PINNED: "not pinned",
    LeftOutReason.OTHER_PROFILE: "another profile",
    LeftOutReason.OTHER_CONDITIONS: "other test conditions",
    LeftOutReason.NO_SCORE: "no run has a score",
    LeftOutReason.PILOT: "half as many runs or fewer",
    LeftOutReason.INCOMPLETE: "incomplete",
    LeftOutReason.OLDER: "older",
    LeftOutReason.TOO_MANY: "no room in one table",
}


def cautions_of(
    board: Leaderboard, selected: Selection, models: Sequence[ModelFigures]
) -> tuple[str, ...]:
    """Return the cautions, a note each. `models` are the shown rows."""
    sentences = []
    pinned = [each for each in board.experiments if each.pinned_at is not None]
    if selected.is_default and pinned:
        verb = "is" if len(pinned) == 1 else "are"
        sentences.append(f"{_first(', ', map(title, pinned))} {verb} pinned.")
    if others := sorted({each.profile for each in board.experiments} - {board.profile}):
        sentences.append(
            f"The scores are by {board.profile}, not by the profile of the plan, "
            f"{', '.join(others)}."
        )
    if len(board.conditions) > 1:
        sentences.append(
            f"This table has {len(board.conditions)} sets of test conditions (scenarios, prompts "
            f"or parameters): {_by_conditions(board)}. A model has a row under each; figures and "
            "ranks compare only within one."
        )
    if pooled := sum(len(row.experiment_ids) > 1 for row in board.rows):
        rows = "1 row pools" if pooled == 1 else f"{pooled} rows pool"
        sentences.append(f"{rows} the runs of several experiments under the same conditions.")
    if alike := [row for row in board.rows if row.alike]:
        named = _first(", ", (f"{printable(row.model.id)} ({row.alike})" for row in alike))
        sentences.append(
            f"More than half of the scenarios have exactly the same figures for {named}: the "
            "replies may repeat. Read them with `socratic-bench transcripts`."
        )
    on_answers = {printable(model.model_id): model.notes for model in models}
    sentences += answer_sentences.sentences(on_answers, MOST_NAMED)
    return (*sentences, *_left_out(selected))


def title(experiment: ExperimentOutline) -> str:
    """Return an experiment's name or occasion with its id, or the id alone."""
    named = experiment.name or experiment.occasion
    return f"{named} ({experiment.experiment_id})" if named else experiment.experiment_id


def _left_out(selected: Selection) -> list[str]:
    left_out = selected.choice.left_out
    if not left_out:
        return []
    titles = {each.experiment_id: title(each) for each in selected.experiments}
    groups = []
    for reason in dict.fromkeys(left_out.values()):
        named = [titles[id_] for id_, its_reason in left_out.items() if its_reason is reason]
        groups.append(f"{_first(', ', named)} [{_REASONS[reason]}]")
    return [f"Left out: {'; '.join(groups)}.", _remedy(selected)]


def _remedy(selected: Selection) -> str:
    if selected.is_default:
        return (
            "Name an experiment to see it alone, or `all` to see every set of conditions; "
            "`socratic-bench pin` decides which one is shown by default."
        )
    return "Name an experiment to see it alone."


def _by_conditions(board: Leaderboard) -> str:
    """Return the experiments under each of the conditions: "Prompt B (exp-1), exp-2; exp-3"."""
    groups = [
        _first(
            ", ", [title(each) for each in board.experiments if each.conditions_id == conditions]
        )
        for conditions in board.conditions
    ]
    return _first("; ", groups)


def _first(between: str, words: Iterable[str]) -> str:
    every: Sequence[str] = list(words)
    more = len(every) - MOST_NAMED
    return between.join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
