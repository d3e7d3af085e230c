"""Which troubles somebody is to be told of: each at once, and none again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from socratic_bench.domain.trouble import Trouble

TELL_AGAIN_SECONDS: Final = 60.0
"""A model that answers and fails by turns is told of so often at most."""

REMEMBERED: Final = 1_000
"""Models that are remembered to have been told of, the latest ones."""


@dataclass(slots=True)
class _Told:
    at: float
    over: bool = False


class TroubleNews:
    """Remembers which troubles were told: each model's once, until it is over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds that never go back."""
        self._clock = clock
        self._told: dict[tuple[str, str], _Told] = {}

    def is_new(self, trouble: Trouble) -> bool:
        """Whether this is to be told. It counts as told from now on."""
        model, now = (trouble.experiment_id, trouble.model_id), self._clock()
        told = self._told.get(model)
        if told is not None and now - told.at < TELL_AGAIN_SECONDS:
            told.over = False
        if told is not None and not told.over:
            return False
        self._told.pop(model, None)
        self._told[model] = _Told(now)
        if len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]
        return True

    def over(self, experiment_id: str, model_id: str) -> None:
        """The model replied."""
        if told := self._told.get((experiment_id, model_id)):
            told.over = True

    def new_among(self, troubles: Iterable[Trouble]) -> list[Trouble]:
        """Those of all present troubles that are to be told. A model without any has replied."""
        troubles = list(troubles)
        present = {(each.experiment_id, each.model_id) for each in troubles}
        for model in self._told.keys() - present:
            self._told[model].over = True
        return [each for each in troubles if self.is_new(each)]
