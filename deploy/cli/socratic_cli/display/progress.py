"""Progress of a benchmark: a line per model on a terminal, an occasional line in a pipe, and
each failing model at once.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Protocol, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed

from socratic_bench.domain.aggregates.cell import Cell, Tally
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Progress as ExperimentProgress
from socratic_bench.ports.stores.leases import Leases
from socratic_bench.reporting.costs import SpendingFigures, total_usd
from socratic_bench.reporting.formats import dollars
from socratic_bench.reporting.trouble_news import TroubleNews
from socratic_cli.display.terminal import counted, excerpt, how_far, say, standard_error

MODELS_SHOWN = 30
"""More models than this share one line."""

LINE_SECONDS: Final = 30.0
"""Seconds between two lines without a terminal."""

TROUBLE_WIDTH: Final = 400
"""The most characters of a sentence about a failing model."""

MODELS_NAMED: Final = 5
"""The most failing models that a line names."""


class ProgressStore(Leases, Aggregates, Protocol):
    """The roles of the store that the display asks."""


class ProgressDisplay:
    """Follows one experiment on standard error."""

    def __init__(
        self,
        experiment: Experiment,
        store: ProgressStore,
        find_troubles: Callable[[], Awaitable[Sequence[Trouble]]] | None = None,
    ) -> None:
        """`find_troubles` returns the failing models; without it the store is asked."""
        self._experiment = experiment
        self._store = store
        self._find_troubles = find_troubles or partial(store.troubles, experiment.experiment_id)
        self._news = TroubleNews()
        self._line_due = time.monotonic() + LINE_SECONDS
        self._cells: Sequence[Cell] = ()
        self._revision: str | None = None
        console = standard_error()
        self._shown = console.is_terminal
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False, style="yellow"),
            Elapsed(),
            console=console,
            transient=True,
            disable=not self._shown,
        )
        self._lines: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        manifest = self._experiment.manifest
        each = len(manifest.scenarios) * manifest.repeats
        if len(manifest.models) <= MODELS_SHOWN:
            for model in manifest.models:
                self._add_line(model.id, model.display_name, each)
        else:
            self._add_line("", f"{len(manifest.models)} models", manifest.planned_runs)
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def _add_line(self, key: str, name: str, total: int) -> None:
        self._lines[key] = self._bars.add_task(excerpt(name, 40), total=total, note="")

    async def update(self, progress: ExperimentProgress) -> None:
        """Show the experiment's progress, and its failing models."""
        troubles = {each.model_id: each for each in await self._find_troubles()}
        for trouble in self._news.new_among(troubles.values()):
            self._say(trouble)
        if self._shown:
            await self._move_bars(progress, troubles)
        elif time.monotonic() >= self._line_due:
            self._line_due = time.monotonic() + LINE_SECONDS
            say(await self._line(progress, troubles))

    def tell(self, trouble: Trouble) -> None:
        """Report a failing model at once, unless it was reported."""
        if self._news.is_new(trouble):
            self._say(trouble)

    def _say(self, trouble: Trouble) -> None:
        sentence = excerpt(trouble.sentence, TROUBLE_WIDTH)
        if self._shown:
            self._bars.console.print(sentence, soft_wrap=True)
        else:
            say(sentence)

    async def _move_bars(
        self, progress: ExperimentProgress, troubles: Mapping[str, Trouble]
    ) -> None:
        ended: defaultdict[str, int] = defaultdict(int)
        failed: defaultdict[str, int] = defaultdict(int)
        cost: defaultdict[str, Tally] = defaultdict(Tally)
        if "" in self._lines:
            ended[""], failed[""] = progress.done, progress.failed
        else:
            for cell in await self._present_cells():
                ended[cell.key.model_id] += cell.runs_ended
                failed[cell.key.model_id] += cell.statuses.get("error", 0)
                cost[cell.key.model_id].merge(cell.cost_nanodollars)
        for key, line in self._lines.items():
            paid = total_usd(cost[key])
            costs = "" if paid is None else dollars(paid)
            failures = f"{failed[key]} failed" if failed[key] else ""
            trouble = _in_short(troubles.get(key))
            note = "  ".join(filter(None, (costs, failures, trouble)))
            self._bars.update(line, completed=ended[key], note=note)

    async def _present_cells(self) -> Sequence[Cell]:
        """The cells of the experiment; read again only where the store has changed."""
        revision = await self._store.revision()
        if revision != self._revision:
            self._cells = await self._store.cells([self._experiment.experiment_id])
            self._revision = revision
        return self._cells

    async def _line(self, progress: ExperimentProgress, troubles: Mapping[str, Trouble]) -> str:
        experiment_id = self._experiment.experiment_id
        calls = (await self._store.calls(experiment_id)).calls
        spending = await self._store.spending(experiment_id)
        spent = SpendingFigures.of(
            spending, has_prices=self._experiment.manifest.has_prices
        ).spent_usd
        parts = (how_far(progress), counted(calls, "call"), "" if spent is None else dollars(spent))
        line = ", ".join(filter(None, parts))
        named = [f"{excerpt(each.model_id)} ({excerpt(each.kind)})" for each in troubles.values()]
        if more := len(named[MODELS_NAMED:]):
            named[MODELS_NAMED:] = [f"{more} more"]
        return f"{line}; in trouble: {', '.join(named)}" if named else line


def _in_short(trouble: Trouble | None) -> str:
    """Return the part that fits beside a bar: the sentence stands above."""
    if trouble is None:
        return ""
    tries = f" {trouble.attempt}/{trouble.attempts}" if trouble.attempt else ""
    return f"{excerpt(trouble.kind)}{tries}"
