"""The tables that can be exported, each read some runs at a time from any place in the plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.reporting.export.columns import Column, Record
from socratic_bench.reporting.export.responses import response_columns, response_records
from socratic_bench.reporting.export.scenarios import SCENARIO_COLUMNS, scenario_records
from socratic_bench.reporting.export.turns import TURN_COLUMNS, turn_records
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.scenarios.analysis import scenario_analysis
from socratic_bench.reporting.scenarios.scores import scenario_scores
from socratic_bench.reporting.transcripts.chosen_runs import ChosenRuns
from socratic_bench.reporting.transcripts.run_transcripts import RUNS_PER_QUERY, read_transcripts
from socratic_bench.scoring.profiles import profile_named


class ExportStore(Responses, Aggregates, Protocol):
    """The roles of the store that tables are read from."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one experiment."""

    columns: tuple[Column, ...]
    places: int
    """The number of places that records are at; of a table with a record for each turn, the chosen
    runs. A place may have no record, or several."""

    step: int
    """The number of places of one read."""

    read: Callable[[int], Awaitable[list[Record]]]
    """Returns the records of `step` places from this one on. Raises StoreError."""


async def open_table(
    what: str, store: ExportStore, chosen: ChosenRuns, profile: str | None = None
) -> Table:
    """Return one of TABLES of these runs. Scores are by the experiment's own profile, or `profile`.

    Raises NoScores for a profile without scores.
    """
    if profile is not None:
        await scored_by(store, [chosen.experiment.experiment_id], profile)
    return TABLES[what](store, chosen, profile)


def _responses(store: ExportStore, chosen: ChosenRuns, profile: str | None) -> Table:
    shown = profile or chosen.experiment.manifest.profile
    vectors = profile_named(shown).vectors

    async def read(first: int) -> list[Record]:
        runs = chosen.runs(first, RUNS_PER_QUERY)
        return [
            record
            for transcript in await read_transcripts(store, runs, profile)
            for record in response_records(transcript, vectors, chosen.experiment, shown)
        ]

    return Table(response_columns(vectors), chosen.total, RUNS_PER_QUERY, read)


def _turns(store: ExportStore, chosen: ChosenRuns, _profile: str | None) -> Table:
    async def read(first: int) -> list[Record]:
        ids = [run.run_id for run in chosen.runs(first, RUNS_PER_QUERY)]
        responses = await store.responses(ids)
        failures = await store.recorded_failures(ids)
        return [
            record
            for run_id in ids
            for record in turn_records(
                responses.get(run_id, ()),
                failures[run_id].failure if run_id in failures else None,
                chosen.experiment,
            )
        ]

    return Table(TURN_COLUMNS, chosen.total, RUNS_PER_QUERY, read)


def _scenarios(store: ExportStore, chosen: ChosenRuns, profile: str | None) -> Table:
    experiment = chosen.experiment
    models = [experiment.manifest.models_by_id[each] for each in chosen.models]

    async def read(_first: int) -> list[Record]:
        scores = await scenario_scores(store, experiment, models, profile)
        analysis = scenario_analysis(experiment, scores)
        own = analysis.within({each.id for each in chosen.scenarios})
        return [*scenario_records(own, experiment)]

    places = len(chosen.scenarios)
    return Table(SCENARIO_COLUMNS, places, places, read)


TABLES: Final[Mapping[str, Callable[[ExportStore, ChosenRuns, str | None], Table]]] = {
    "responses": _responses,
    "scenarios": _scenarios,
    "turns": _turns,
}
