"""The citation of an experiment, and the configuration that repeats it."""

from __future__ import annotations

import json

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.reporting.leaderboard.comparison import ExperimentSummary
from socratic_bench.reporting.leaderboard.latex_text import as_latex
from socratic_bench.version import __version__


def bibtex(summary: ExperimentSummary, profile: str) -> str:
    """Return a BibTeX entry of an experiment's figures, under a key that its id makes unique."""
    title = summary.name or summary.occasion or summary.experiment_id
    note = (
        f"Experiment {summary.experiment_id}, manifest {summary.manifest_id}, "
        f"conditions {summary.conditions_id}, profile {profile}, "
        f"Socratic Bench {__version__}"
    )
    fields = {
        "author": "{The Socratic Bench authors}",
        "title": f"Socratic Bench: {as_latex(title)}",
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
