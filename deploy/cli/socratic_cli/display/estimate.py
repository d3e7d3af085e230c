"""The expected calls, tokens and cost of a benchmark, as a table for people and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.planning.estimate import Estimate, ModelEstimate, Prospect, Range
from socratic_bench.planning.reuse import Outlook
from socratic_bench.providers.registry import is_free, is_reference
from socratic_bench.results.costs import usd
from socratic_bench.results.formats import MISSING, dollars, moment
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import excerpt, name_of

MODELS_NAMED = 5
"""The most models without a price that are named; the rest are counted."""

_WHAT_FIGURES_MEAN = (
    "Tokens are likely values. At most: every answer reaches max_tokens, every byte sent is a "
    "token, and no call is repeated."
)


def estimate_table(estimate: Estimate) -> RenderableType:
    """Make the table: a row per model, the total, and its relation to the budget."""
    kinds = any(is_reference(each.model) for each in estimate.called)
    columns = (
        TableColumn("model", "left", is_name=True),
        *([TableColumn("kind", "left", drop=4)] if kinds else []),
        TableColumn("runs", drop=2),
        TableColumn("calls", drop=3),
        TableColumn("tokens in", drop=1),
        TableColumn("tokens out", drop=1),
        TableColumn("likely cost"),
        TableColumn("cost at most"),
    )
    rows: list[list[str | Text]] = [
        [*_names(each.model, kinds=kinds), *_figures(each)] for each in estimate.models
    ]
    for role, each in (("student", estimate.student), ("grader", estimate.grader)):
        if each is not None:
            name, *others = _names(each.model, kinds=kinds)
            rows.append([f"{name} ({role})", *others, MISSING, *_figures(each)[1:]])
    if len(estimate.called) > 1:
        total = ("total", *([""] if kinds else []), *_total_figures(estimate))
        rows.append([Text(each, style="bold") for each in total])
    table = FittingTable(columns, rows, "see --json")
    return Group(table, *(Text(line, style="dim") for line in _legend(estimate)))


def _names(model: TutorModel, *, kinds: bool) -> list[str | Text]:
    """Return the name, with the kind if the table has a column for it."""
    kind = Text("reference" if is_reference(model) else "", style="dim italic")
    return [name_of(model.display_name), *([kind] if kinds else [])]


def _figures(each: ModelEstimate) -> tuple[str, ...]:
    return (
        f"{each.runs:,}",
        f"{each.calls:,}",
        f"{each.input_tokens.likely:,}",
        f"{each.output_tokens.likely:,}",
        *_costs(each.cost),
    )


def _total_figures(estimate: Estimate) -> tuple[str, ...]:
    return (
        f"{estimate.runs:,}",
        f"{estimate.calls:,}",
        f"{estimate.input_tokens.likely:,}",
        f"{estimate.output_tokens.likely:,}",
        *_total_costs(estimate),
    )


def _costs(cost: Range | None) -> tuple[str, str]:
    if cost is None:
        return MISSING, MISSING
    return dollars(usd(cost.likely)), dollars(usd(cost.at_most))


def _total_costs(estimate: Estimate) -> tuple[str, str]:
    """Return the sums; the maximum is unknown if a model has no price."""
    cost = estimate.cost
    if cost is None or not estimate.unpriced:
        return _costs(cost)
    return dollars(usd(cost.likely), at_least=True), MISSING


def _legend(estimate: Estimate) -> list[str]:
    lines = ["", _WHAT_FIGURES_MEAN]
    if measured := [
        f"{excerpt(each.model.display_name)}, {each.length.tokens:,} tokens in "
        f"{each.length.answers:,} answers"
        for each in estimate.models
        if each.length is not None and each.calls
    ]:
        more = f"; and {len(measured) - MODELS_NAMED} more" if len(measured) > MODELS_NAMED else ""
        named = "; ".join(measured[:MODELS_NAMED])
        lines.append(f"Likely answers are as long as stored ones: {named}{more}.")
    if any(is_reference(each.model) for each in estimate.called):
        lines.append("reference: a built-in archetype, not a real model; its price is simulated.")
    if estimate.unpriced:
        lines.append(_on_unpriced(estimate.unpriced, estimate.cost))
    if estimate.cost is not None:
        lines.append(_on_budget(estimate, estimate.cost))
    return lines


def _on_unpriced(models: tuple[TutorModel, ...], others_cost: Range | None) -> str:
    named = ", ".join(excerpt(model.id) for model in models[:MODELS_NAMED])
    more = len(models) - MODELS_NAMED
    others = f" and {more} more" if more > 0 else ""
    unknown = f"The price of {named}{others} is unknown: set a `price`, 0 for a free model."
    if others_cost is None:
        return unknown
    return f"{unknown} The other models cost {dollars(usd(others_cost.at_most))} at most."


def _on_budget(estimate: Estimate, cost: Range) -> str:
    if estimate.budget is None:
        return "There is no budget: a `budget` in USD caps the cost."
    likely, at_most = dollars(usd(cost.likely)), dollars(usd(cost.at_most))
    budget = f"The budget of {dollars(usd(estimate.budget))}"
    if not estimate.may_exceed_budget:
        return f"{budget} suffices for {at_most}, the most that it costs."
    then = "Calls beyond it are not made: runs would be left."
    if estimate.likely_exceeds_budget:
        return f"{budget} is less than the likely cost of {likely}. {then}"
    return f"{budget} is likely to suffice, but not for {at_most}. {then}"


def prospect_sentence(prospect: Prospect) -> str:
    """Return the answered, reused and new runs, the cost of the new ones, and how old it is."""
    outlook, estimate = prospect.outlook, prospect.estimate
    parts = [f"{outlook.done:,} done"] if outlook.done else []
    if outlook.answered:
        parts.append(f"{outlook.answered:,} answered")
    if outlook.reused:
        parts.append(f"{outlook.reused:,} reused{_paid_then(outlook.reused_nanodollars)}")
    parts.append(f"{outlook.new:,} new{_price_of_new(estimate) if outlook.new else ''}")
    told = [f"{_runs(outlook.planned)}: {', '.join(parts)}."]
    if outlook.first < outlook.new:
        told.append(_from_to(outlook, estimate))
    if prospect.kept_name is not None:
        told.append(
            f"The experiment was made as {prospect.kept_name!r} and keeps that name: --again, or "
            "another --occasion, makes a new one."
        )
    elif prospect.begun_at is not None and not outlook.new and not outlook.reused:
        told.append(
            f"Its questions were asked from {moment(prospect.begun_at)} on: --again asks a tutor "
            "again whose code changed."
        )
    return " ".join(told)


def _from_to(outlook: Outlook, estimate: Estimate) -> str:
    """Return what may suffice where intervals stop repeats: repeats cost alike."""
    told = f"stop_when asks {outlook.first:,} to {outlook.new:,} of them"
    if estimate.cost is None or not estimate.cost.likely:
        return f"{told}."
    likely = estimate.cost.likely
    least = likely * outlook.first // outlook.new
    return f"{told}: likely {dollars(usd(least))} to {dollars(usd(likely))}."


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count:,} runs"


def _paid_then(nanodollars: int) -> str:
    return f" (already paid: {dollars(usd(nanodollars))})" if nanodollars else ""


def _price_of_new(estimate: Estimate) -> str:
    calls = "1 call" if estimate.calls == 1 else f"{estimate.calls:,} calls"
    to_ask = [each for each in estimate.called if each.calls]
    if all(is_reference(each.model) for each in to_ask):
        return f" ({calls}, of built-in tutors: they cost nothing)"
    if all(is_free(each.model) for each in to_ask):
        return f" ({calls}, all answered by this machine: they cost nothing)"
    if estimate.cost is None:
        return f" ({calls}, at an unknown price)"
    likely, at_most = _total_costs(estimate)
    most = f"at most {at_most}" if not estimate.unpriced else "at most unknown"
    return f" ({calls}: likely {likely}, {most})"


def estimate_as_json(prospect: Prospect) -> dict[str, Any]:
    """Return the remaining work with money in USD; null is unknown, never zero."""
    outlook, estimate = prospect.outlook, prospect.estimate
    return {
        "planned_runs": outlook.planned,
        "done_runs": outlook.done,
        "answered_runs": outlook.answered,
        "reused_runs": outlook.reused,
        "new_runs": outlook.new,
        "least_new_runs": outlook.first,
        "models": [
            {
                "model_id": each.model.id,
                "model_name": each.model.display_name,
                "kind": "reference" if is_reference(each.model) else "model",
                "runs": each.runs,
                "calls": each.calls,
                "measured_answers": 0 if each.length is None else each.length.answers,
                **_json_figures(each.input_tokens, each.output_tokens, each.cost),
            }
            for each in estimate.models
        ],
        "student": None if estimate.student is None else _json_role(estimate.student),
        "grader": None if estimate.grader is None else _json_role(estimate.grader),
        "total": {
            "runs": estimate.runs,
            "calls": estimate.calls,
            **_json_figures(estimate.input_tokens, estimate.output_tokens, estimate.cost),
        },
        "unpriced": [model.id for model in estimate.unpriced],
        "budget_usd": None if estimate.budget is None else usd(estimate.budget),
        "may_exceed_budget": estimate.may_exceed_budget,
        "likely_exceeds_budget": estimate.likely_exceeds_budget,
    }


def _json_role(each: ModelEstimate) -> dict[str, Any]:
    return {
        "model_id": each.model.id,
        "model_name": each.model.display_name,
        "calls": each.calls,
        **_json_figures(each.input_tokens, each.output_tokens, each.cost),
    }


def _json_figures(
    input_tokens: Range, output_tokens: Range, cost: Range | None
) -> dict[str, dict[str, float] | None]:
    return {
        "input_tokens": input_tokens._asdict(),
        "output_tokens": output_tokens._asdict(),
        "cost_usd": None if cost is None else {key: usd(n) for key, n in cost._asdict().items()},
    }
