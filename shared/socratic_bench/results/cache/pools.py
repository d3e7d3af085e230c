"""The cells of a table, with those of unchanged complete experiments pooled once.

A copied answer is the answer that the older experiment got: a model compared with itself would
agree with itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from socratic_bench.domain.aggregates.answers import answers_in
from socratic_bench.domain.aggregates.cell import Cell, CellKey, fold, merge_into
from socratic_bench.domain.aggregates.leaderboard import Pool, RowKey, Rows, asked_of, pooled
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.results.experiment_choice import cells_under
from socratic_bench.scoring.answer_notes import REUSED
from socratic_bench.scoring.weighted_profile import stored_profile

MOST_CELLS: Final = 40_000
"""The most cells of a table, which take 100 MB; beyond, the table leaves out older experiments."""

EXPERIMENTS_PER_QUERY: Final = 10
"""Experiments whose cells one query reads, uncounted cells included."""

CellsOfModel: TypeAlias = dict[tuple[str, str], list[Cell]]
"""By experiment and model."""


class Count(NamedTuple):
    """The numbers of an experiment under a profile."""

    done: int
    """Its done runs."""

    cells: int
    """Its counted cells."""


class TableCells(NamedTuple):
    """The cells of a table."""

    cells: Sequence[Cell]
    """The counted cells of experiments that are in no pool."""

    done: Mapping[str, int]
    """The number of done runs of each experiment that the table can hold."""

    pools: Mapping[RowKey, Pool]


class _Kept(NamedTuple):
    """The pools of the last table."""

    profile: str | None
    pools: Mapping[RowKey, Pool]
    revisions: Mapping[str, str]
    """The cell revision of each experiment in a pool."""

    counts: Mapping[str, Count]


_NOTHING: Final = _Kept(None, {}, {}, {})


@dataclass(slots=True)
class KnownPools:
    """The pools of the last table of all experiments.

    A complete experiment stays in its pools until it has another cell revision; then its rows are
    pooled anew. Experiments that may share conversations are in one pool, or in none.
    """

    _kept: _Kept = field(default=_NOTHING)

    async def read(
        self,
        store: Aggregates,
        rows: Rows,
        experiments: Sequence[ExperimentOutline],
        profile: str,
    ) -> TableCells:
        """Return the cells of the experiments under a profile, newest first, up to MOST_CELLS."""
        complete = [each.experiment_id for each in experiments if each.completed_at]
        revisions = await store.cell_revisions(complete)
        kept = _still_right(self._kept, rows, revisions, profile)
        counts, read = await _read(store, rows, experiments, profile, kept)
        if not all(pool.experiment_ids <= counts.keys() for pool in kept.pools.values()):
            kept = _NOTHING
            counts, read = await _read(store, rows, experiments, profile, kept)
        held = _within(rows, counts)
        # In a thread: many cells take long.
        pools = await asyncio.to_thread(_settled, held, read, revisions, kept.pools)
        pooled_ids = {id_ for pool in pools.values() for id_ in pool.experiment_ids}
        self._kept = _Kept(profile, pools, {id_: revisions[id_] for id_ in pooled_ids}, counts)
        rest = [
            cell
            for key, several in held.items()
            for each in several
            if key not in pools or each.experiment_id not in pools[key].experiment_ids
            for cell in read.get((each.experiment_id, key.model_id), ())
        ]
        return TableCells(rest, {id_: each.done for id_, each in counts.items()}, pools)


async def read_cells(
    store: Aggregates, rows: Rows, experiments: Sequence[ExperimentOutline], profile: str
) -> TableCells:
    """Return the cells of the experiments under a profile, newest first, up to MOST_CELLS."""
    counts, read = await _read(store, rows, experiments, profile, _NOTHING)
    cells = [cell for of_model in read.values() for cell in of_model]
    return TableCells(cells, {id_: each.done for id_, each in counts.items()}, {})


async def _read(
    store: Aggregates,
    rows: Rows,
    experiments: Sequence[ExperimentOutline],
    profile: str,
    kept: _Kept,
) -> tuple[dict[str, Count], CellsOfModel]:
    """Count each experiment that the table can hold, and return the counted cells outside pools."""
    counting = {
        (each.experiment_id, key.model_id): key for key, several in rows.items() for each in several
    }
    unpooled = {
        id_
        for (id_, _), key in counting.items()
        if key not in kept.pools or id_ not in kept.pools[key].experiment_ids
    }
    counts: dict[str, Count] = {}
    found: CellsOfModel = defaultdict(list)
    total = 0
    for start in range(0, len(experiments), EXPERIMENTS_PER_QUERY):
        if total >= MOST_CELLS:
            break
        ids = [each.experiment_id for each in experiments[start : start + EXPERIMENTS_PER_QUERY]]
        for id_ in ids:
            counts[id_] = Count(0, 0) if id_ in unpooled else kept.counts[id_]
        if unread := unpooled.intersection(ids):
            own = await store.cells(unread, profile=stored_profile(profile))
            for cell in cells_under(own, profile):
                done, cells = counts[cell.key.experiment_id]
                of_model = (cell.key.experiment_id, cell.key.model_id)
                is_counted = of_model in counting
                counts[of_model[0]] = Count(done + cell.runs_ended, cells + is_counted)
                if is_counted:
                    found[of_model].append(cell)
        total += sum(counts[id_].cells for id_ in ids)
    return counts, found


def _still_right(kept: _Kept, rows: Rows, revisions: Mapping[str, str], profile: str) -> _Kept:
    """Return the pools whose experiments have not changed, and share nothing with others."""
    if kept.profile != profile:
        return _NOTHING
    changed = {id_ for id_, each in kept.revisions.items() if revisions.get(id_) != each}
    right: dict[RowKey, Pool] = {}
    for key, several in rows.items():
        pool = kept.pools.get(key)
        if pool is None or not changed.isdisjoint(pool.experiment_ids):
            continue
        others = [each for each in several if each.experiment_id not in pool.experiment_ids]
        if pool.asked.isdisjoint(asked_of(key.model_id, each) for each in others):
            right[key] = pool
    return kept._replace(pools=right)


def _within(rows: Rows, held: Mapping[str, Count]) -> Rows:
    kept = (
        (key, tuple(each for each in several if each.experiment_id in held))
        for key, several in rows.items()
    )
    return {key: several for key, several in kept if several}


def _settled(
    rows: Rows, read: CellsOfModel, revisions: Mapping[str, str], pools: Mapping[RowKey, Pool]
) -> dict[RowKey, Pool]:
    """Return the pool of each row, with the complete experiments that are new to it."""
    found: dict[RowKey, Pool] = {}
    for key, several in rows.items():
        pool = pools.get(key)
        new = [
            each
            for each in several
            if pool is None or each.experiment_id not in pool.experiment_ids
        ]
        running = {
            asked_of(key.model_id, each) for each in new if each.experiment_id not in revisions
        }
        settled = [each for each in new if asked_of(key.model_id, each) not in running]
        if settled:
            cells = [
                cell
                for each in settled
                for cell in read.get((each.experiment_id, key.model_id), ())
            ]
            more = pooled(key.model_id, settled, cells)
            pool = more if pool is None else pool.with_more(more)
        if pool is not None:
            found[key] = pool
    return found


def copies_in(cells: Iterable[Cell]) -> tuple[int, int]:
    """Return the copies among the answers of these cells, and the answers."""
    answers = answers_in(cells)
    return answers.notes.get(REUSED, 0), answers.count


async def own_answers(store: Aggregates, experiment_id: str, cells: Sequence[Cell]) -> list[Cell]:
    """Return these cells of an experiment, folded anew from the scores of its own answers.

    Without copies they are the cells themselves.
    """
    if not copies_in(cells)[0]:
        return list(cells)
    profile = cells[0].key.profile
    # Scores are those of the profile without other weights.
    wanted = {cell.key._replace(profile=stored_profile(profile)) for cell in cells}
    own: dict[CellKey, Cell] = {}
    async for scores in store.score_rows(experiment_id):
        asked = [scored for scored in scores if not scored.counts.get(REUSED)]
        folded = await asyncio.to_thread(fold, asked, ())
        merge_into(own, {key: cell for key, cell in folded.items() if key in wanted})
    return cells_under(own.values(), profile)
