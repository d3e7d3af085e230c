"""The page of one experiment: its figures, its citation, and the configuration that repeats it."""

from __future__ import annotations

import json

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.results.experiment_choice import ResultStore, find_experiment
from socratic_bench.results.experiment_status import model_failures
from socratic_bench.results.leaderboard.columns import rank_text
from socratic_bench.results.leaderboard.leaderboard import ExperimentSummary, model_comparison
from socratic_bench.results.leaderboard.text_formats import as_latex, reading_aid, unanimity
from socratic_bench.results.pages.rendering import rendered
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__


async def report_page(store: ResultStore, wanted: str, profile: str | None = None) -> str:
    """Return one self-contained HTML page about an experiment; `wanted` as in `find_experiment`.

    Its figures are those of the leaderboard, by the experiment's own profile or by `profile`. The
    page loads nothing and runs no script. Raises UnknownExperiment, AmbiguousExperiment, NoScores.
    """
    experiment = await find_experiment(store, wanted)
    comparison = await model_comparison(store, experiment.experiment_id, profile)
    failures = await model_failures(store, experiment.experiment_id)
    [summary] = comparison.experiments
    manifest = experiment.manifest
    return rendered(
        "experiment",
        _title(summary),
        overall=OVERALL,
        statuses=[each.value for each in Status],
        summary=summary,
        comparison=comparison,
        failures={name: failed.counts.most_common() for name, failed in failures.items()},
        rank=rank_text,
        reading_aid=reading_aid(comparison),
        unanimity=unanimity(comparison),
        manifest=manifest,
        parameters=manifest.parameters.model_dump(exclude_none=True),
        bibtex=bibtex(summary, comparison.profile),
        configuration=configuration(experiment),
    )


def _title(summary: ExperimentSummary) -> str:
    return summary.name or summary.occasion or summary.experiment_id


def bibtex(summary: ExperimentSummary, profile: str) -> str:
    """Return a BibTeX entry of an experiment's figures, under a key that its id makes unique."""
    note = (
        f"Experiment {summary.experiment_id}, manifest {summary.manifest_id}, "
        f"conditions {summary.conditions_id}, profile {profile}, "
        f"Socratic Bench {__version__}"
    )
    fields = {
        "author": "{The Socratic Bench authors}",
        "title": f"Socratic Bench: {as_latex(_title(summary))}",
        "year": f"{summary.created_at.year}",
        "month": summary.created_at.strftime("%b").lower(),
        "note": as_latex(note),
    }
    lines = [
        f"  {name} = {value}," if name == "month" else f"  {name} = {{{value}}},"
        for name, value in fields.items()
    ]
    return "\n".join([f"@misc{{socratic-bench:{summary.experiment_id},", *lines, "}"])


def configuration(experiment: Experiment) -> str:
    """Return a configuration, as JSON, that names the same experiment when it is run.

    It holds whatever the experiment's id depends on, and no key.
    """
    manifest = experiment.manifest.model_dump(
        mode="json", exclude_defaults=True, exclude={"pinned_at"}
    )
    occasion = {} if experiment.occasion is None else {"occasion": experiment.occasion}
    return json.dumps({**manifest, **occasion}, indent=2, ensure_ascii=False)
