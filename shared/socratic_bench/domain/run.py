"""A run: one model x one scenario x one repeat, the unit of planning, progress and failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.identifiers import run_id

MOST_TURNS: Final = 2**31 - 1
"""The largest value of a 32-bit column."""

MOST_REPEATS: Final = 100_000
"""The most repeats of a plan."""

MOST_NANODOLLARS: Final = 10**15
"""The most that one call may cost: a million dollars."""

MOST_MILLISECONDS: Final = 10**11
"""The longest time of a call: three years."""

MOST_ATTEMPTS: Final = 1_000_000

GRADING_PREFIX: Final = "grading-"
STUDENT_PREFIX: Final = "student-"
SIDE_PREFIXES: Final = (GRADING_PREFIX, STUDENT_PREFIX)
"""The beginnings of the names of side runs."""


def is_side_run(run_id: str) -> bool:
    """Whether a run is one of a grader or of a student's model: its responses need no score."""
    return run_id.startswith(SIDE_PREFIXES)


Priority = Literal["normal", "high"]
"""The priority of an experiment's runs: a model's calls go to runs of both in turn."""

NORMAL: Final = "normal"


RETRIES: Final = "retries"
"""The group of all requests to retry failed runs. Their experiment may be complete: runners serve
the groups of its models no longer."""


def request_group(model_id: str, priority: str) -> str:
    """Return the group of requests of runs in the runners' queue. No model's id is another's group:
    none has a colon before its first slash.
    """
    return model_id if priority == NORMAL else f"{priority}:{model_id}"


def request_groups(model_ids: Iterable[str], priority: str) -> frozenset[str]:
    """Return the groups that hold requests of an experiment. Those from before a raise of its
    priority, and those that an older version repeats, are in the groups of normal priority.
    """
    both = {NORMAL, priority}
    return frozenset(request_group(model, each) for model in model_ids for each in both)


class Run(BaseModel):
    """The identity of a run. Every event about a run carries it."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    """The run's id, derived from the experiment, the model, the scenario and the repeat."""

    experiment_id: str
    """The experiment whose plan has the run."""

    model_id: str
    """The model under test, as `provider/name`."""

    scenario_id: str
    """The scenario of the run."""

    dimension: str
    """The scenario's testing condition."""

    repeat: int = Field(ge=1, le=MOST_REPEATS)
    """The number of this repeat of the model and the scenario, from 1."""

    @property
    def is_named_by_its_parts(self) -> bool:
        """Whether the id is that of the experiment, the model, the scenario and the repeat."""
        return self.run_id == run_id(
            self.experiment_id, self.model_id, self.scenario_id, self.repeat
        )


def batches(runs: Iterable[Run], size: int) -> Iterator[list[Run]]:
    """Yield `runs` in order, `size` at a time, without holding more of them."""
    remaining = iter(runs)
    while batch := list(islice(remaining, size)):
        yield batch


class RunFailure(BaseModel):
    """A run without a response after all its tries."""

    model_config = ConfigDict(frozen=True)

    run: Run
    """The run that failed."""

    turn: int = Field(ge=1, le=MOST_TURNS)
    """The turn that the run failed at."""

    profile: str
    """The profile of the experiment."""

    kind: str
    """The class of the failure, such as `rate_limited`."""

    message: str
    """The provider's words."""

    attempts: int = Field(ge=0, le=MOST_ATTEMPTS)
    """Calls of the turn; 0 where the model could not be called at all."""
