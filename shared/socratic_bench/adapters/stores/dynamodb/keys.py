"""The key of every kind of item. docs/design/dynamodb.md has them in a table."""

from __future__ import annotations

import hashlib
from typing import Final

from socratic_bench.adapters.stores.dynamodb.items import SK, Item, ItemKey, joined
from socratic_bench.domain.aggregates.cell import CellKey

SHARDS: Final = 4
"""The number of partitions of an experiment's pending turns, and of its scores: each takes 1,000
write units in a second."""

REVISION_SHARDS: Final = 16
"""The number of counters of changes: two transactions at once seldom take the same one."""

LATEST: Final = 10**18
"""Microseconds since 1970-01-01 UTC: a time beyond all others."""

SCHEMA: Final = ItemKey("SCHEMA", "SCHEMA")
REVISION: Final = "REVISION"
EXPERIMENTS: Final = "EXPERIMENTS"
RUNNING: Final = "RUNNING"
DELETED: Final = "DELETED"
OWNERS: Final = "OWNERS"
FOLDED_INTO: Final = "FOLDED INTO"

LARGE_RESPONSES: Final = "responses/"
"""What the keys of objects begin with that hold responses too large for an item."""

PENDING: Final = "PENDING#"
SCORE: Final = "SCORE#"
FOLDED: Final = "FOLDED#"
TOLD: Final = "TOLD#"
TURN: Final = "TURN#"
PROFILE: Final = "PROFILE#"


def revision_shard(number: int) -> ItemKey:
    return ItemKey(REVISION, f"{number % REVISION_SHARDS:02}")


def experiment(experiment_id: str) -> ItemKey:
    """The experiment as lists show it."""
    return ItemKey(EXPERIMENTS, experiment_id)


def plan(experiment_id: str) -> ItemKey:
    return ItemKey(joined("EXPERIMENT", experiment_id), "PLAN")


def account(experiment_id: str) -> ItemKey:
    """The state and the money of an experiment, and its number of calls."""
    return ItemKey(joined("EXPERIMENT", experiment_id), "ACCOUNT")


def running(experiment_id: str) -> ItemKey:
    return ItemKey(RUNNING, experiment_id)


def deleted(experiment_id: str) -> ItemKey:
    return ItemKey(DELETED, experiment_id)


def folded_into(experiment_id: str) -> ItemKey:
    """The mark of an experiment with cells, registered or not."""
    return ItemKey(FOLDED_INTO, experiment_id)


def scored_profile(experiment_id: str, profile: str) -> ItemKey:
    """The mark of another profile than its own that an experiment has facts under."""
    return ItemKey(joined("EXPERIMENT", experiment_id), joined("PROFILE", profile))


def scored_profiles(experiment_id: str) -> tuple[str, str]:
    """The partition of the marks of an experiment's profiles, and the start of their sort keys."""
    return joined("EXPERIMENT", experiment_id), PROFILE


def conversation(conversation_key: str, created_at: int, experiment_id: str) -> ItemKey:
    """The newest experiment of a conversation sorts first."""
    newest_first = f"{LATEST - created_at:018}#{experiment_id}"
    return ItemKey(conversations(conversation_key), newest_first)


def conversations(conversation_key: str) -> str:
    return joined("CONVERSATION", conversation_key)


def run(run_id: str) -> str:
    """The partition of the turns of a run, and of its failure."""
    return joined("RUN", run_id)


def turn(run_id: str, number: int) -> ItemKey:
    return ItemKey(run(run_id), joined("TURN", number))


def number_of_turn(item: Item) -> int:
    """The number in the key of a turn."""
    return int(str(item[SK]).removeprefix(TURN))


def recorded_failure(run_id: str) -> ItemKey:
    return ItemKey(run(run_id), "FAILURE")


def shard_of(run_id: str) -> int:
    return hashlib.blake2b(run_id.encode(), digest_size=1).digest()[0] % SHARDS


def facts(experiment_id: str, shard: int) -> str:
    """A partition of pending turns and scores."""
    return joined("FACTS", experiment_id, shard)


def pending(experiment_id: str, run_id: str, number: int) -> ItemKey:
    return ItemKey(facts(experiment_id, shard_of(run_id)), joined("PENDING", run_id, number))


def score(experiment_id: str, run_id: str, profile: str, number: int) -> ItemKey:
    return ItemKey(facts(experiment_id, shard_of(run_id)), joined("SCORE", run_id, profile, number))


def scores_of_run(experiment_id: str, run_id: str, profile: str) -> tuple[str, str]:
    """The partition of a run's scores under a profile, and the beginning of their sort keys."""
    return facts(experiment_id, shard_of(run_id)), f"{joined('SCORE', run_id, profile)}#"


def failures(experiment_id: str) -> str:
    return joined("FAILURES", experiment_id)


def folded_failure(experiment_id: str, run_id: str, profile: str) -> ItemKey:
    return ItemKey(failures(experiment_id), joined("FOLDED", run_id, profile))


def failures_of_run(experiment_id: str, run_id: str) -> tuple[str, str]:
    """The partition of the folded failures of a run, and the beginning of their sort keys."""
    return failures(experiment_id), f"{joined('FOLDED', run_id)}#"


def told_failure(experiment_id: str, run_id: str) -> ItemKey:
    """The mark of a failure that a runner recorded."""
    return ItemKey(failures(experiment_id), joined("TOLD", run_id))


def cells(experiment_id: str) -> str:
    return joined("CELLS", experiment_id)


def cell(key: CellKey) -> ItemKey:
    """Names of any length have digests of one length here: a sort key has at most 1,024 bytes."""
    names = [_digest(name) for name in (key.model_id, key.scenario_id, key.profile)]
    return ItemKey(cells(key.experiment_id), joined(*names, key.turn))


def cells_of_model(experiment_id: str, model_id: str) -> tuple[str, str]:
    """The partition of the cells of a model, and the beginning of their sort keys."""
    return cells(experiment_id), f"{_digest(model_id)}#"


def owner(name: str) -> ItemKey:
    return ItemKey(OWNERS, name)


def limit(scope: str) -> ItemKey:
    return ItemKey(joined("LIMIT", scope), "LIMIT")


def pause(scope: str) -> ItemKey:
    return ItemKey(joined("PAUSE", scope), "PAUSE")


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=12).hexdigest()
