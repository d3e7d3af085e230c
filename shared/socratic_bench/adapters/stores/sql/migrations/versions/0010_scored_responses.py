"""A view with plain columns of every scored response, for tools that read SQL."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"

VIEW = """
CREATE VIEW scored_responses AS
SELECT
    e.experiment_id,
    {manifest_name} AS experiment,
    e.occasion,
    {created_at} AS created_at,
    s.profile,
    {score_model_id} AS model_id,
    {score_scenario_id} AS scenario_id,
    {score_dimension} AS dimension,
    {score_repeat} AS repeat,
    s.turn,
    {score_status} AS status,
    {score_verbosity} AS verbosity,
    {score_exploratory} AS exploratory,
    {score_interrogative} AS interrogative,
    {score_overall} AS overall,
    {score_vectors} AS vectors,
    {response_student_message} AS student_message,
    {response_text} AS text,
    {response_input_tokens} AS input_tokens,
    {response_visible_output_tokens} AS visible_output_tokens,
    {response_reasoning_tokens} AS reasoning_tokens,
    {response_latency_ms} AS latency_ms,
    {response_cost} / 1e9 AS cost_usd,
    {response_stop_reason} AS stop_reason,
    {response_model_version} AS model_version,
    {response_recorded_at} AS recorded_at,
    {response_adopted_from} AS adopted_from,
    s.run_id
FROM scores AS s
JOIN experiments AS e ON e.experiment_id = s.experiment_id
JOIN responses AS r ON r.run_id = s.run_id AND r.turn = s.turn
"""

FIELDS = {
    "manifest_name": ("e.manifest", "name", "text"),
    "score_model_id": ("s.record", "run.model_id", "text"),
    "score_scenario_id": ("s.record", "run.scenario_id", "text"),
    "score_dimension": ("s.record", "run.dimension", "text"),
    "score_repeat": ("s.record", "run.repeat", "bigint"),
    "score_status": ("s.record", "status", "text"),
    "score_verbosity": ("s.record", "vectors.verbosity", "double precision"),
    "score_exploratory": ("s.record", "vectors.exploratory", "double precision"),
    "score_interrogative": ("s.record", "vectors.interrogative", "double precision"),
    "score_overall": ("s.record", "overall", "double precision"),
    "score_vectors": ("s.record", "vectors", "text"),
    "response_student_message": ("r.record", "student_message", "text"),
    "response_text": ("r.record", "text", "text"),
    "response_input_tokens": ("r.record", "usage.input_tokens", "bigint"),
    "response_visible_output_tokens": ("r.record", "usage.visible_output_tokens", "bigint"),
    "response_reasoning_tokens": ("r.record", "usage.reasoning_tokens", "bigint"),
    "response_latency_ms": ("r.record", "latency_ms", "bigint"),
    "response_cost": ("r.record", "cost_nanodollars", "double precision"),
    "response_stop_reason": ("r.record", "stop_reason", "text"),
    "response_model_version": ("r.record", "model_version", "text"),
    "response_recorded_at": ("r.record", "recorded_at", "text"),
    "response_adopted_from": ("r.record", "adopted_from", "text"),
}
"""A field of a record each: the column with the JSON, the path in it, PostgreSQL's type."""


def upgrade() -> None:
    in_sqlite = op.get_bind().dialect.name == "sqlite"
    expression = _in_sqlite if in_sqlite else _in_postgresql
    created_at = (
        "strftime('%Y-%m-%dT%H:%M:%SZ', e.created_at / 1000000, 'unixepoch')"
        if in_sqlite
        else "to_timestamp(e.created_at / 1e6)"
    )
    fields = {name: expression(*field) for name, field in FIELDS.items()}
    op.execute(VIEW.format(created_at=created_at, **fields).replace(":", r"\:"))


def _in_sqlite(record: str, path: str, _kind: str) -> str:
    return f"json_extract({_without_nul(record)}, '$.{path}')"


def _in_postgresql(record: str, path: str, kind: str) -> str:
    names = path.replace(".", ",")
    return f"CAST({_without_nul(record)}::json #>> '{{{names}}}' AS {kind})"


def _without_nul(record: str) -> str:
    """Return a record that every row of the view can be read from.

    PostgreSQL refuses a text with NUL, and SQLite ends it there.
    """
    return f"replace({record}, '\\u0000', '\\ufffd')"
