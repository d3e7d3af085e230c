"""No password in an address reaches a log."""

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.hosting.logs import without_passwords

PASSWORDS = st.text(
    st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc", "Cs"]), min_size=1, max_size=12
).map(lambda text: f"<{text}>")


@given(
    password=PASSWORDS,
    scheme=st.sampled_from(["amqp", "amqps", "postgresql", "postgresql+asyncpg", "HTTPS"]),
    user=st.sampled_from(["", "guest", "a%40b", "some.one"]),
)
def test_whatever_the_password_it_is_left_out(password, scheme, user):
    said = without_passwords(f"cannot reach {scheme}://{user}:{password}@host:5432/db: refused")
    assert password not in said
    assert said == f"cannot reach {scheme}://{user}@host:5432/db: refused"


def test_a_password_in_the_query_is_left_out():
    given = "postgresql://host/db?user=me&password=hunter2&sslmode=require"
    assert without_passwords(given) == ("postgresql://host/db?user=me&password=***&sslmode=require")


def test_other_text_stays_as_it_is():
    for text in (
        "http://127.0.0.1:9101/readyz",
        "12:30: a@b.c wrote",
        "sqlite:////tmp/a.db",
        "::1",
    ):
        assert without_passwords(text) == text
