"""Replaying recorded responses, good lines and broken ones."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import FailureKind, InvalidInput, ModelCallFailed
from socratic_bench.ports.models import Question
from socratic_bench.providers.recordings import LARGEST_RECORDING
from socratic_bench.providers.registry import check_model, fingerprint
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question
from socratic_runner.models import replay
from socratic_runner.models.registry import open_client

MODEL = TutorModel(id="replay/recording.jsonl")

Record = Callable[..., replay.ReplayClient]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Write lines (as they are, or as JSON) to a recording, and open it."""

    def write(*lines: str | dict[str, Any], **options: str) -> replay.ReplayClient:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (tmp_path / "recording.jsonl").write_text("\n".join(texts), encoding="utf-8")
        client = open_client(MODEL.model_copy(update={"options": options}), base_folder=tmp_path)
        assert isinstance(client, replay.ReplayClient)
        return client

    return write


def asked(scenario_id: str = "s", *, repeat: int = 1, turn: int = 1) -> Question:
    scenario = Scenario(id=scenario_id, dimension="student", prompt="Why?")
    return a_question(scenario, repeat=repeat, turn=turn)


async def test_a_line_with_everything_comes_back_as_it_was_recorded(record):
    client = record(
        {
            "scenario_id": "s",
            "repeat": 2,
            "turn": 3,
            "response": "Go on",
            "output_tokens": 500,
            "reasoning_tokens": 80,
            "input_tokens": 40,
            "status": "truncated",
            "latency_ms": 1234,
            "stop_reason": "length",
            "model_version": "2026-01",
            "something": "else",
        }
    )
    reply = await client.ask(asked(repeat=2, turn=3))
    assert (reply.text, reply.status, reply.latency_ms) == ("Go on", Status.TRUNCATED, 1234)
    assert reply.usage.model_dump() == {
        "visible_output_tokens": 500,
        "reasoning_tokens": 80,
        "unsplit_output_tokens": None,
        "input_tokens": 40,
    }
    assert (reply.stop_reason, reply.model_version) == ("length", "2026-01")


async def test_what_was_not_recorded_is_not_made_up(record):
    reply = await record({"scenario_id": "s", "text": "Why?"}).ask(asked())
    assert reply.latency_ms is None
    assert reply.usage.visible_output_tokens is None
    assert reply.usage.input_tokens is None


async def test_lines_without_a_repeat_are_repeats_in_their_order(record):
    client = record(
        {"scenario_id": "s", "text": "first"},
        {"scenario_id": "other", "text": "of another scenario"},
        {"scenario_id": "s", "turn": 2, "text": "of another turn"},
        {"scenario_id": "s", "text": "second"},
    )
    assert [(await client.ask(asked(repeat=repeat))).text for repeat in (1, 2)] == [
        "first",
        "second",
    ]
    assert (await client.ask(asked(turn=2))).text == "of another turn"


async def test_broken_lines_lose_nothing_but_themselves(record):
    client = record(
        "\ufeff" + json.dumps({"scenario_id": "s", "text": "with a byte order mark"}),
        "{not json",
        "",
        {"scenario_id": "s"},
        {"scenario_id": "s", "text": "x", "status": "splendid"},
        {"scenario_id": "s", "text": "x", "output_tokens": -1},
        {"scenario_id": "s", "text": "x", "output_tokens": 10**13},
        {"scenario_id": "s", "text": "x", "input_tokens": 10**13},
        {"scenario_id": "s", "repeat": 1, "text": "a second time"},
        {"scenario_id": "s", "text": "the last one"},
    )
    with capture_logs() as logs:
        assert (await client.ask(asked(repeat=1))).text == "with a byte order mark"
    assert (await client.ask(asked(repeat=2))).text == "the last one"
    assert [mistake.place for mistake in client.mistakes] == [
        f"recording.jsonl:{n}" for n in (2, 4, 5, 6, 7, 8, 9)
    ]
    assert [(entry["line"], entry["file"]) for entry in logs] == [
        (line, "recording.jsonl") for line in (2, 4, 5, 6, 7, 8, 9)
    ]


async def test_of_a_file_that_is_no_recording_only_the_first_lines_are_told_of(record):
    client = record(*["not JSON"] * 1_000, {"scenario_id": "s", "text": "Why?"})
    with capture_logs() as logs:
        assert (await client.ask(asked())).text == "Why?"
    assert len(client.mistakes) == len(logs) == replay.MISTAKES_KEPT


async def test_a_file_of_several_models_is_filtered_by_the_option(record):
    lines = [{"scenario_id": "s", "text": name, "model_id": name} for name in ("a", "b")]
    assert (await record(*lines, model_id="b").ask(asked())).text == "b"


async def test_a_question_that_was_not_recorded_fails_for_good(record):
    client = record({"scenario_id": "s", "text": "Why?"})
    place = r"recording\.jsonl has no response for scenario s, repeat 7, turn 1"
    with pytest.raises(ModelCallFailed, match=place) as failure:
        await client.ask(asked(repeat=7))
    assert (failure.value.kind, failure.value.retryable) == (FailureKind.NOT_FOUND, False)


async def test_a_recorded_failure_fails_again(record):
    client = record({"scenario_id": "s", "text": "503 from the provider", "status": "error"})
    with pytest.raises(ModelCallFailed, match="503") as failure:
        await client.ask(asked())
    assert not failure.value.retryable


async def test_an_empty_response_is_left_for_the_recorder_to_see(record):
    reply = await record({"scenario_id": "s", "text": "", "status": "empty"}).ask(asked())
    assert (reply.text, reply.status) == ("", Status.OK)


async def test_a_file_that_went_away_is_said_so(record, tmp_path: Path):
    client = record({"scenario_id": "s", "text": "Why?"})
    (tmp_path / "recording.jsonl").unlink()
    with pytest.raises(ModelCallFailed, match=r"recording\.jsonl: there is no such file"):
        await client.ask(asked())


async def test_a_recording_that_changed_after_planning_is_not_replayed(record, tmp_path: Path):
    lines = [{"scenario_id": "s", "text": "Why?"}]
    record(*lines)
    planned = fingerprint(MODEL, base_folder=tmp_path)
    assert (await record(*lines, sha256=planned).ask(asked())).text == "Why?"
    changed = record(*lines, {"scenario_id": "s", "text": "Why not?"}, sha256=planned)
    for _ in range(2):
        with pytest.raises(ModelCallFailed, match="has changed since") as failure:
            await changed.ask(asked())
        assert (failure.value.kind, failure.value.retryable) == (FailureKind.BAD_REQUEST, False)


def test_a_missing_file_is_found_before_anything_runs(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"replay/recording\.jsonl: there is no such file"):
        check_model(MODEL, base_folder=tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of recordings, with links that lead to a secret file next to it."""
    folder = tmp_path / "recordings"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_text(json.dumps({"scenario_id": "s", "text": "private"}))
    (tmp_path / "recordings-2").mkdir()
    (tmp_path / "recordings-2" / "near.jsonl").write_text("{}")
    (folder / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (folder / "link").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "inner" / "fine.jsonl").write_text("{}")
    (folder / "to-fine").symlink_to(folder / "inner")
    os.mkfifo(folder / "pipe")
    return folder


def refusal(name: str, folder: Path) -> str:
    """The message about a recording, without its name."""
    with pytest.raises(InvalidInput) as refused:
        check_model(TutorModel(id=f"replay/{name}"), base_folder=folder)
    return str(refused.value).replace(name, "NAME")


@pytest.mark.parametrize(
    "name",
    [
        "../secret.jsonl",
        "inner/../../secret.jsonl",
        "{folder}/../secret.jsonl",
        "/etc/passwd",
        "/dev/zero",
        "../recordings-2/near.jsonl",
        "link.jsonl",
        "link/secret.jsonl",
        "circle",
        "inner",
        ".",
        "pipe",
        "x" * 150 + "/" + "y" * 40,
    ],
)
def test_what_is_no_file_below_the_folder_is_refused_like_one_that_is_not_there(name, folder):
    name = name.format(folder=folder)
    assert refusal(name, folder) == refusal("missing.jsonl", folder)


@pytest.mark.parametrize("name", ["inner/fine.jsonl", "./inner/fine.jsonl", "to-fine/fine.jsonl"])
def test_a_file_below_the_folder_is_found_by_any_of_its_names(name, folder):
    check_model(TutorModel(id=f"replay/{name}"), base_folder=folder)


async def test_a_link_that_is_laid_after_the_check_leads_nowhere(record, tmp_path: Path):
    client = record({"scenario_id": "s", "text": "Why?"})
    (tmp_path.parent / "elsewhere.jsonl").write_text('{"scenario_id": "s", "text": "private"}')
    (tmp_path / "recording.jsonl").unlink()
    (tmp_path / "recording.jsonl").symlink_to(tmp_path.parent / "elsewhere.jsonl")
    with pytest.raises(ModelCallFailed, match="there is no such file"):
        await client.ask(asked())


def test_a_recording_that_is_too_large_is_not_read(folder):
    with (folder / "large.jsonl").open("wb") as file:
        file.truncate(LARGEST_RECORDING + 1)
    assert "is larger than 32 MB" in refusal("large.jsonl", folder)


def test_a_recording_needs_a_folder_to_lie_in():
    with pytest.raises(InvalidInput, match="a recording needs a folder"):
        check_model(MODEL)


def test_the_fingerprint_is_that_of_the_file(tmp_path: Path):
    (tmp_path / "recording.jsonl").write_bytes(b"anything")
    assert fingerprint(MODEL, base_folder=tmp_path) == hashlib.sha256(b"anything").hexdigest()
