"""Access control: names, pages of other sites, keys, and the type of a body."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from socratic_api.bootstrap import build_app
from socratic_api.http.access import is_loopback, require_keys
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import InvalidSettings
from socratic_bench.service_settings import load_settings

READ = "/api/model-comparison"
SCORE = "/api/score"
TEXT = {"text": "What might you consider?"}
KEYS = ("first-key", "second-key")


@contextlib.asynccontextmanager
async def asking(
    store: SqlStore, address: str = "127.0.0.1", **given: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API with these settings, which it reaches at this address."""
    app = build_app(store, ApiSettings(**given))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{address}:8000") as client:
        yield client


async def test_names_of_loopback_and_those_that_are_listed_are_answered_to(store: SqlStore):
    loopback = ["127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:8000", "localhost."]
    async with asking(store, allowed_hosts="other.test, bench.test") as client:
        for host in (*loopback, "bench.test:443"):
            assert (await client.get(READ, headers={"host": host})).status_code == 200, host


async def test_a_name_nobody_gave_the_api_is_not_answered_to(store: SqlStore):
    hosts = ["evil.example.com", "127.0.0.1.evil.test", "evil.test:8000", "10.1.2.3", "", "a" * 999]
    async with asking(store) as client:
        for host, path in product(hosts, [READ, "/", "/metrics", "/nowhere"]):
            answer = await client.get(path, headers={"host": host})
            assert answer.status_code == 421, (host, path)
            assert "SOCRATIC_ALLOWED_HOSTS" in answer.json()["detail"], (host, path)
            assert answer.headers["content-type"] == "application/problem+json", (host, path)
            assert answer.headers["x-content-type-options"] == "nosniff", (host, path)


async def test_the_address_it_is_reached_at_is_a_name_of_it(store: SqlStore):
    given = {"host": "0.0.0.0", "api_keys": KEYS}
    async with asking(store, "10.1.2.3", **given) as client:
        assert (await client.get(READ)).status_code == 200
        assert (await client.get(READ, headers={"host": "10.1.2.4"})).status_code == 421


async def test_whoever_watches_over_the_process_needs_no_name_and_no_key(store: SqlStore):
    async with asking(store, api_keys=KEYS, reads_need_key=True) as client:
        for path in ("/healthz", "/readyz"):
            answer = await client.get(path, headers={"host": "anything"})
            assert answer.status_code == 200, path


async def test_its_own_pages_and_those_of_listed_hosts_may_write_and_no_others(store: SqlStore):
    others = ["https://evil.example.com", "null", "http://127.0.0.1:9999", "http://localhost:8000"]
    async with asking(store, allowed_hosts=["bench.test"]) as client:
        for origin in ("http://127.0.0.1:8000", "https://bench.test"):
            answer = await client.post(SCORE, json=TEXT, headers={"origin": origin})
            assert answer.status_code == 200, origin
        for origin in (*others, "http://["):
            answer = await client.post(SCORE, json=TEXT, headers={"origin": origin})
            assert answer.status_code == 403, origin
            assert answer.json()["detail"].startswith("origin: "), origin


async def test_a_body_that_is_not_said_to_be_json_is_refused(client: httpx.AsyncClient):
    for said in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        headers = {"content-type": said}
        answer = await client.post(SCORE, content=b'{"text": "Why?"}', headers=headers)
        assert answer.status_code == 415, said
        assert answer.json()["detail"].startswith("content-type: "), said


async def test_json_with_a_charset_is_json(client: httpx.AsyncClient):
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    answer = await client.post(SCORE, content=b'{"text": "Why?"}', headers=headers)
    assert answer.status_code == 200


async def test_where_there_are_keys_writing_needs_one_and_reading_none(store: SqlStore):
    async with asking(store, api_keys=KEYS) as client:
        assert (await client.get(READ)).status_code == 200
        refused = await client.post(SCORE, json=TEXT)
        bearers = [{"authorization": f"Bearer {key}"} for key in KEYS]
        answered = [await client.post(SCORE, json=TEXT, headers=each) for each in bearers]

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert [each.status_code for each in answered] == [200, 200]


async def test_what_is_no_key_is_refused_and_not_repeated(store: SqlStore):
    async with asking(store, api_keys=KEYS) as client:
        for given in (
            "Bearer wrong-key",
            "Bearer first-ke",
            "Bearer first-keys",
            "Bearer",
            "Bearer first-key,second-key",
            "first-key",
            "Basic first-key",
            "Basic " + base64.b64encode(b"first-key").decode(),
            "Digest first-key",
        ):
            answer = await client.post(SCORE, json=TEXT, headers={"authorization": given})
            assert answer.status_code == 401, given
            assert not any(key in answer.text for key in (*KEYS, "wrong-key")), given


async def test_a_browser_sends_a_key_as_a_password(store: SqlStore):
    async with asking(store, api_keys=KEYS, reads_need_key=True) as client:
        asked = await client.get("/")
        answered = await client.get("/", auth=("anybody", KEYS[1]))

    assert asked.status_code == 401
    assert "Basic realm=" in asked.headers["www-authenticate"]
    assert answered.status_code == 200


async def test_reading_needs_a_key_where_it_is_told_to(store: SqlStore):
    bearer = {"authorization": f"bearer {KEYS[0]}"}
    async with asking(store, api_keys=KEYS, reads_need_key=True) as client:
        for path in (READ, "/", "/metrics", "/openapi.json", "/assets/research.js"):
            assert (await client.get(path)).status_code == 401, path
            assert (await client.get(path, headers=bearer)).status_code == 200, path


def test_beyond_loopback_there_have_to_be_keys():
    for host in ("0.0.0.0", "::", "192.0.2.1", "a-name.test"):
        with pytest.raises(InvalidSettings, match="SOCRATIC_API_KEYS"):
            require_keys(ApiSettings(host=host))
        require_keys(ApiSettings(host=host, api_keys=tuple(map(SecretStr, KEYS))))
        require_keys(ApiSettings(host=host, loopback_only=True))
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert is_loopback(host)
        require_keys(ApiSettings(host=host))


def test_reads_that_need_a_key_nobody_has_are_a_wrong_setting():
    with pytest.raises(InvalidSettings, match="SOCRATIC_READS_NEED_KEY"):
        require_keys(ApiSettings(reads_need_key=True))


def test_keys_and_names_are_listed_between_commas_and_keys_are_not_shown(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("SOCRATIC_API_KEYS", " first-key, second-key ,")
    monkeypatch.setenv("SOCRATIC_ALLOWED_HOSTS", "bench.test")
    settings = load_settings(ApiSettings)

    assert [key.get_secret_value() for key in settings.api_keys] == [*KEYS]
    assert settings.allowed_hosts == ("bench.test",)
    assert "first-key" not in repr(settings)


async def test_pages_of_listed_origins_may_ask_and_send_and_no_others(store: SqlStore):
    ours, theirs = "https://bench.test", "https://evil.test"
    async with asking(store, cors_origins=f"{ours}, http://localhost:9000") as client:
        read = await client.get(READ, headers={"origin": ours})
        unknown = await client.get(READ, headers={"origin": theirs})
        sent = await client.post(SCORE, json=TEXT, headers={"origin": ours})
        refused = await client.post(SCORE, json=TEXT, headers={"origin": theirs})
        asks = {
            "origin": ours,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type",
        }
        preflight = await client.options(SCORE, headers=asks)

    assert read.headers["access-control-allow-origin"] == ours
    assert "etag" in read.headers["access-control-expose-headers"].lower()
    assert "access-control-allow-origin" not in unknown.headers
    assert (sent.status_code, refused.status_code) == (200, 403)
    assert "SOCRATIC_CORS_ORIGINS" in refused.json()["detail"]
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == ours


@pytest.mark.parametrize("origin", ["*", "bench.test", "https://bench.test/", "null"])
def test_an_origin_is_a_scheme_and_a_host(origin: str):
    with pytest.raises(ValueError, match="cors_origins"):
        ApiSettings(cors_origins=(origin,))
