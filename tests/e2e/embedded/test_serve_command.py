"""`socratic-bench serve` as a person starts it: who is let in."""

from __future__ import annotations

import re

import httpx

from tests.e2e.command import Terminal

TEXT = {"text": "What might you consider?"}
KEY = "a-key-of-the-operator"


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
        with httpx.Client(base_url=address) as client:
            read = client.get("/api/model-comparison")
            refused = client.post("/api/score", json=TEXT)
            bearer = {"authorization": f"Bearer {KEY}"}
            scored = client.post("/api/score", json=TEXT, headers=bearer)
            elsewhere = client.get("/", headers={"host": "evil.example.com"})
        serving.terminate()

    answers = (read, refused, scored, elsewhere)
    assert [each.status_code for each in answers] == [200, 401, 200, 421]
    assert KEY not in said
