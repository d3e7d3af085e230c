"""`socratic-bench serve` as a person starts it: who is let in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.e2e.command import Terminal
from tests.waiting import PATIENCE

TEXT = {"text": "What might you consider?"}
KEY = "a-key-of-the-operator"
FOREIGN = "http://evil.example.com"


@contextmanager
def served(terminal: Terminal) -> Iterator[httpx.Client]:
    """A client of `serve` as it starts by default: on this machine alone, without keys."""
    with terminal.started("serve", "--port", "0") as serving:
        [address] = re.findall(r"Dashboard: (http://127\.0\.0\.1:\d+)/", serving.stderr.readline())
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            yield client
        serving.terminate()


def test_other_machines_are_not_let_in_without_keys(terminal: Terminal):
    done = terminal.run("serve", "--host", "0.0.0.0", "--port", "0")

    assert done.returncode == 2
    assert "0.0.0.0" in done.stderr
    assert "SOCRATIC_API_KEYS" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_with_keys_they_are_and_writing_takes_one(terminal: Terminal, monkeypatch):
    monkeypatch.setenv("SOCRATIC_API_KEYS", KEY)
    with terminal.started("serve", "--host", "0.0.0.0", "--port", "0") as serving:
        said = serving.stderr.readline()
        [address] = re.findall(r"Dashboard: (http://127\.0\.0\.1:\d+)/", said)
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            read = client.get("/api/model-comparison")
            refused = client.post("/api/score", json=TEXT)
            bearer = {"authorization": f"Bearer {KEY}"}
            scored = client.post("/api/score", json=TEXT, headers=bearer)
            elsewhere = client.get("/", headers={"host": "evil.example.com"})
        serving.terminate()

    answers = (read, refused, scored, elsewhere)
    assert [each.status_code for each in answers] == [200, 401, 200, 421]
    assert KEY not in said


def test_a_page_of_another_site_neither_reads_nor_writes(terminal: Terminal):
    """Its name may resolve to this machine, and its forms may post here without being asked."""
    with served(terminal) as client:
        own = str(client.base_url).rstrip("/")
        port = client.base_url.port
        hosts = {
            host: client.get("/api/model-comparison", headers={"host": host}).status_code
            for host in [
                f"127.0.0.1:{port}",
                f"localhost:{port}",
                "evil.example.com",
                f"127.0.0.1.evil.example.com:{port}",
                f"evil.example.com@127.0.0.1:{port}",
                "",
            ]
        }
        origins = {
            origin: client.post("/api/score", json=TEXT, headers={"origin": origin}).status_code
            for origin in [own, FOREIGN, f"{own}.evil.example.com", "null", ""]
        }
        unasked = client.post("/api/score", json=TEXT, headers={"host": "evil.example.com"})
        read = client.get("/api/model-comparison", headers={"origin": FOREIGN})

    assert list(hosts.values()) == [200, 200, 421, 421, 421, 421], hosts
    assert list(origins.values()) == [200, 403, 403, 403, 403], origins
    assert unasked.status_code == 421
    # A browser keeps an answer from a page of another site unless the answer names that site.
    assert "access-control-allow-origin" not in read.headers


def test_a_body_that_a_form_of_another_site_could_send_is_refused(terminal: Terminal):
    """A browser sends such a body without a first question whether it may."""
    forms = ["text/plain", "text/plain; x=application/json", "application/x-www-form-urlencoded"]

    def posted(path: str, **headers: str) -> int:
        return client.post(path, content=json.dumps(TEXT), headers=headers).status_code

    with served(terminal) as client:
        for path in ("/api/score", "/api/experiments"):
            assert [posted(path, **{"content-type": each}) for each in forms] == [415] * 3
            assert posted(path) == 415
        assert posted("/api/score", **{"content-type": "application/json"}) == 200
        # It is read, and is no experiment.
        assert posted("/api/experiments", **{"content-type": "application/json"}) == 422
