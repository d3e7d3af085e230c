"""Messages show an address without its credentials."""

import pytest

from socratic_cli.options.store import shown_address


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("sqlite:///benchmark.db", "sqlite:///benchmark.db"),
        ("sqlite:////tmp/you@home?/b.db", "sqlite:////tmp/you@home?/b.db"),
        ("postgresql://db.example/bench", "postgresql://db.example/bench"),
        ("postgresql://me:geheim@db.example:5433/bench", "postgresql://db.example:5433/bench"),
        ("postgresql://me:ge/heim@db.example/bench", "postgresql://db.example/bench"),
        ("postgresql://me:ge@heim@db.example/bench", "postgresql://db.example/bench"),
        ("postgresql://db.example/bench?password=geheim", "postgresql://db.example/bench"),
        ("postgresql://me:ge?heim@db.example/bench", "postgresql://…"),
        ("postgresql://db.example/bench?password=geh@eim", "postgresql://…"),
    ],
)
def test_an_address_is_shown_without_user_password_and_options(address, shown):
    assert shown_address(address) == shown
