"""The tables of the SQL store, the same in every dialect.

A row is what is looked up by, and a `record`: the fact itself as JSON. Times are microseconds since
1970-01-01 UTC, money is in nanodollars. The migrations create these tables; a test holds the two
together.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, Table, Text, true

METADATA = MetaData()

KEY = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that sorts by code point in every dialect, as Python sorts it."""

INLINE = {"toast_tuple_target": 8160}
"""PostgreSQL keeps rows of up to 8 KB as they are. Beyond 2 KB, its default, it compresses them:
writing a response of usual length then takes twice as long."""

REWRITTEN = {"fillfactor": 50}
"""PostgreSQL leaves room on each page for new versions of its rows: a row that every batch rewrites
then stays on its page, whose old versions the next writer clears away."""

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
"""The row of a deleted experiment stays, with an empty object as its manifest: a tombstone."""

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
"""What experiments ask: a row for each model and scenario of each."""

RESPONSES = Table(
    "responses",
    METADATA,
    Column("run_id", KEY, primary_key=True),
    Column("turn", Integer, primary_key=True),
    Column("record", Text, nullable=False),
    postgresql_with=INLINE,
)
"""Each has a row in `CALLS`, by which those of an experiment are found."""

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
"""How often the model of a turn was called, and the lease of the latest call. Outlives the lease.

A turn whose response was stored without any lease has a row as well, with no calls.
`lease_id`: empty once the lease is over, and where a version took it that knows no ids.
`reserved`: what of `SPENDING.committed` is for the latest call, until it is known what that cost.
`lapsed`: JSON, what is reserved for earlier calls, by the ids of the leases that were taken over.
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
    postgresql_with=REWRITTEN,
)
"""A row for each experiment. Also is the lock on what is reserved for its calls."""

OWNERS = Table(
    "owners",
    METADATA,
    Column("owner", KEY, primary_key=True),
    Column("beat", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("in_hand", Text, nullable=False),
    Column("troubles", Text),
    postgresql_with=REWRITTEN,
)
"""Who takes leases. `beat` counts heartbeats; `in_hand` is JSON: pairs of experiment and model.
`troubles` is JSON, a list of records; null where no model fails.
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
"""The failures as runners stored them; those that were folded are in `FAILURES` as well."""

LIMITS = Table(
    "limits",
    METADATA,
    Column("scope", KEY, primary_key=True),
    Column("total", BigInteger, nullable=False),
    postgresql_with=REWRITTEN,
)
"""The limits that runners share, as each was last given. A row is the lock on all its shares."""

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
"""How each model is paused that ever pushed back: see `domain.pause`."""

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
"""`counted`: whether the failure is in its cell. It is not where the run ended with a response."""

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
"""The row of turn 1 also is the lock on all turns of its scenario; without responses it is no cell.
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
