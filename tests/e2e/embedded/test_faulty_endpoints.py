"""Benchmarks of endpoints that fail in every way, written by people who do not know this project.

Every run ends as scored, or as failed with its class; no error becomes a score; the calls are as
few as the faults allow.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from math import sqrt
from typing import Any
from urllib.request import urlopen

import pytest

from socratic_bench.scoring.score import score
from tests.e2e.command import Terminal
from tests.e2e.embedded.test_killed import rows
from tests.lengths import at_length
from tests.servers.providers import aimock, llmock
from tests.servers.providers.listed import listed
from tests.waiting import PATIENCE

pytestmark = pytest.mark.connected

REFUSED = 0.4
"""The part of all calls that is refused at random."""

SCENARIO = """
scenarios:
  - {id: one, dimension: student, prompt: "Is 91 a prime number?"}
"""
PASSING: dict[str, dict[str, Any] | None] = {
    "limited-with-retry-after": {"type": "fail", "status": 429, "retry_after": 1, "times": 2},
    "limited": {"type": "fail", "status": 429, "times": 2},
    "unavailable": {"type": "fail", "status": 503, "times": 2},
    "overloaded": {"type": "fail", "status": 529, "times": 2},
    "cut": {"type": "stream_fault", "kind": "truncate", "after_chunks": 2, "times": 1},
    "lost": {"type": "stream_fault", "kind": "disconnect", "after_chunks": 2, "times": 1},
    "garbled": {"type": "stream_fault", "kind": "malformed", "after_chunks": 2, "times": 1},
    "stalled": {"type": "stream_fault", "kind": "stall", "after_chunks": 2, "times": 1},
    "well": None,
}
"""What each model does at first, before it answers."""


def passing_models(address: str) -> str:
    lines = [
        f"  - {{id: {provider}/{name}, base_url: {address}{path}, limits: {{timeout_seconds: 3}}}}"
        for provider, path in (("openai-compatible", "/v1"), ("anthropic", "/anthropic"))
        for name in PASSING
    ]
    return "models:\n" + "\n".join(lines) + SCENARIO


def script_passing_faults() -> None:
    llmock.script(
        {"type": "reply", "text": "What could you divide 91 by?", "times": None},
        *(
            {**fault, "match": {"model": name, "provider": provider}}
            for provider in ("openai", "anthropic")
            for name, fault in PASSING.items()
            if fault is not None
        ),
    )


def ended(terminal: Terminal) -> Counter[tuple[str, str]]:
    """How many runs of each model ended how."""
    counted: Counter[tuple[str, str]] = Counter()
    for (record,) in rows(terminal, "SELECT record FROM scores"):
        scored = json.loads(record)
        counted[scored["run"]["model_id"], scored["status"]] += 1
    for (record,) in rows(terminal, "SELECT record FROM failures"):
        failure = json.loads(record)
        counted[failure["run"]["model_id"], failure["kind"]] += 1
    return counted


def test_faults_that_pass_cost_calls_and_no_score_and_a_stranger_finds_nothing_to_blame(
    terminal: Terminal,
):
    address = llmock.SERVER.address()
    config = terminal.write("b.yaml", passing_models(address) + "repeats: 1\n")
    script_passing_faults()
    done = terminal.run("run", config, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["done"], result["failed"]) == (18, 0)
    assert {status for _, status in ended(terminal)} == {"ok"}
    means = {model["overall_score"] for model in result["leaderboard"]["models"]}
    assert len(means) == 1, "a fault has moved a mean"

    faults = 2 * sum(fault["times"] for fault in PASSING.values() if fault is not None)
    assert result["model_calls"] == 18 + faults
    with urlopen(f"{address}/_llmock/verdict", timeout=PATIENCE) as response:
        verdict: dict[str, Any] = json.load(response)
    assert verdict["faults_injected"] >= faults - 2
    assert to_blame(verdict) == []


def to_blame(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """The faults that the independent server finds with the client.

    The server counts a retry as a new call if it arrives before the server has ended the faulty
    attempt, as a quick retry to a busy server does. So a repeated request is not to blame.
    """
    requests = {request["seq"]: request for request in llmock.requests()}
    last = {request["fingerprint"]: seq for seq, request in sorted(requests.items())}
    return [
        finding
        for finding in verdict["findings"]
        if finding["code"] != "no_backoff"
        and max(finding["requests"]) >= last[requests[max(finding["requests"])]["fingerprint"]]
    ]


FAILING = {
    "well": ("ok", 3),
    "reasoning": ("ok", 3),
    "cut-off": ("truncated", 3),
    "filtered": ("refused", 3),
    "limited": ("rate_limited", 1),
    "overloaded": ("overloaded", 6),
    "broke": ("auth", 1),
    "lost-stream": ("cut_stream", 6),
    "malformed": ("malformed_reply", 6),
    "disconnecting": ("unreachable", 6),
    "hanging": ("timeout", 6),
}
"""How all three runs of each model end, and the calls they take with two tries a run."""


@pytest.mark.long
def test_faults_that_last_fail_their_own_runs_with_their_class_and_nothing_else(tmp_path):
    address = aimock.SERVER.address()
    environment = {
        "A_KEY": aimock.KEY,
        "ANOTHER_KEY": "wrong",
        "SOCRATIC_RUNNER_ATTEMPTS": "2",
        "SOCRATIC_RUNNER_PATIENT_ATTEMPTS": "2",
        **listed(address, keys=["A_KEY", "ANOTHER_KEY"]),
    }
    terminal = Terminal(tmp_path, environment)
    entry = (
        "  - {{id: openai-compatible/{name}, base_url: {address}/v1, "
        "options: {{api_key_env: {key}}}, "
        "limits: {{timeout_seconds: 2, run_timeout_seconds: {most}}}}}"
    )
    keys = dict.fromkeys(FAILING, "A_KEY") | {"locked": "ANOTHER_KEY"}
    # Asked to wait for 7 s, one that may take 5 s gives up at once.
    models = [
        entry.format(name=name, address=address, key=key, most=5 if name == "limited" else 60)
        for name, key in keys.items()
    ]
    config = terminal.write("b.yaml", "\n".join(["models:", *models, SCENARIO, "repeats: 3"]))
    done = terminal.run("run", config, "--json")
    assert done.returncode == 1, "models without a single score were not told of"
    result = json.loads(done.stdout)
    expected = {name: end for name, (end, _) in FAILING.items()}
    expected["locked"] = "auth"
    assert ended(terminal) == {
        (f"openai-compatible/{name}", end): 3 for name, end in expected.items()
    }
    calls: Counter[str] = Counter()
    of_runs = dict(rows(terminal, "SELECT run_id, SUM(calls) FROM calls GROUP BY run_id"))
    for table in ("scores", "failures"):
        for run_id, record in rows(terminal, f"SELECT run_id, record FROM {table}"):
            calls[json.loads(record)["run"]["model_id"]] += of_runs.get(run_id, 0)
    assert calls == {
        **{f"openai-compatible/{name}": most for name, (_, most) in FAILING.items()},
        "openai-compatible/locked": 1,
    }

    by_model = {model["model_id"]: model for model in result["leaderboard"]["models"]}
    right = score(aimock.TEXT, output_tokens=11).overall
    assert by_model["openai-compatible/well"]["overall_score"] == pytest.approx(right, abs=1e-6)
    scored = {name for name, (end, _) in FAILING.items() if end == "ok"}
    for name, end in expected.items():
        model = by_model[f"openai-compatible/{name}"]
        assert model["coverage"] == (1.0 if name in scored else 0.0)
        assert (model["overall_score"] is not None) == (name in scored)
        if end not in {"ok", "truncated", "refused"}:
            assert f"{end} 3" in done.stderr
    assert aimock.KEY not in done.stdout + done.stderr


@pytest.mark.two_lengths
def test_of_calls_that_are_refused_at_random_none_is_lost(terminal: Terminal):
    repeats = at_length(10, 25)
    with ExitStack() as stack:
        address = aimock.start_apart(stack, "--chaos-ratelimit", str(REFUSED))
        # One of a thousand calls is refused seven times in a row.
        environment = {
            "A_KEY": aimock.KEY,
            "SOCRATIC_RUNNER_PATIENT_ATTEMPTS": "50",
            **listed(address, keys=["A_KEY"]),
        }
        terminal = Terminal(terminal.folder, environment)
        key = "{api_key_env: A_KEY}"
        models = "\n".join(
            f"  - {{id: {provider}/well, base_url: {address}{path}, options: {key}}}"
            for provider, path in (("openai-compatible", "/v1"), ("anthropic", ""))
        )
        config = terminal.write("b.yaml", f"models:\n{models}\n{SCENARIO}\nrepeats: {repeats}\n")
        done = terminal.run("run", config, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    runs = 2 * repeats
    assert (result["done"], result["failed"]) == (runs, 0)
    deviation = sqrt(runs * REFUSED) / (1 - REFUSED)
    assert runs < result["model_calls"] < runs / (1 - REFUSED) + 6 * deviation
    for model in result["leaderboard"]["models"]:
        assert model["coverage"] == 1.0
