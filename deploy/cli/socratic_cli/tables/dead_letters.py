"""Dead letters as a table for people."""

from __future__ import annotations

from collections.abc import Iterable

from socratic_bench.ports.broker import DeadLetter
from socratic_cli.display.terminal import excerpt, name_of
from socratic_cli.tables.fitting import Column, FittingTable

REASON_SHOWN = 300
"""The most characters of a reason in a table; `--json` has all of it."""

_COLUMNS = (
    Column("queue", "left", is_name=True),
    Column("message id", "left", is_name=True),
    Column("group", "left", drop=1, is_name=True),
    Column("attempts", drop=2),
    Column("reason", "left", folds=True),
)


def dead_letters_table(letters: Iterable[DeadLetter]) -> FittingTable:
    """Make the table. Anybody may have written a message: it is shown as text, without control
    characters.
    """
    rows = [
        (
            letter.queue,
            name_of(letter.message.id, 120),
            name_of(letter.message.group, 80),
            str(letter.attempts),
            excerpt(letter.reason, REASON_SHOWN),
        )
        for letter in letters
    ]
    return FittingTable(_COLUMNS, rows, "see --json")
