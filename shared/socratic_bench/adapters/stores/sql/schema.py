"""The tables of the SQL store, the same in every dialect.

A row has its searched columns and a `record`: the fact as JSON. Times are microseconds since
1970-01-01 UTC, money is in nanodollars. The migrations create these tables; a test compares both.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    false,
    true,
)

METADATA = MetaData()

KEY = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that sorts by code point in every dialect, as in Python."""

INLINE = {"toast_tuple_target": 8160}
"""PostgreSQL leaves rows of up to 8 KB uncompressed. With its default, 2 KB, writing a response of
usual length takes twice as long."""

REWRITTEN = {"fillfactor": 50}
"""PostgreSQL leaves room on each page for new versions of rows: a row that every batch rewrites
stays on its page, and the next writer clears old versions away."""

EXPERIMENTS = Table(
    "experiments",
    METADATA,
    Column("experiment_id", KEY, primary_key=True),
    Column("manifest", Text, nullable=False),
    Column("occasion", Text),
    Column("profile", KEY, nullable=False),
    Column("planned_runs", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("completed_at", BigInteger),
    Column("revision", BigInteger, nullable=False),
    Column("planned_at", BigInteger),
    Column("state", Text, nullable=False, server_default="open"),
    Column("submitted", Boolean, nullable=False, server_default=true()),
)
"""The row of a deleted experiment stays, with NO_MANIFEST: a tombstone."""

NO_MANIFEST = "{}"

IS_RUNNING = EXPERIMENTS.c.completed_at.is_(None)
"""The condition of the index below, too."""

Index(
    "running_experiments",
    EXPERIMENTS.c.created_at,
    postgresql_where=IS_RUNNING,
    sqlite_where=IS_RUNNING,
)

CONVERSATIONS = Table(
    "conversations",
    METADATA,
    Column("conversation_key", KEY, primary_key=True),
    Column("experiment_id", KEY, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Index("conversations_of_experiments", "experiment_id"),
    sqlite_with_rowid=False,
)
"""The conversations of experiments: a row for each model and scenario of each."""

RESPONSES = Table(
    "responses",
    METADATA,
    Column("run_id", KEY, primary_key=True),
    Column("turn", Integer, primary_key=True),
    Column("record", Text, nullable=False),
    postgresql_with=INLINE,
)
"""Each has a row in `CALLS`, which finds the responses of an experiment."""

CALLS = Table(
    "calls",
    METADATA,
    Column("experiment_id", KEY, primary_key=True),
    Column("run_id", KEY, primary_key=True),
    Column("turn", Integer, primary_key=True),
    Column("calls", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("leased_until", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
    Column("lease_id", Text, nullable=False, server_default=""),
    Column("lapsed", Text),
    sqlite_with_rowid=False,
)
"""The number of calls for a turn, and the lease of the latest call. Outlives the lease.

A turn whose response was stored without a lease has a row too, with no calls.
`lease_id`: empty once the lease is over, and for a lease of a version without ids.
`reserved`: the part of `SPENDING.committed` for the latest call, until its cost is known.
`lapsed`: JSON, the reservations for earlier calls, by the ids of leases that were taken over.
"""

HAS_RESERVATION = CALLS.c.reserved > 0
"""The condition of the index below, too."""

Index(
    "reservations",
    CALLS.c.experiment_id,
    CALLS.c.leased_until,
    postgresql_where=HAS_RESERVATION,
    sqlite_where=HAS_RESERVATION,
)

SPENDING = Table(
    "spending",
    METADATA,
    Column("experiment_id", KEY, primary_key=True),
    Column("budget", BigInteger),
    Column("committed", BigInteger, nullable=False),
    Column("exhausted", Boolean, nullable=False),
    Column("paid", BigInteger, nullable=False, server_default="0"),
    Column("reused", BigInteger, nullable=False, server_default="0"),
    postgresql_with=REWRITTEN,
)
"""A row for each experiment, which is the lock on its reservations too."""

OWNERS = Table(
    "owners",
    METADATA,
    Column("owner", KEY, primary_key=True),
    Column("beat", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("in_hand", Text, nullable=False),
    Column("troubles", Text),
    Column("overdue", Boolean, nullable=False, server_default=false()),
    postgresql_with=REWRITTEN,
)
"""The owners of leases. `beat` counts heartbeats; `in_hand` is JSON: pairs of experiment and model.
`troubles` is JSON, a list of records; null where no model fails. `overdue` tells that an owner has
to store outcomes of calls whose leases are over.
"""

FAILED_RUNS = Table(
    "failed_runs",
    METADATA,
    Column("run_id", KEY, primary_key=True),
    Column("experiment_id", KEY, nullable=False),
    Column("retry", BigInteger, nullable=False),
    Column("record", Text, nullable=False),
    Index("failed_runs_of_experiments", "experiment_id"),
)
"""The failures that runners stored; `FAILURES` has the folded ones too."""

LIMITS = Table(
    "limits",
    METADATA,
    Column("scope", KEY, primary_key=True),
    Column("total", BigInteger, nullable=False),
    postgresql_with=REWRITTEN,
)
"""The shared limits, as last claimed. A row is the lock on all its shares."""

SHARES = Table(
    "shares",
    METADATA,
    Column("scope", KEY, primary_key=True),
    Column("owner", KEY, primary_key=True),
    Column("parts", BigInteger, nullable=False),
    Column("wants", BigInteger, nullable=False),
    Column("held_until", BigInteger, nullable=False),
    postgresql_with=REWRITTEN,
)

PAUSES = Table(
    "pauses",
    METADATA,
    Column("scope", KEY, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("in_a_row", BigInteger, nullable=False),
    Column("paused_until", BigInteger, nullable=False),
    Column("next_call", BigInteger, nullable=False),
    Column("gap", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reason", Text, nullable=False),
    postgresql_with=REWRITTEN,
)
"""The pause of each model that ever pushed back: see `domain.pause`."""

SCORES = Table(
    "scores",
    METADATA,
    Column("experiment_id", KEY, primary_key=True),
    Column("run_id", KEY, primary_key=True),
    Column("turn", Integer, primary_key=True),
    Column("profile", KEY, primary_key=True),
    Column("last_turn", Boolean, nullable=False),
    Column("record", Text, nullable=False),
)

FAILURES = Table(
    "failures",
    METADATA,
    Column("experiment_id", KEY, primary_key=True),
    Column("run_id", KEY, primary_key=True),
    Column("profile", KEY, primary_key=True),
    Column("counted", Boolean, nullable=False),
    Column("record", Text, nullable=False),
)
"""`counted`: whether the cell counts the failure; not if the run ended with a response."""

CELLS = Table(
    "cells",
    METADATA,
    Column("experiment_id", KEY, primary_key=True),
    Column("model_id", KEY, primary_key=True),
    Column("scenario_id", KEY, primary_key=True),
    Column("turn", Integer, primary_key=True),
    Column("profile", KEY, primary_key=True),
    Column("dimension", Text, nullable=False),
    Column("responses", BigInteger, nullable=False),
    Column("runs_ended", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("record", Text, nullable=False),
    postgresql_with=REWRITTEN,
)
"""The row of turn 1 is the lock on all turns of its scenario too; without responses it is only
that.
"""

CHANGES = Table(
    "changes",
    METADATA,
    Column("shard", Integer, primary_key=True),
    Column("changes", BigInteger, nullable=False),
    postgresql_with=REWRITTEN,
)
"""How often cells and experiments have changed, in all shards together. Triggers count, so that
versions that do not know the table count too. In PostgreSQL a connection has one of the shards:
two that fold at the same time seldom wait for each other's commit.
"""
