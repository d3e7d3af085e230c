"""The role `Aggregates` of the store in DynamoDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import chain, starmap
from typing import Final

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.books import StoredAccount, account_of, account_of_item
from socratic_bench.adapters.stores.dynamodb.cells import (
    CELLS,
    FAILURES,
    SCORES,
    key_of_cell,
    row_of_cell,
    row_of_failure,
    row_of_score,
)
from socratic_bench.adapters.stores.dynamodb.clients import together
from socratic_bench.adapters.stores.dynamodb.folding import GroupFolding, rounds
from socratic_bench.adapters.stores.dynamodb.items import SK, Item, at
from socratic_bench.adapters.stores.dynamodb.registration import delete_rows
from socratic_bench.adapters.stores.dynamodb.role import DynamoDBRole, Now, ends_before_close
from socratic_bench.adapters.stores.dynamodb.schema import revision
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.concurrency.deadlines import finish_despite_cancel
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.aggregates import FailureCount

PAGE: Final = 500
"""The number of scores or failures in a page."""


class DynamoDBAggregates(DynamoDBRole):
    """Folds scores and failures into cells, and reads all three."""

    def __init__(self, table: DynamoTable, now: Now | None = None) -> None:
        super().__init__(table, now)
        self._folded_into: set[str] = set()
        """The experiments that this process has marked as having cells."""

        self._marked_profiles: set[tuple[str, str]] = set()
        """The experiments and other profiles that this process has marked."""

    @ends_before_close
    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        """A cancelled call folds its batch to the end first."""
        if not scores and not failures:
            return []
        return await finish_despite_cancel(self._fold(scores, failures))

    async def _fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> list[Cell]:
        runs = chain((each.run for each in scores), (each.run for each in failures))
        experiment_ids = sorted({run.experiment_id for run in runs})
        cells: dict[CellKey, Cell] = {}
        async with AsyncExitStack() as alone:
            for id_ in experiment_ids:
                await alone.enter_async_context(self._table.alone(f"fold {id_}"))
            profiles = {
                id_: account.profile
                for id_, account in (await self._accounts(experiment_ids)).items()
                if not account.is_deleted
            }
            await self._mark(profiles)
            await self._mark_profiles(chain(scores, failures), profiles)
            for of_round in rounds(
                [each for each in scores if each.run.experiment_id in profiles],
                [each for each in failures if each.run.experiment_id in profiles],
            ):
                folds = (GroupFolding(self._table, parts, profiles).cells() for parts in of_round)
                for some in await together(folds):
                    cells |= {cell.key: cell for cell in some}
        # The state is read before and after: no transaction holds an experiment for its folds.
        deleted = {id_ for id_, each in (await self._accounts(profiles)).items() if each.is_deleted}
        for id_ in deleted:
            while await delete_rows(self._table, id_):
                pass
        present = (cells[key] for key in sorted(cells) if key.experiment_id not in deleted)
        return [cell for cell in present if cell.responses]

    async def _accounts(self, experiment_ids: Iterable[str]) -> dict[str, StoredAccount]:
        places = {keys.account(id_): id_ for id_ in experiment_ids}
        found = await self._table.get(places)
        return {id_: account_of_item(found.get(place)) for place, id_ in places.items()}

    async def _mark(self, experiment_ids: Iterable[str]) -> None:
        """Mark experiments as having cells."""
        new = set(experiment_ids) - self._folded_into
        await self._table.write(at(keys.folded_into(id_), {}) for id_ in new)
        self._folded_into |= new

    async def _mark_profiles(
        self,
        facts: Iterable[ScoredResponse | RunFailure],
        profiles: Mapping[str, str | None],
    ) -> None:
        """Mark other profiles than their own of experiments that are not deleted.

        The mark of a profile is there before its first fact.
        """
        found = {(fact.run.experiment_id, fact.profile) for fact in facts}
        other = {
            (id_, profile)
            for id_, profile in found - self._marked_profiles
            if id_ in profiles and profile != profiles[id_]
        }
        await self._table.write(
            at(keys.scored_profile(*each), {"profile": each[1]}) for each in other
        )
        self._marked_profiles |= other

    async def cells(
        self,
        experiment_ids: Collection[str] | None = None,
        model_id: str | None = None,
        profile: str | None = None,
    ) -> Sequence[Cell]:
        if experiment_ids is None:
            marks = await self._table.query(keys.FOLDED_INTO)
            experiment_ids = [str(mark[SK]) for mark in marks]
        found = await together(
            self._cells_of(id_, model_id, profile) for id_ in set(experiment_ids)
        )
        return sorted(chain.from_iterable(found), key=lambda cell: cell.key)

    async def _cells_of(
        self, experiment_id: str, model_id: str | None, profile: str | None
    ) -> list[Cell]:
        place = keys.cells(experiment_id), ""
        if model_id is not None:
            place = keys.cells_of_model(experiment_id, model_id)
        items = await self._table.query(*place)
        cells = CELLS.facts(
            row_of_cell(experiment_id, item)
            for item in items
            if profile in {None, key_of_cell(experiment_id, item).profile}
        )
        return [cell for cell in cells if cell.responses]

    async def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        for shard in range(keys.SHARDS):
            partition = keys.facts(experiment_id, shard)
            async for page in self._table.pages(partition, keys.SCORE, limit=PAGE):
                yield SCORES.facts(map(row_of_score, page))

    async def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        async for page in self._failures(experiment_id):
            yield FAILURES.facts(map(row_of_failure, page))

    def _failures(self, experiment_id: str) -> AsyncIterator[list[Item]]:
        return self._table.pages(keys.failures(experiment_id), keys.FOLDED, limit=PAGE)

    async def scored_profiles(
        self, experiment_ids: Collection[str]
    ) -> Mapping[str, tuple[str, ...]]:
        own = {
            id_: account.profile
            for id_, account in (await self._accounts(set(experiment_ids))).items()
            if account.profile is not None and not account.is_deleted
        }
        found = await together(self._table.query(*keys.scored_profiles(id_)) for id_ in own)
        others = ({str(mark["profile"]) for mark in marks} for marks in found)
        return {
            id_: (first, *sorted(names - {first}))
            for (id_, first), names in zip(own.items(), others, strict=True)
        }

    async def done_runs(
        self, experiment_id: str, run_ids: Collection[str], profile: str | None = None
    ) -> set[str]:
        own = (await account_of(self._table, experiment_id)).profile
        if own is None:
            return set()
        profile = profile or own
        runs = list(dict.fromkeys(run_ids))
        failed = await self._table.get(
            keys.folded_failure(experiment_id, run, profile) for run in runs
        )
        are_done = await together(
            self._is_done(
                experiment_id,
                run,
                profile,
                failed=keys.folded_failure(experiment_id, run, profile) in failed,
            )
            for run in runs
        )
        return {run for run, is_done in zip(runs, are_done, strict=True) if is_done}

    async def _is_done(
        self, experiment_id: str, run_id: str, profile: str, *, failed: bool
    ) -> bool:
        """Whether a run ended, and then whether each of its responses has a score."""
        scores = keys.scores_of_run(experiment_id, run_id, profile)
        scored = await self._table.query(*scores)
        if not failed and not any(item.get("is_last") for item in scored):
            return False
        items = await self._table.query(keys.run(run_id), keys.TURN)
        turns = {keys.number_of_turn(item) for item in items if "profile" in item}
        if turns <= {int(item["turn"]) for item in scored}:
            return True
        scored = await self._table.query(*scores)
        return turns <= {int(item["turn"]) for item in scored}

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        profile = (await account_of(self._table, experiment_id)).profile
        runs: Counter[str] = Counter()
        for item in await self._table.query(keys.cells(experiment_id)):
            if item["profile"] == profile:
                runs[str(item["model"])] += int(item["ended"])
        return +runs

    async def failed_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        runs = list(dict.fromkeys(run_ids))
        found = await together(
            self._table.query(*keys.failures_of_run(experiment_id, run)) for run in runs
        )
        return {run for run, items in zip(runs, found, strict=True) if items}

    async def failure_kinds(self, experiment_id: str) -> Sequence[FailureCount]:
        profile = (await account_of(self._table, experiment_id)).profile
        of_kinds: dict[tuple[str, str], list[RunFailure]] = {}
        async for page in self._failures(experiment_id):
            own = [item for item in page if item["profile"] == profile]
            failures = FAILURES.facts(map(row_of_failure, own))
            answered = await self._answered(failures)
            for failure in failures:
                if failure.run.run_id not in answered:
                    of_kinds.setdefault((failure.run.model_id, failure.kind), []).append(failure)
        counts = [
            FailureCount(model_id, kind, len(failed), failed[-1].message)
            for (model_id, kind), failed in of_kinds.items()
        ]
        return sorted(counts, key=lambda each: (each.model_id, -each.runs, each.kind))

    async def _answered(self, failures: Iterable[RunFailure]) -> set[str]:
        """Return the runs whose last turn has a response in the store, although they failed once.

        A run goes on at the turn that it failed at: the turns are read from there on, a hundred
        runs with one request.
        """
        answered: set[str] = set()
        asked = {each.run.run_id: each.turn for each in failures}
        while asked:
            found = await self._table.get(starmap(keys.turn, asked.items()))
            responses = {
                run: item
                for run, turn in asked.items()
                if "profile" in (item := found.get(keys.turn(run, turn), {}))
            }
            answered |= {run for run, item in responses.items() if item.get("is_last")}
            asked = {run: asked[run] + 1 for run in responses.keys() - answered}
        return answered

    async def cell_revisions(self, experiment_ids: Collection[str]) -> Mapping[str, str]:
        """Return none: a count for each experiment would be one more write unit for each fold."""
        return {}

    async def revision(self) -> str:
        return str(await revision(self._table))
