"""The report of one experiment: what it holds, and the page that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.failures import ModelFailures, model_failures
from socratic_bench.reporting.formats import MISSING, cost, figure, interval, moment, share
from socratic_bench.reporting.leaderboard.columns import rank_text
from socratic_bench.reporting.leaderboard.comparison import (
    ExperimentSummary,
    ModelComparison,
    model_comparison,
)
from socratic_bench.reporting.leaderboard.figures import ModelFigures
from socratic_bench.reporting.leaderboard.provenance import reading_aid, unanimity
from socratic_bench.reporting.report.citation import bibtex, configuration
from socratic_bench.reporting.report.marks import interval_mark
from socratic_bench.reporting.report.markup import element, page, table
from socratic_bench.reporting.report.style import STYLE
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.statuses import Status
from socratic_bench.version import __version__

STATUSES: Final = tuple(Status)


async def report_page(store: ResultStore, wanted: str, profile: str | None = None) -> str:
    """Return one self-contained HTML page about an experiment; `wanted` as in `find_experiment`.

    Its figures are those of the leaderboard, by the experiment's own profile or by `profile`. The
    page loads nothing and runs no script. Raises UnknownExperiment, AmbiguousExperiment, NoScores.
    """
    experiment = await find_experiment(store, wanted)
    comparison = await model_comparison(store, experiment.experiment_id, profile)
    failures = await model_failures(store, experiment.experiment_id)
    return _page(experiment, comparison, failures)


def _page(
    experiment: Experiment,
    comparison: ModelComparison,
    failures: Mapping[str, ModelFailures],
) -> str:
    [summary] = comparison.experiments
    title = summary.name or summary.occasion or summary.experiment_id
    return page(
        title,
        STYLE,
        element("main", *_introduction(title, summary), *_results(comparison, failures)),
        element("footer", *_origin(experiment, comparison)),
    )


def _introduction(title: str, summary: ExperimentSummary) -> Iterator[Element]:
    yield element("h1", title)
    done = f"{summary.done} of {summary.planned} runs done"
    yield element(
        "p",
        f"How Socratic are these tutors: do they ask, or do they lecture? {summary.models} models, "
        f"{done}, {moment(summary.created_at)}.",
        class_="lead",
    )
    if summary.done < summary.planned:
        yield element(
            "p", "This experiment is not complete: its figures may change.", class_="caution"
        )
    if summary.notes:
        yield element("p", summary.notes, class_="notes")


def _results(
    comparison: ModelComparison, failures: Mapping[str, ModelFailures]
) -> Iterator[Element]:
    yield element("h2", "Ranking")
    yield _ranking(comparison)
    for sentence in reading_aid(comparison):
        yield element("p", sentence, class_="aid")
    yield element("h2", "Dimensions and vectors")
    yield _means(comparison)
    for sentence in unanimity(comparison):
        yield element("p", sentence, class_="aid")
    yield element("h2", "Coverage")
    yield element(
        "p",
        "A mean is over scored responses only. A response that is cut off, refused or empty has no "
        "score, and neither has a failed run.",
        class_="aid",
    )
    yield _coverage(comparison, failures)
    yield element("h2", "Cost and latency")
    yield _consumption(comparison)


def _ranking(comparison: ModelComparison) -> Element:
    rows = (
        (
            model.model_name,
            rank_text(model),
            figure(model.overall_score),
            interval(model.confidence_interval),
            interval_mark(model.overall_score, model.confidence_interval),
            share(model.coverage),
            MISSING if model.kind == "baseline" else f"{model.total_runs}/{model.planned_runs}",
            _kind(model),
        )
        for model in comparison.rows
    )
    headings = (
        "model",
        "rank",
        OVERALL,
        "95 % interval",
        "0.00 to 1.00",
        "coverage",
        "runs",
        "kind",
    )
    return table(headings, rows, caption="Models, best first")


def _means(comparison: ModelComparison) -> Element:
    headings = ("model", OVERALL, *comparison.vectors, *comparison.dimensions)
    rows = (
        (
            model.model_name,
            figure(model.overall_score),
            *(figure(model.vectors[name].mean) for name in comparison.vectors),
            *(_dimension(model, name) for name in comparison.dimensions),
        )
        for model in comparison.rows
    )
    return table(headings, rows, caption="Means of each vector, and overall by dimension")


def _dimension(model: ModelFigures, name: str) -> str:
    figures = model.dimensions.get(name)
    return MISSING if figures is None else figure(figures.overall)


def _coverage(comparison: ModelComparison, failures: Mapping[str, ModelFailures]) -> Element:
    rows = (
        (
            model.model_name,
            share(model.coverage),
            *(f"{model.statuses.get(status.value, 0)}" for status in STATUSES),
            _reasons(failures.get(model.model_id)),
        )
        for model in comparison.models
    )
    headings = ("model", "coverage", *(each.value for each in STATUSES), "failed runs, by reason")
    return table(headings, rows, caption="Responses by status")


def _reasons(failed: ModelFailures | None) -> str:
    if failed is None:
        return ""
    return ", ".join(f"{kind} {count}" for kind, count in failed.counts.most_common())


def _consumption(comparison: ModelComparison) -> Element:
    rows = (
        (
            model.model_name,
            cost(model.total_cost_usd, model.cost_known),
            cost(model.mean_cost_usd, None),
            _whole(model.mean_latency_ms, " ms"),
            _whole(model.mean_input_tokens),
            _whole(model.mean_visible_output_tokens),
            _whole(model.mean_reasoning_tokens),
            _kind(model),
        )
        for model in comparison.models
    )
    headings = (
        "model",
        "total cost",
        "cost of a response",
        "latency",
        "input tokens",
        "visible output tokens",
        "reasoning tokens",
        "kind",
    )
    return table(headings, rows, caption="Means of a response; cost and latency as they were paid")


def _whole(value: float | None, unit: str = "") -> str:
    return MISSING if value is None else f"{value:,.0f}{unit}"


def _kind(model: ModelFigures) -> str:
    return _KINDS[model.kind]


_KINDS: Final = {
    "model": "model",
    "reference": "reference tutor, simulated",
    "baseline": "baseline, no tutor",
}


def _origin(experiment: Experiment, comparison: ModelComparison) -> Iterator[Element]:
    [summary] = comparison.experiments
    own = "" if comparison.profile == summary.profile else f" (planned with {summary.profile})"
    yield element("h2", "Conditions")
    manifest = experiment.manifest
    parameters = manifest.parameters.model_dump(exclude_none=True)
    facts = {
        "experiment": summary.experiment_id,
        "manifest hash": summary.manifest_id,
        "conditions": summary.conditions_id,
        "occasion": summary.occasion or MISSING,
        "started": moment(summary.created_at),
        "completed": moment(summary.completed_at),
        "profile": f"{comparison.profile}{own}",
        "scenarios": f"{len(manifest.scenarios)}, {manifest.repeats} repeats each",
        "parameters": ", ".join(f"{name} {value}" for name, value in parameters.items()),
        "version": f"Socratic Bench {__version__}",
    }
    terms = [part for each in facts.items() for part in _term(*each)]
    yield element("dl", *terms)
    yield element("h2", "Cite")
    yield element("pre", bibtex(summary, comparison.profile))
    yield element("h2", "Reproduce")
    yield element(
        "p",
        f"Install Socratic Bench {__version__}, save the configuration below as again.json, and "
        "run it. In another store it asks every model again, under the same experiment id.",
    )
    yield element("pre", "socratic-bench run again.json --store sqlite:///again.db")
    yield element(
        "details",
        element("summary", "Configuration: models, scenarios, prompts and parameters"),
        element("pre", configuration(experiment)),
    )


def _term(name: str, value: str) -> tuple[Element, Element]:
    return element("dt", name), element("dd", value)
