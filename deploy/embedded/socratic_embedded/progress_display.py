"""What a person sees while a benchmark runs: a line a model on a terminal, nothing in a pipe."""

from __future__ import annotations

from collections import defaultdict
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed

from socratic_bench.domain.cell import Tally
from socratic_bench.domain.manifest import Experiment
from socratic_bench.ports.store import Progress as ExperimentProgress
from socratic_bench.ports.store import Store
from socratic_bench.reporting.costs import dollars, total_usd
from socratic_embedded.terminal import excerpt, standard_error

MODELS_SHOWN = 30
"""More models than this share one line."""


class ProgressDisplay:
    """Follows one experiment on standard error; silent where that is no terminal."""

    def __init__(self, experiment: Experiment, store: Store) -> None:
        self._experiment = experiment
        self._store = store
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
        """Show how far the experiment is."""
        if not self._shown:
            return
        ended: defaultdict[str, int] = defaultdict(int)
        failed: defaultdict[str, int] = defaultdict(int)
        cost: defaultdict[str, Tally] = defaultdict(Tally)
        if "" in self._lines:
            ended[""], failed[""] = progress.done, progress.failed
        else:
            for cell in await self._store.cells([self._experiment.experiment_id]):
                ended[cell.key.model_id] += cell.runs_ended
                failed[cell.key.model_id] += cell.statuses.get("error", 0)
                cost[cell.key.model_id].merge(cell.cost_nanodollars)
        for key, line in self._lines.items():
            paid = total_usd(cost[key])
            costs = "" if paid is None else dollars(paid)
            failures = f"{failed[key]} failed" if failed[key] else ""
            note = "  ".join(filter(None, (costs, failures)))
            self._bars.update(line, completed=ended[key], note=note)
