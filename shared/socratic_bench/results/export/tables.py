"""The tables that can be exported, each read some runs at a time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.results.experiment_choice import ResultStore, scored_by
from socratic_bench.results.export.fidelity_columns import FidelityColumns
from socratic_bench.results.export.records import (
    SCENARIO_COLUMNS,
    TURN_COLUMNS,
    ExportColumn,
    Kind,
    Record,
    response_columns,
    response_records,
    scenario_records,
    turn_records,
)
from socratic_bench.results.scenarios import ScenarioScores, scenario_analysis, scenario_scores
from socratic_bench.results.transcripts import (
    RUNS_PER_QUERY,
    ChosenRuns,
    Transcript,
    read_transcripts,
)
from socratic_bench.scoring.profiles import profile_named


class ExportStore(Responses, ResultStore, Protocol):
    """The roles of the store that tables are read from."""


class Table(NamedTuple):
    """A table of one experiment."""

    columns: tuple[ExportColumn, ...]

    read: Callable[[], AsyncIterator[list[Record]]]
    """Yields the records of the whole table, those of some runs at a time. Raises StoreError."""


async def open_table(
    what: str, store: ExportStore, chosen: ChosenRuns, profile: str | None = None
) -> Table:
    """Return one of TABLES of these runs. Scores are by the experiment's own profile, or `profile`.

    Raises NoScores for a profile without scores.
    """
    if profile is not None:
        await scored_by(store, [chosen.experiment.experiment_id], profile)
    return _with_metadata(TABLES[what](store, chosen, profile), chosen.experiment)


METADATA: Final = "metadata_"
"""What the name of a column with scenarios' metadata begins with."""

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?")
_TYPES: Final[Mapping[Kind, Callable[[str], str | int | float]]] = {
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.NUMBER: float,
}


def _with_metadata(table: Table, experiment: Experiment) -> Table:
    """Return a table with a column for each field of its scenarios' metadata, after all others.

    A column whose texts are all numbers holds numbers; an ordinal with zeros before it is a text.
    """
    by_scenario = {each.id: each.metadata for each in experiment.manifest.scenarios}
    names = dict.fromkeys(name for each in by_scenario.values() for name in each)
    if not names:
        return table
    kinds = {
        name: _kind_of([each[name] for each in by_scenario.values() if name in each])
        for name in names
    }
    values = {
        id_: {
            METADATA + name: _TYPES[kind](metadata[name]) if name in metadata else None
            for name, kind in kinds.items()
        }
        for id_, metadata in by_scenario.items()
    }

    async def read() -> AsyncIterator[list[Record]]:
        async for records in table.read():
            yield [{**each, **values[each["scenario_id"]]} for each in records]

    columns = (ExportColumn(METADATA + name, kind) for name, kind in kinds.items())
    return Table((*table.columns, *columns), read)


def _kind_of(texts: Sequence[str]) -> Kind:
    if all(map(_INTEGER.fullmatch, texts)):
        return Kind.INTEGER
    return Kind.NUMBER if all(map(_NUMBER.fullmatch, texts)) else Kind.TEXT


def _responses(store: ExportStore, chosen: ChosenRuns, profile: str | None) -> Table:
    shown = profile or chosen.experiment.manifest.profile
    vectors = profile_named(shown).vectors
    pressed = FidelityColumns.of(chosen.experiment)

    def records(transcripts: Iterable[Transcript]) -> list[Record]:
        return [
            record
            for each in transcripts
            for record in pressed.added(
                response_records(each, vectors, chosen.experiment, shown),
                [turn.response for turn in each.turns],
            )
        ]

    async def read() -> AsyncIterator[list[Record]]:
        for first in range(0, chosen.total, RUNS_PER_QUERY):
            runs = chosen.runs(first, RUNS_PER_QUERY)
            found = await read_transcripts(store, runs, profile)
            yield await asyncio.to_thread(records, found)

    return Table((*response_columns(vectors), *pressed.columns), read)


def _turns(store: ExportStore, chosen: ChosenRuns, _profile: str | None) -> Table:
    pressed = FidelityColumns.of(chosen.experiment)

    def records(
        responses: Mapping[str, Sequence[Response]], failures: Mapping[str, RunFailure | None]
    ) -> list[Record]:
        return [
            record
            for run_id, failure in failures.items()
            for record in pressed.added(
                turn_records(responses.get(run_id, ()), failure, chosen.experiment),
                responses.get(run_id, ()),
            )
        ]

    async def read() -> AsyncIterator[list[Record]]:
        for first in range(0, chosen.total, RUNS_PER_QUERY):
            ids = [run.run_id for run in chosen.runs(first, RUNS_PER_QUERY)]
            responses = await store.responses(ids)
            stored = await store.recorded_failures(ids)
            failures = {id_: stored[id_].failure if id_ in stored else None for id_ in ids}
            yield await asyncio.to_thread(records, responses, failures)

    return Table((*TURN_COLUMNS, *pressed.columns), read)


def _scenarios(store: ExportStore, chosen: ChosenRuns, profile: str | None) -> Table:
    experiment = chosen.experiment
    models = [experiment.manifest.models_by_id[each] for each in chosen.models]

    def records(scores: ScenarioScores) -> list[Record]:
        analysis = scenario_analysis(experiment, scores)
        own = analysis.within({each.id for each in chosen.scenarios})
        return [*scenario_records(own, experiment)]

    async def read() -> AsyncIterator[list[Record]]:
        scores = await scenario_scores(store, experiment, models, profile)
        yield await asyncio.to_thread(records, scores)

    return Table(SCENARIO_COLUMNS, read)


TABLES: Final[Mapping[str, Callable[[ExportStore, ChosenRuns, str | None], Table]]] = {
    "responses": _responses,
    "scenarios": _scenarios,
    "turns": _turns,
}
