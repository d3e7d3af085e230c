"""An experiment as lists show it: all but its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.items import (
    SK,
    VERSION,
    Item,
    at,
    packed,
    unpacked,
)
from socratic_bench.adapters.stores.records import Records, microseconds, time_at
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.experiment.state import ExperimentState


@dataclass(frozen=True, slots=True)
class Listed:
    """An experiment without its plan, or the tombstone of one. Times are in microseconds."""

    experiment_id: str
    occasion: str | None
    profile: str
    planned_runs: int
    created_at: int
    completed_at: int | None
    state: ExperimentState
    is_submitted: bool
    planned_at: int | None = None
    is_exhausted: bool = False
    are_conversations_stored: bool = False
    version: int = 0
    """The version that was read; 0: it is not stored."""

    @property
    def is_deleted(self) -> bool:
        return self.state is ExperimentState.DELETED

    @property
    def is_running(self) -> bool:
        """Whether services carry it out, or did until it was stopped."""
        return self.is_submitted and self.completed_at is None and not self.is_deleted

    def item(self) -> Item:
        """The item without its version."""
        return at(
            keys.experiment(self.experiment_id),
            {
                "occasion": self.occasion,
                "profile": self.profile,
                "planned_runs": self.planned_runs,
                "created_at": self.created_at,
                "completed_at": self.completed_at,
                "state": str(self.state),
                "submitted": self.is_submitted,
                "planned_at": self.planned_at,
                "exhausted": self.is_exhausted,
                "asked": self.are_conversations_stored,
            },
        )


def listed(experiment: Experiment) -> Listed:
    completed_at = experiment.completed_at
    return Listed(
        experiment_id=experiment.experiment_id,
        occasion=experiment.occasion,
        profile=experiment.manifest.profile,
        planned_runs=experiment.manifest.planned_runs,
        created_at=microseconds(experiment.created_at),
        completed_at=None if completed_at is None else microseconds(completed_at),
        state=experiment.state,
        is_submitted=experiment.submitted,
    )


def listed_of_item(item: Item) -> Listed:
    occasion = item.get("occasion")
    return Listed(
        experiment_id=str(item[SK]),
        occasion=None if occasion is None else str(occasion),
        profile=str(item["profile"]),
        planned_runs=int(item["planned_runs"]),
        created_at=int(item["created_at"]),
        completed_at=_time(item, "completed_at"),
        state=ExperimentState(str(item["state"])),
        is_submitted=bool(item["submitted"]),
        planned_at=_time(item, "planned_at"),
        is_exhausted=bool(item.get("exhausted", False)),
        are_conversations_stored=bool(item.get("asked", False)),
        version=int(item[VERSION]),
    )


def newest_first(experiments: Iterable[Listed]) -> list[Listed]:
    return sorted(experiments, key=lambda each: (-each.created_at, each.experiment_id))


def plan_item(experiment_id: str, manifest: str) -> Item:
    return at(keys.plan(experiment_id), {"record": packed(manifest)})


def manifest_of(plan: Item) -> str:
    return unpacked(plan["record"])


def _time(item: Mapping[str, Any], name: str) -> int | None:
    return None if name not in item else int(item[name])


def _experiment(row: Sequence[Any]) -> Experiment:
    """Read (experiment_id, manifest, what lists show)."""
    experiment_id, manifest, listed = row
    return Experiment(
        experiment_id=experiment_id,
        manifest=Manifest.model_validate_json(manifest, extra="ignore"),
        occasion=listed.occasion,
        created_at=time_at(listed.created_at),
        completed_at=None if listed.completed_at is None else time_at(listed.completed_at),
        state=listed.state,
        submitted=listed.is_submitted,
    )


PLANS = Records("experiments", 1, _experiment)
