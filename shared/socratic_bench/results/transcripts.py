"""The transcripts of chosen runs: what was said in each, and why it scored as it did."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, Protocol

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.grading import Grading, grade_of, grading_run_id
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import BrokenPlugin, UnknownProfile, UnknownRun
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.results.experiment_choice import ResultStore, scored_by
from socratic_bench.results.filters import Condition, ids_called, require_known
from socratic_bench.scoring.profiles import needs_grade
from socratic_bench.scoring.score import Score, score


async def with_gradings(store: Responses, responses: Iterable[Response]) -> list[Response]:
    """Return responses with their stored gradings, where their profile needs a grade."""
    given = list(responses)
    graded = [each for each in given if _needs_grade(each.profile)]
    if not graded:
        return given
    stored = await store.responses({_grading_run_of(each) for each in graded})
    gradings = {run_id: Grading(score=grade_of(found[0].text)) for run_id, found in stored.items()}
    return [
        each.model_copy(update={"grading": gradings.get(_grading_run_of(each))})
        if _needs_grade(each.profile)
        else each
        for each in given
    ]


def _grading_run_of(response: Response) -> str:
    return grading_run_id(response.run.experiment_id, response.text)


def _needs_grade(profile: str) -> bool:
    try:
        return needs_grade(profile)
    except (UnknownProfile, BrokenPlugin):
        return False


@dataclass(frozen=True, slots=True)
class ChosenRuns:
    """Planned runs in the plan's order, from any place on."""

    experiment: Experiment
    models: Sequence[str]
    scenarios: Sequence[Scenario]

    @property
    def total(self) -> int:
        """The number of planned runs that are chosen."""
        return self.experiment.manifest.due_repeats * len(self.scenarios) * len(self.models)

    def runs(self, first: int, count: int) -> list[Run]:
        """Return `count` runs from a place on, or as many as there are.

        It takes as long at the end of a plan as at its beginning.
        """
        runs = []
        for place in range(first, min(first + count, self.total)):
            # The order of `Experiment.runs`: models take turns.
            before, at_model = divmod(place, len(self.models))
            repeat, at_scenario = divmod(before, len(self.scenarios))
            scenario = self.scenarios[at_scenario]
            runs.append(self.experiment.run(self.models[at_model], scenario, repeat + 1))
        return runs


def chosen_runs(
    experiment: Experiment,
    *,
    models: Collection[str] = (),
    scenario: str | None = None,
    dimension: str | None = None,
    where: Sequence[Condition] = (),
) -> ChosenRuns:
    """Return the runs of these models, or of all without one, on what is asked.

    Models and the scenario may be written by id, or by name or title.
    Raises InvalidInput for what the experiment does not have.
    """
    manifest = experiment.manifest
    told: Final = "the experiment has no"
    names = [(model.id, model.display_name) for model in manifest.models]
    ids = ids_called("model", models, names, told)
    titles = [(each.id, each.title) for each in manifest.scenarios]
    asked = ids_called("scenario", () if scenario is None else (scenario,), titles, told)
    return ChosenRuns(
        experiment,
        [each.id for each in manifest.models if not models or each.id in ids],
        [
            each
            for each in scenarios_of(experiment, dimension, where)
            if scenario is None or each.id in asked
        ],
    )


def scenarios_of(
    experiment: Experiment, dimension: str | None, where: Sequence[Condition] = ()
) -> list[Scenario]:
    """Return the scenarios of a dimension that meet every condition.

    Raises InvalidInput for a dimension, a field or a value that the experiment does not have.
    """
    scenarios = experiment.manifest.scenarios
    if dimension is not None:
        named = (each.dimension for each in scenarios)
        require_known("dimension", dimension, named, "the experiment has no")
    for field, value in where:
        fields = (name for each in scenarios for name in each.metadata)
        require_known("metadata", field, fields, "the experiment has no")
        values = (each.metadata[field] for each in scenarios if field in each.metadata)
        require_known(field, value, values, "the experiment has no")
    return [
        each
        for each in scenarios
        if dimension in {None, each.dimension}
        and all(each.metadata.get(field) == value for field, value in where)
    ]


RUNS_PER_QUERY: Final = 50
"""Runs whose responses are in memory at a time."""


class TranscriptStore(Responses, ResultStore, Protocol):
    """The roles of the store with responses, and with the profiles that scored them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A stored response with its score, which is computed again: it is never stored as evidence."""

    response: Response
    score: Score


@dataclass(frozen=True, slots=True)
class Transcript:
    """The turns of one run, and its failure if it failed."""

    run: Run
    turns: tuple[Turn, ...]
    failure: RunFailure | None

    @property
    def own_profile(self) -> str | None:
        """The profile of the run's experiment; None for a run that has not ended."""
        for turn in self.turns[:1]:
            return turn.response.profile
        return None if self.failure is None else self.failure.profile

    @property
    def lowest(self) -> float | None:
        """The lowest overall score of a turn; None without a score."""
        scores = (turn.score.overall for turn in self.turns)
        return min((each for each in scores if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Some runs of an experiment."""

    transcripts: tuple[Transcript, ...]
    total: int
    """All planned runs that the page is taken from."""


async def transcripts(
    store: TranscriptStore,
    experiment: Experiment,
    *,
    model: str | None = None,
    scenario: str | None = None,
    where: Sequence[Condition] = (),
    profile: str | None = None,
) -> AsyncIterator[Transcript]:
    """Yield the runs of an experiment that have a response or a failure, in the plan's order.

    `model`, `scenario` and `where` choose among them. `profile` scores them in place of the own
    one. Raises InvalidInput for what the experiment does not have, NoScores for a profile without
    scores.
    """
    await _check_profile(store, experiment.experiment_id, profile)
    models = () if model is None else (model,)
    chosen = chosen_runs(experiment, models=models, scenario=scenario, where=where)
    for first in range(0, chosen.total, RUNS_PER_QUERY):
        for transcript in await read_transcripts(
            store, chosen.runs(first, RUNS_PER_QUERY), profile
        ):
            yield transcript


async def transcripts_page(
    store: TranscriptStore, chosen: ChosenRuns, profile: str | None, *, offset: int, limit: int
) -> TranscriptPage:
    """Return some planned runs, in the plan's order; a run that has not ended has no turn.

    `profile` scores them, as in `transcripts`. A page takes as long at the end of a plan as at its
    beginning. Raises NoScores.
    """
    await _check_profile(store, chosen.experiment.experiment_id, profile)
    runs = chosen.runs(offset, limit)
    found = {each.run.run_id: each for each in await read_transcripts(store, runs, profile)}
    page = tuple(found.get(run.run_id, Transcript(run, (), None)) for run in runs)
    return TranscriptPage(page, chosen.total)


async def worst_first(found: AsyncIterator[Transcript], count: int) -> Sequence[Transcript]:
    """Return the `count` transcripts with the lowest score of a turn, without unscored ones."""
    kept: list[tuple[float, int, Transcript]] = []
    place = 0
    async for transcript in found:
        if (lowest := transcript.lowest) is not None:
            place += 1
            # heapq pops the smallest: the best of those kept, and of equal ones the latest.
            entry = (-lowest, -place, transcript)
            heapq.heappush(kept, entry) if len(kept) < count else heapq.heappushpop(kept, entry)
    return [transcript for *_, transcript in sorted(kept, key=lambda each: each[:2], reverse=True)]


async def transcript_of(
    store: TranscriptStore, run_id: str, profile: str | None = None
) -> Transcript:
    """Return the transcript of one run. The scores are computed in a thread.

    `profile` scores it in place of the own one. Raises UnknownRun, NoScores.
    """
    responses = await store.responses([run_id])
    failures = await store.recorded_failures([run_id])
    if run_id in responses:
        run = responses[run_id][0].run
    elif run_id in failures:
        run = failures[run_id].failure.run
    else:
        raise UnknownRun(
            f"this store has no response and no failure of a run {run_id!r}: "
            "socratic-bench transcripts EXPERIMENT lists runs with their ids"
        )
    await _check_profile(store, run.experiment_id, profile)
    failure = failures[run_id].failure if run_id in failures else None
    graded = await with_gradings(store, responses.get(run_id, ()))
    turns = await asyncio.to_thread(_scored, graded, profile)
    return Transcript(run, turns, failure)


async def read_transcripts(
    store: Responses, runs: Sequence[Run], profile: str | None
) -> list[Transcript]:
    """Return the transcripts of these runs, without those that have no response and no failure.

    `profile` scores them in place of the own one. Scores are computed in a thread.
    """
    ids = [run.run_id for run in runs]
    responses = await store.responses(ids)
    failures = await store.recorded_failures(ids)
    graded = await with_gradings(store, chain.from_iterable(responses.values()))
    scored = await asyncio.to_thread(
        lambda: {
            run_id: _scored(of_run, profile)
            for run_id, of_run in groupby(graded, key=lambda each: each.run.run_id)
        }
    )
    return [
        Transcript(
            run,
            scored.get(run.run_id, ()),
            failures[run.run_id].failure if run.run_id in failures else None,
        )
        for run in runs
        if run.run_id in responses or run.run_id in failures
    ]


def _scored(responses: Iterable[Response], profile: str | None) -> tuple[Turn, ...]:
    return tuple(
        Turn(
            each,
            score(
                each.text,
                output_tokens=each.usage.visible_output_tokens,
                status=each.status,
                dimension=each.run.dimension,
                student_message=each.student_message,
                earlier_turns=each.earlier_turns,
                grade=None if each.grading is None else each.grading.score,
                answer_key=each.answer_key,
                profile=profile or each.profile,
                raw=False,
            ),
        )
        for each in responses
    )


async def _check_profile(store: ResultStore, experiment_id: str, profile: str | None) -> None:
    if profile is not None:
        await scored_by(store, [experiment_id], profile)
