"""Progress of a benchmark: the growing leaderboard on a terminal, an occasional line in a pipe, and
each failing model at once.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress
from rich.progress import TimeElapsedColumn as Elapsed
from rich.text import Text

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.stores.experiments import Progress as ExperimentProgress
from socratic_bench.results.costs import SpendingFigures
from socratic_bench.results.experiment_choice import CostedStore
from socratic_bench.results.experiment_status import waiting_in_batches
from socratic_bench.results.formats import figure
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_cli.display.leaderboard import growing_table
from socratic_cli.display.terminal import counted, excerpt, how_far, say, standard_error
from socratic_runner.troubles import TroubleNews

LINE_SECONDS: Final = 30.0
"""Seconds between two lines without a terminal."""

TABLE_SECONDS: Final = 1.0
"""Seconds between two tables on a terminal."""

TABLE_SHARE: Final = 0.05
"""The most of the time that tables may take: a table of many models waits for longer."""

TROUBLE_WIDTH: Final = 400
"""The most characters of a sentence about a failing model."""

MODELS_NAMED: Final = 5
"""The most models that a line names, of the first ones and of the failing ones."""


class ProgressDisplay:
    """Follows one experiment on standard error."""

    def __init__(
        self,
        experiment: Experiment,
        store: CostedStore,
        find_troubles: Callable[[], Awaitable[Sequence[Trouble]]] | None = None,
    ) -> None:
        """`find_troubles` returns the failing models; without it the store is asked."""
        self._experiment = experiment
        self._store = store
        self._find_troubles = find_troubles or partial(store.troubles, experiment.experiment_id)
        self._news = TroubleNews()
        self._comparison: ModelComparison | None = None
        self._revision: str | None = None
        console = standard_error()
        self._shown = console.is_terminal
        self._due = time.monotonic() + (0 if self._shown else LINE_SECONDS)
        self._bar = Progress(BarColumn(bar_width=30), MofNCompleteColumn(), Elapsed())
        self._runs = self._bar.add_task("", total=experiment.manifest.planned_runs)
        self._live = Live(self._bar, console=console, transient=True)

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    async def update(self, progress: ExperimentProgress) -> None:
        """Show the experiment's progress, and its failing models."""
        troubles = {each.model_id: each for each in await self._find_troubles()}
        for trouble in self._news.new_among(troubles.values()):
            self._say(trouble)
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + (TABLE_SECONDS if self._shown else LINE_SECONDS)
        await self._compare()
        line = await self._line(progress, troubles)
        if self._shown:
            self._draw(progress, line)
            took = time.monotonic() - now
            self._due = max(self._due, now + took / TABLE_SHARE)
        else:
            say("; ".join(filter(None, (line, self._first_models()))))

    def tell(self, trouble: Trouble) -> None:
        """Report a failing model at once, unless it was reported."""
        if self._news.is_new(trouble):
            self._say(trouble)

    def _say(self, trouble: Trouble) -> None:
        sentence = excerpt(trouble.sentence, TROUBLE_WIDTH)
        if self._shown:
            self._live.console.print(sentence, soft_wrap=True)
        else:
            say(sentence)

    async def _compare(self) -> None:
        """Read the leaderboard again, if the store has changed."""
        revision = await self._store.revision()
        if revision == self._revision:
            return
        try:
            self._comparison = await model_comparison(self._store, self._experiment.experiment_id)
        except InvalidInput:
            # The experiment was deleted: its end says so.
            self._comparison = None
        self._revision = revision

    def _draw(self, progress: ExperimentProgress, line: str) -> None:
        self._bar.update(self._runs, completed=progress.done)
        drawn: list[RenderableType] = [self._bar, Text(line, style="dim")]
        if self._comparison is not None:
            drawn[:0] = [growing_table(self._comparison, self._live.console.width), Text()]
        self._live.update(Group(*drawn), refresh=True)

    async def _line(self, progress: ExperimentProgress, troubles: Mapping[str, Trouble]) -> str:
        experiment_id = self._experiment.experiment_id
        calls = (await self._store.calls(experiment_id)).calls
        spending = await self._store.spending(experiment_id)
        cost = SpendingFigures.in_plan(spending, self._experiment.manifest)
        told = cost.told if cost.is_known else ""
        parts = (how_far(progress), counted(calls, "call"), told)
        line = ", ".join(filter(None, parts))
        batches = await waiting_in_batches(self._store, self._experiment)
        line = "; ".join((line, *(excerpt(each, 120) for each in batches[:MODELS_NAMED])))
        named = [f"{excerpt(each.model_id)} ({_in_short(each)})" for each in troubles.values()]
        if more := len(named[MODELS_NAMED:]):
            named[MODELS_NAMED:] = [f"{more} more"]
        return f"{line}; in trouble: {', '.join(named)}" if named else line

    def _first_models(self) -> str:
        """Return the first models with their figures, for a line."""
        models = () if self._comparison is None else self._comparison.models
        named = [
            f"{excerpt(each.model_name)} {figure(each.overall_score)} "
            f"({each.total_runs}/{each.planned_runs})"
            for each in models[:MODELS_NAMED]
            if each.overall_score is not None
        ]
        return f"so far: {', '.join(named)}" if named else ""


def _in_short(trouble: Trouble) -> str:
    """Return a few words on a failing model: its sentence stands above."""
    tries = f" {trouble.attempt}/{trouble.attempts}" if trouble.attempt else ""
    return f"{excerpt(trouble.kind)}{tries}"
