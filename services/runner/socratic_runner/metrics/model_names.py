"""The names of models in metrics: a bounded number of them."""

from __future__ import annotations

from typing import Final

MODELS: Final = 200
"""The number of models with series of their own. A model's id is any text: without a bound, the
series could take any amount of memory in the runner and in Prometheus."""

OTHER: Final = "other"
"""The name that all further models share."""


class ModelNames:
    """The names of one runner's models; all of its metrics share them."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def name(self, model_id: str) -> str:
        """Return the model's own id for the first MODELS models, OTHER for later ones."""
        # A submitter names models, so the number of series needs a bound.
        if model_id not in self._named and len(self._named) >= MODELS:
            return OTHER
        self._named.add(model_id)
        return model_id
