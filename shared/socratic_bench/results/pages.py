"""Pages from templates, where each text is data, never markup; and that of an experiment."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.plugins import require_package
from socratic_bench.providers.registry import is_imported
from socratic_bench.results import formats
from socratic_bench.results.experiment_choice import CostedStore, NoScores, find_experiment
from socratic_bench.results.experiment_status import model_failures
from socratic_bench.results.fidelity.fidelity import (
    FIDELITY,
    FidelityTable,
    surely_counts_breaks,
)
from socratic_bench.results.fidelity.fidelity import fidelity as fidelity_table
from socratic_bench.results.fidelity.text_formats import (
    cells_of,
    fidelity_sentences,
    shown_columns,
)
from socratic_bench.results.leaderboard.columns import rank_text
from socratic_bench.results.leaderboard.leaderboard import ExperimentSummary, model_comparison
from socratic_bench.results.leaderboard.text_formats import as_latex, reading_aid, unanimity
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(page: str, title: str, **data: object) -> str:
    """Return the page of the template `page`; it loads nothing and runs no script.

    Its policy allows the one style by its hash. What does not print is replaced, line ends aside.
    Raises MissingExtra without Jinja.
    """
    environment = _environment()
    style = environment.get_template("style.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    text = environment.get_template(f"{page}.html").render(
        data, page=page, title=title, style=style, digest=digest
    )
    return "\n".join(map(formats.printable, text.split("\n")))


@cache
def _environment() -> Environment:
    """Load Jinja at the first page: starting a command does without it."""
    require_package("jinja2", needed_by="a page", extra="socratic-ai-bench-core[pages]")
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - see above

    environment = Environment(
        loader=PackageLoader("socratic_bench.results"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    shown = (formats.cost, formats.figure, formats.interval, formats.moment, formats.share)
    environment.filters.update({each.__name__: each for each in (*shown, formats.signed)})
    environment.globals.update(missing=formats.MISSING, version=__version__)
    return environment


async def report_page(
    store: CostedStore, wanted: str, profile: str | None = None, authors: Sequence[str] = ()
) -> str:
    """Return one self-contained HTML page about an experiment; `wanted` as in `find_experiment`.

    `authors` are those of the study, as one cites it. The figures are those of the leaderboard, by
    the experiment's own profile or by `profile`. The page loads nothing and runs no script. Raises
    UnknownExperiment, AmbiguousExperiment, NoScores.
    """
    experiment = await find_experiment(store, wanted)
    comparison = await model_comparison(store, experiment.experiment_id, profile)
    failures = await model_failures(store, experiment.experiment_id)
    [summary] = comparison.experiments
    manifest = experiment.manifest
    asked = not any(is_imported(model) for model in manifest.models_by_id)
    fidelity = await _fidelity(store, experiment, profile)
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
        fidelity=fidelity
        and {
            "table": fidelity,
            "columns": (columns := shown_columns(fidelity)),
            "rows": [cells_of(columns, each) for each in fidelity.models],
            "aid": fidelity_sentences(fidelity),
        },
        manifest=manifest,
        parameters=manifest.parameters.model_dump(exclude_none=True) if asked else {},
        bibtex=bibtex(summary, comparison.profile, authors),
        configuration=configuration(experiment) if asked else None,
    )


async def _fidelity(
    store: CostedStore, experiment: Experiment, profile: str | None
) -> FidelityTable | None:
    """Return the turns kept of an experiment under pressure, by a profile that counts breaks.

    None for other experiments, and for one without scores by such a profile.
    """
    if not any(each.pressures and each.turns > 1 for each in experiment.manifest.scenarios):
        return None
    read_by = profile or experiment.manifest.profile
    if not surely_counts_breaks(read_by):
        read_by = FIDELITY
    try:
        return await fidelity_table(store, experiment.experiment_id, read_by)
    except NoScores:
        return None


def _title(summary: ExperimentSummary) -> str:
    return summary.name or summary.occasion or summary.experiment_id


def bibtex(summary: ExperimentSummary, profile: str, authors: Sequence[str] = ()) -> str:
    """Return two BibTeX entries: the experiment, by its authors, and Socratic Bench, the tool.

    The id makes the experiment's key unique. Without an author its entry has none.
    """
    note = (
        f"Experiment {summary.experiment_id}, manifest {summary.manifest_id}, "
        f"conditions {summary.conditions_id}, profile {profile}, "
        f"Socratic Bench {__version__}"
    )
    # BibTeX parts names at "and", except within braces.
    written = map(as_latex, authors)
    names = " and ".join(f"{{{each}}}" if " and " in each else each for each in written)
    study = {
        **({"author": names} if authors else {}),
        "title": as_latex(_title(summary)),
        "year": f"{summary.created_at.year}",
        "month": summary.created_at.strftime("%b").lower(),
        "note": as_latex(note),
    }
    tool = {
        "author": "{The Socratic Bench authors}",
        "title": "Socratic Bench: a benchmark of how {Socratic} an {LLM} tutor is",
        "version": __version__,
    }
    key = f"socratic-bench:{summary.experiment_id}"
    return "\n".join([*_entry("misc", key, study), "", *_entry("software", "socratic-bench", tool)])


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> Iterator[str]:
    yield f"@{kind}{{{key},"
    for name, value in fields.items():
        yield f"  {name} = {value}," if name == "month" else f"  {name} = {{{value}}},"
    yield "}"


def configuration(experiment: Experiment) -> str:
    """Return a configuration, as JSON, that names the same experiment when it is run.

    It holds whatever the experiment's id depends on, and no key.
    """
    manifest = experiment.manifest.model_dump(
        mode="json", exclude_defaults=True, exclude={"pinned_at"}
    )
    occasion = {} if experiment.occasion is None else {"occasion": experiment.occasion}
    return json.dumps({**manifest, **occasion}, indent=2, ensure_ascii=False)
