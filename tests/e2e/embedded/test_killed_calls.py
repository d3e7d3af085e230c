"""Killed while calls over HTTP are under way, a benchmark pays for no stored answer again.

The endpoint was written by others, and keeps a journal of all it was asked: what was really sent is
counted there, and not by us. A seed is sent with every turn, and each has its own.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from urllib.request import Request, urlopen

import pytest

from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.identifiers import sampling_seed
from tests import evidence
from tests.e2e.command import Terminal
from tests.e2e.embedded.test_killed import kill_midway, rows
from tests.lengths import at_length
from tests.servers.providers import aimock
from tests.servers.providers.listed import listed
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.connected, pytest.mark.two_lengths]

KILLS = at_length(2, 5)
TURNS = 6
REPEATS = at_length(8, 14)
CONFIG = """
models:
  - id: vllm/slow
    base_url: "{address}/v1"
    price: {{input_per_million: 3, output_per_million: 15}}
    options: {{api_key_env: A_KEY}}
    limits: {{concurrency: 4}}
scenarios:
  - id: one
    dimension: student
    prompt: What is 3 x 4?
    follow_ups: ["So 12?", "Why?", "And 4 x 3?", "Always?", "Who says so?"]
repeats: {repeats}
budget: 10
"""


def asked(address: str) -> Counter[int]:
    """How often each turn was asked for, by its seed."""
    key = {"Authorization": f"Bearer {aimock.KEY}"}
    request = Request(f"{address}/__aimock/journal", headers=key)
    with urlopen(request, timeout=PATIENCE) as response:
        journal = json.load(response)
    seeds = (entry["body"].get("seed") for entry in journal if entry["body"].get("model") == "slow")
    return Counter(seed for seed in seeds if seed is not None)


def stored(terminal: Terminal) -> set[int]:
    """The seeds of the turns whose responses are stored."""
    seeds = set()
    for (record,) in rows(terminal, "SELECT record FROM responses"):
        response = json.loads(record)
        [(manifest,)] = rows(terminal, "SELECT manifest FROM experiments")
        experiment = Experiment(
            manifest=Manifest.model_validate_json(manifest),
            created_at=datetime.fromisoformat(response["recorded_at"]),
        )
        [key] = experiment.conversation_keys.values()
        seeds.add(sampling_seed(key, response["run"]["repeat"], response["turn"]))
    return seeds


def test_killed_in_the_middle_of_calls_no_stored_answer_is_paid_for_again(tmp_path):
    moments = evidence.chance()
    address = aimock.SERVER.address()
    terminal = Terminal(tmp_path, {"A_KEY": aimock.KEY, **listed(address, keys=["A_KEY"])})
    config = terminal.write("b.yaml", CONFIG.format(address=address, repeats=REPEATS))
    paid: dict[int, int] = {}
    midway = 0
    for _ in range(KILLS):
        before = len(stored(terminal))
        with terminal.started("run", config) as running:
            kill_midway(terminal, running, TURNS * REPEATS // KILLS, moments)
        so_far = asked(address)
        answers = stored(terminal)
        midway += before < len(answers) < TURNS * REPEATS
        for each in answers:
            assert paid.setdefault(each, so_far[each]) == so_far[each]

    done = terminal.run("run", config)
    assert done.returncode == 0, done.stderr
    assert len(stored(terminal)) == TURNS * REPEATS
    at_last = asked(address)
    assert all(at_last[each] == calls for each, calls in paid.items())
    assert midway >= KILLS * 0.15, "too few kills came in the middle of the work to say anything"
    assert terminal.run("verify").returncode == 0
