"""What a reconciler remembers of running experiments from pass to pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.ports.stores.experiments import RunningExperiment

QUIET_SECONDS: Final = 45.0
"""Nothing may have changed for so long before anything is sent again."""

LONGEST_QUIET_SECONDS: Final = 3_600.0
"""The time doubles whenever something was sent again; it grows no longer than this."""

LOOKS_WHILE_IDLE: Final = 8
"""The reconciler looks at an experiment in which nothing changed for longer than the quiet time
again after an eighth of the excess."""

LONGEST_LOOK_SECONDS: Final = 60.0
"""The reconciler looks at every experiment at least so often, however long nothing changed."""


class Watched:
    """Something that should come to its end by itself."""

    def __init__(self, quiet: float, first: float) -> None:
        """It must not have changed for `first` seconds before something is sent again, and for
        `quiet` seconds, then twice as long, and so on, before it is sent another time.
        """
        self._quiet = quiet
        self._first = first
        self._seen: object = None
        self._since = 0.0
        self._wait = first

    def is_stuck(self, seen: object, now: float) -> bool:
        """Whether it has looked like this for so long that something has to be done."""
        if seen != self._seen:
            self._seen, self._since, self._wait = seen, now, self._first
        return now - self._since >= self._wait

    def touch(self, now: float) -> None:
        """Note that somebody has it in hand."""
        self._since = now

    def waits(self, now: float) -> None:
        """Note that the broker holds it and nobody takes it: if it vanishes, the broker lost it."""
        self._since, self._wait = now, self._first

    def sent_again(self, now: float) -> None:
        """Wait longer before it is sent another time."""
        self._since = now
        self._wait = min(max(2 * self._wait, self._quiet), LONGEST_QUIET_SECONDS)


class WatchedModel(Watched):
    """The runs of one model."""

    def __init__(self, quiet: float) -> None:
        super().__init__(quiet, quiet)
        self.looked_up = 0
        """The number of its runs, in their order, up to which lost ones are already requested; 0
        where no request is cut short. Its runs end meanwhile, which is no sign of life of the
        others."""


class WatchedExperiment:
    """A running experiment, and what of it should come to an end by itself."""

    def __init__(self, experiment: Experiment, quiet: float) -> None:
        self.experiment = experiment
        self._quiet = quiet
        self._row: RunningExperiment | None = None
        self._ended: Mapping[str, int] | None = None
        self._changed_at = self._looked_at = 0.0
        self.progress = Watched(quiet, quiet)
        self.plan = Watched(quiet, quiet)
        self.models = {model.id: WatchedModel(quiet) for model in experiment.manifest.models}
        self.has_more = False
        """Whether the last pass left lost runs to the next one."""
        # Looked for only where there was no progress for long.
        self.responses = Watched(quiet, 0.0)
        self.failures = Watched(quiet, 0.0)

    def missing(self, ended: Mapping[str, int], manifest: Manifest) -> dict[str, int]:
        """How many runs of each model of this plan have not ended; no model without any."""
        of_a_model = manifest.planned_runs // len(manifest.models)
        left = {model: of_a_model - ended.get(model, 0) for model in sorted(self.models)}
        return {model: runs for model, runs in left.items() if runs > 0}

    def is_due(self, row: RunningExperiment, now: float) -> bool:
        """Whether to look at it now: the longer nothing has changed, the less often."""
        if row != self._row:
            self._row, self._changed_at = row, now
            return True
        if self.has_more:
            return True
        idle = now - self._changed_at - self._quiet
        return now - self._looked_at >= min(idle / LOOKS_WHILE_IDLE, LONGEST_LOOK_SECONDS)

    def looked(self, ended: Mapping[str, int], now: float) -> None:
        """Note that so many runs of each model have ended now."""
        self._looked_at = now
        if ended != self._ended:
            self._ended, self._changed_at = ended, now
