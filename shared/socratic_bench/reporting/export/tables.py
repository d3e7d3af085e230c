"""The tables that can be exported, each read some runs at a time from any place in the plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.reporting.export.columns import Column, Record
from socratic_bench.reporting.export.responses import response_columns, response_records
from socratic_bench.reporting.export.scenarios import SCENARIO_COLUMNS, scenario_records
from socratic_bench.reporting.export.turns import TURN_COLUMNS, turn_records
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.scenarios.analysis import scenario_analysis
from socratic_bench.reporting.scenarios.scores import scenario_scores
from socratic_bench.reporting.transcripts.run_transcripts import (
    RUNS_PER_QUERY,
    read_transcripts,
    runs_from,
)
from socratic_bench.scoring.profiles import profile_named


class ExportStore(Responses, Aggregates, Protocol):
    """The roles of the store that tables are read from."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one experiment."""

    columns: tuple[Column, ...]
    places: int
    """The number of places that records are at; of a table with a record for each turn, the planned
    runs. A place may have no record, or several."""

    step: int
    """The number of places of one read."""

    read: Callable[[int], Awaitable[list[Record]]]
    """Returns the records of `step` places from this one on. Raises StoreError."""


async def open_table(
    what: str, store: ExportStore, experiment: Experiment, profile: str | None = None
) -> Table:
    """Return one of TABLES. Scores are by the experiment's own profile, or by `profile`.

    Raises NoScores for a profile without scores.
    """
    if profile is not None:
        await scored_by(store, [experiment.experiment_id], profile)
    return TABLES[what](store, experiment, profile)


def _responses(store: ExportStore, experiment: Experiment, profile: str | None) -> Table:
    shown = profile or experiment.manifest.profile
    vectors = profile_named(shown).vectors

    async def read(first: int) -> list[Record]:
        runs = runs_from(experiment, first, RUNS_PER_QUERY)
        return [
            record
            for transcript in await read_transcripts(store, runs, profile)
            for record in response_records(transcript, vectors, experiment, shown)
        ]

    places = experiment.manifest.planned_runs
    return Table(response_columns(vectors), places, RUNS_PER_QUERY, read)


def _turns(store: ExportStore, experiment: Experiment, _profile: str | None) -> Table:
    async def read(first: int) -> list[Record]:
        ids = [run.run_id for run in runs_from(experiment, first, RUNS_PER_QUERY)]
        responses = await store.responses(ids)
        failures = await store.recorded_failures(ids)
        return [
            record
            for run_id in ids
            for record in turn_records(
                responses.get(run_id, ()),
                failures[run_id].failure if run_id in failures else None,
                experiment,
            )
        ]

    return Table(TURN_COLUMNS, experiment.manifest.planned_runs, RUNS_PER_QUERY, read)


def _scenarios(store: ExportStore, experiment: Experiment, profile: str | None) -> Table:
    manifest = experiment.manifest

    async def read(_first: int) -> list[Record]:
        scores = await scenario_scores(store, experiment, manifest.models, profile)
        return [*scenario_records(scenario_analysis(experiment, scores), experiment)]

    places = len(manifest.scenarios)
    return Table(SCENARIO_COLUMNS, places, places, read)


TABLES: Final[Mapping[str, Callable[[ExportStore, Experiment, str | None], Table]]] = {
    "responses": _responses,
    "scenarios": _scenarios,
    "turns": _turns,
}
