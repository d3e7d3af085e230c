"""The choice of troubles to report: each new one at once, and each once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from socratic_bench.domain.trouble import Trouble

REPORT_AGAIN_SECONDS: Final = 60.0
"""Seconds between two reports of a model that answers and fails in turns."""

MOST_REMEMBERED: Final = 1_000
"""The most reported models in memory; the oldest go first."""


@dataclass(slots=True)
class _Report:
    at: float
    over: bool = False


class TroubleNews:
    """Remembers reported troubles: each model's counts as new again once it is over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds that never go back."""
        self._clock = clock
        self._reports: dict[tuple[str, str], _Report] = {}

    def is_new(self, trouble: Trouble) -> bool:
        """Whether to report this trouble. It counts as reported from now on."""
        model, now = (trouble.experiment_id, trouble.model_id), self._clock()
        report = self._reports.get(model)
        if report is not None and now - report.at < REPORT_AGAIN_SECONDS:
            report.over = False
        if report is not None and not report.over:
            return False
        self._reports.pop(model, None)
        self._reports[model] = _Report(now)
        if len(self._reports) > MOST_REMEMBERED:
            del self._reports[next(iter(self._reports))]
        return True

    def over(self, experiment_id: str, model_id: str) -> None:
        """Note that the model replied."""
        if report := self._reports.get((experiment_id, model_id)):
            report.over = True

    def new_among(self, troubles: Iterable[Trouble]) -> list[Trouble]:
        """Return the troubles to report, of all present ones. A model without one has replied."""
        troubles = list(troubles)
        present = {(each.experiment_id, each.model_id) for each in troubles}
        for model in self._reports.keys() - present:
            self._reports[model].over = True
        return [each for each in troubles if self.is_new(each)]
