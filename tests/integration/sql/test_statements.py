"""Every statement means the same in both dialects, and the writing ones mind conflicts."""

from __future__ import annotations

import pytest
from sqlalchemy import URL, ClauseElement, Executable

from socratic_bench.adapters.sql import statements
from socratic_bench.adapters.sql.batched import Lookups, Writes
from socratic_bench.adapters.sql.dialects import DIALECTS


def _texts(name: str) -> dict[str, str]:
    dialect = DIALECTS[name]
    everything = {**vars(statements), **vars(Writes(dialect)), **vars(Lookups(dialect))}
    compiler = URL.create(name).get_dialect()()
    return {
        name: " ".join(str(statement.compile(dialect=compiler)).split())
        for name, statement in everything.items()
        if isinstance(statement, Executable) and isinstance(statement, ClauseElement)
    }


@pytest.mark.parametrize("name", ["sqlite", "postgresql"])
def test_every_statement_compiles_for_either_dialect(name: str) -> None:
    texts = _texts(name)
    assert len(texts) >= 20
    assert "ON CONFLICT DO NOTHING RETURNING" in texts["insert_responses"]


def test_postgresql_is_given_arrays_so_that_no_text_depends_on_how_many_there_are() -> None:
    texts = _texts("postgresql")
    assert [name for name, text in texts.items() if "POSTCOMPILE" in text] == []
    assert "FROM unnest(" in texts["lease"]
    assert texts["take_cells"].endswith("FOR UPDATE")
