"""The table of scenarios: what each asks, how hard it is, and how well it tells models apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.reporting.export.columns import ORIGIN, Record, integers, numbers, origin, texts
from socratic_bench.reporting.scenarios.analysis import ScenarioAnalysis

SCENARIO_COLUMNS: Final = (
    *texts("scenario_id", "dimension", "title", "persona", "aim", "prompt", "follow_ups"),
    *integers("turns"),
    *numbers(["mean", "interval_low", "interval_high", "discrimination"]),
    *integers("models", "runs", "scored_responses", "responses"),
    *ORIGIN,
)


def scenario_records(analysis: ScenarioAnalysis, experiment: Experiment) -> Iterator[Record]:
    """Yield a record for each scenario, in the plan's order.

    `follow_ups` is a JSON list of the student's later messages, as text: a table has no lists.
    """
    comes_from = origin(experiment, analysis.profile)
    for each in analysis.scenarios:
        first, *later = each.student_messages
        low, high = each.interval or (None, None)
        yield {
            "scenario_id": each.scenario_id,
            "dimension": each.dimension,
            "title": each.title,
            "persona": each.persona,
            "aim": each.aim,
            "prompt": first,
            "follow_ups": json.dumps(later, ensure_ascii=False) if later else None,
            "turns": len(each.student_messages),
            "mean": each.mean,
            "interval_low": low,
            "interval_high": high,
            "discrimination": each.discrimination,
            "models": each.models,
            "runs": each.runs,
            "scored_responses": each.scored_responses,
            "responses": each.responses,
            **comes_from,
        }
