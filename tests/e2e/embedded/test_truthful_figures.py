"""One run of the command over models that answer as real servers do, each with its own oddity.

What is no answer of the tutor has no part in its score, and what a reader has to know of the
answers stands beside the figures.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Terminal
from tests.servers.providers.listed import listed
from tests.servers.providers.raw_server import (
    STREAM_HEAD,
    Request,
    chunk,
    completion,
    response,
    serving,
)

# One run of the command for all tests, so one worker has them all.
pytestmark = pytest.mark.xdist_group("truthful figures")

ASKS = "What might you consider first, and why do you think so?"
HALF = "You should always do this, never that. What if you "
SCENARIOS = [
    {"id": f"s{number}", "dimension": "student", "prompt": f"Question {number}?"}
    for number in range(5)
]
JSON = "Content-Type: application/json"
USAGE = {"prompt_tokens": 40, "completion_tokens": 13, "total_tokens": 53}
PRICE: dict[str, float] = {"input_per_million": 1, "output_per_million": 2}
CHINESE = "你应该总是先考虑这个问题的答案。" * 70


@dataclass(frozen=True)
class Odd:
    """What a model sends, and what stands beside its figures."""

    text: str = ASKS
    pieces: tuple[str, ...] = ()
    """The pieces of a stream; whole replies without them."""

    usage: dict[str, Any] | None = field(default_factory=lambda: USAGE)
    reason: str = "stop"
    choice: dict[str, Any] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    price: dict[str, float] | None = None
    cost: float | None = None
    """The cost of all calls in USD."""

    version: str | None = None
    """What the server calls the model; None: by the name that was asked for."""

    notes: frozenset[str] = frozenset()
    statuses: str = "ok"
    verbosity: tuple[float, float] = (0.96, 0.98)
    exploratory: float = 1.0
    interrogative: float = 1.0

    def reply(self, name: str, call: int) -> bytes:
        version = self.version or name
        if self.pieces:
            told = chunk("", self.reason)
            counted = json.dumps({"choices": [], "usage": self.usage, "model": version})
            body = b"".join(map(chunk, self.pieces)) + told + f"data: {counted}\n\n".encode()
            head = STREAM_HEAD[:-2] + "".join(f"{each}\r\n" for each in self.headers).encode()
            return head + b"\r\n" + body + b"data: [DONE]\n\n"
        whole = json.loads(completion(self.text, model=version, id=f"reply-{call}"))
        whole["choices"][0].update(self.choice | {"finish_reason": self.reason})
        if self.usage is not None:
            whole["usage"] = self.usage
        return response("200 OK", json.dumps(whole).encode(), JSON, *self.headers)


def notes(*names: str) -> frozenset[str]:
    return frozenset(names)


ODD = {
    "plain": Odd(),
    # Thoughts.
    "thinks-whole": Odd(
        f"<think>never, always, the answer is 7</think>\n\n{ASKS}",
        notes=notes("thoughts", "estimated"),
    ),
    "thinks-in-a-stream": Odd(
        pieces=("<thi", "nk>never, the answer is 7</think>", "\n\n", ASKS),
        notes=notes("thoughts", "estimated"),
    ),
    "thinks-without-a-beginning": Odd(
        f"So never this.</think>\n{ASKS}", notes=notes("thoughts", "estimated")
    ),
    "thinks-in-details": Odd(
        f'<details type="reasoning"><summary>Thought</summary>never</details>\n{ASKS}',
        notes=notes("thoughts", "estimated"),
    ),
    "never-ends-to-think": Odd("<think>So, what might I say?", statuses="empty"),
    "shows-a-tag": Odd("Why does `<think>` come first, and what might `</think>` do?"),
    # Control tokens and other marks of the wire.
    "ends-with-a-token": Odd(f"{ASKS}<|im_end|>", notes=notes("end_tokens")),
    "ends-with-another": Odd(f"{ASKS}<|eot_id|>\n", notes=notes("end_tokens")),
    "cites": Odd(f"{ASKS}\ue200cite\ue202turn0search1\ue201", notes=notes("citations")),
    # The student's words.
    "goes-on-as-the-student": Odd(
        "The answer is 7.\n\nStudent: Oh, so what might I do next?",
        notes=notes("student_turn"),
        exploratory=0.5,
    ),
    "goes-on-after-a-token": Odd(
        f"{ASKS}<|im_end|>\n<|im_start|>user\nThe answer is 7.",
        notes=notes("end_tokens", "student_turn"),
    ),
    # Streams that say it twice.
    "sends-all-so-far": Odd(
        pieces=(ASKS[:15], ASKS[:30], ASKS, ASKS),
        notes=notes("repeated_stream"),
    ),
    "sends-it-once-more": Odd(
        pieces=(ASKS[:15], ASKS[15:], ASKS),
        notes=notes("repeated_stream"),
    ),
    # Lengths.
    "sends-no-count": Odd(usage=None, notes=notes("estimated")),
    "counts-nothing": Odd(
        usage={"prompt_tokens": 40, "completion_tokens": 0}, notes=notes("estimated")
    ),
    "counts-more": Odd(
        usage={"prompt_tokens": 40, "completion_tokens": 40},
        notes=notes("tokenizer"),
        verbosity=(0.91, 0.93),
    ),
    "writes-chinese": Odd(
        CHINESE,
        usage=None,
        notes=notes("estimated", "not_english"),
        verbosity=(0.0, 0.0),
        exploratory=0.5,
        interrogative=0.0,
    ),
    "counts-reasoning-apart": Odd(
        pieces=(ASKS,),
        usage={
            "prompt_tokens": 111,
            "completion_tokens": 13,
            "total_tokens": 124,
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
    ),
    "lets-the-gateway-split": Odd(
        pieces=(ASKS,),
        usage={
            "prompt_tokens": 40,
            "completion_tokens": 25,
            "total_tokens": 65,
            "completion_tokens_details": {"reasoning_tokens": 12},
        },
        headers=("x-litellm-call-id: 7",),
        notes=notes("split"),
    ),
    "uses-up-the-limit": Odd(
        usage={"prompt_tokens": 40, "completion_tokens": 600},
        notes=notes("at_limit", "tokenizer"),
        verbosity=(0.0, 0.0),
    ),
    "reads-from-a-cache": Odd(
        usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 30}},
        notes=notes("upper_cost"),
        price=PRICE,
        cost=5 * 66e-6,
    ),
    "sells-its-cache": Odd(
        usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 30}},
        price={**PRICE, "cached_input_per_million": 0.1},
        cost=5 * 39e-6,
    ),
    # Ends.
    "ends-with-marks": Odd(f"**{ASKS}**", notes=notes("marks_after_question"), interrogative=0.0),
    "ends-in-mid-sentence": Odd(
        HALF, notes=notes("mid_sentence"), exploratory=0.25, interrogative=0.0
    ),
    "was-aborted": Odd(HALF, choice={"native_finish_reason": "max_tokens"}, statuses="truncated"),
    # Who answers.
    "falls-back": Odd(version="tiny-fallback-7b", notes=notes("versions")),
}

Board = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    return Terminal(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture(scope="module")
def ran(terminal: Terminal) -> str:
    """What the command printed for people; the store is in the terminal's folder."""
    return asyncio.run(_ran(terminal))


async def _ran(terminal: Terminal) -> str:
    calls = Counter[str]()

    async def answer(request: Request, writer: Any) -> None:
        asked = json.loads(request.body)
        name = asked["model"]
        calls[name] += 1
        writer.write(ODD[name].reply(name, calls[name]))
        if ODD[name].pieces:
            await writer.drain()
            writer.close()

    async with serving(answer) as server:
        models = [
            {
                "id": f"openai-compatible/{name}",
                "base_url": server.address,
                "options": {"stream": bool(odd.pieces)},
                **({} if odd.price is None else {"price": odd.price}),
            }
            for name, odd in ODD.items()
        ]
        path = terminal.write(
            "odd.json", json.dumps({"models": models, "scenarios": SCENARIOS, "repeats": 1})
        )
        there = Terminal(terminal.folder, {**terminal.environment, **listed(server.address)})
        done = await asyncio.to_thread(there.run, "run", path)
    # Some models have no score on purpose.
    assert done.returncode == 1, done.stderr
    return str(done.stdout) + str(done.stderr)


@pytest.fixture(scope="module")
def board(terminal: Terminal, ran: str) -> Board:
    printed = terminal.run("leaderboard", "--format", "json").stdout
    models = json.loads(printed)["models"]
    return {model["model_id"].partition("/")[2]: model for model in models}


@pytest.mark.parametrize("name", ODD)
def test_a_score_is_that_of_what_the_student_sees(name: str, board: Board):
    odd, row = ODD[name], board[name]
    assert row["statuses"] == {odd.statuses: len(SCENARIOS)}
    if odd.statuses != "ok":
        assert row["overall_score"] is None
        return
    vectors = {vector: figure["mean"] for vector, figure in row["vectors"].items()}
    assert row["total_cost_usd"] == pytest.approx(odd.cost)
    least, most = odd.verbosity
    assert least <= vectors["verbosity"] <= most
    assert vectors["exploratory"] == pytest.approx(odd.exploratory)
    assert vectors["interrogative"] == odd.interrogative


@pytest.mark.parametrize("name", ODD)
def test_what_a_reader_has_to_know_stands_beside_the_figures(name: str, board: Board):
    assert {note["name"] for note in board[name].get("notes", ())} == ODD[name].notes


def test_the_notes_stand_in_the_table_and_in_the_csv(terminal: Terminal, ran: str):
    table = " ".join(ran.split())
    for words in (
        "The length is estimated: the provider counted no tokens, or thoughts with them:",
        "or of one unlike the name: openai-compatible/falls-back (tiny-fallback-7b 5).",
    ):
        assert words in table
    rows = csv.DictReader(io.StringIO(terminal.run("leaderboard", "--format", "csv").stdout))
    noted = {row["model_id"].partition("/")[2]: row["notes"] for row in rows}
    assert noted["ends-with-a-token"] == "control tokens were cut off: 5 of 5"
    assert noted["plain"] == ""


def test_thoughts_are_shown_where_they_are_asked_for(terminal: Terminal, board: Board):
    [experiment] = board["plain"]["experiment_ids"]
    done = terminal.run("export", experiment, "--model", "openai-compatible/thinks-whole")
    kept = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["text"] for each in kept} == {ASKS}
    assert {each["reasoning"] for each in kept} == {"never, always, the answer is 7"}


def test_a_comparison_of_two_rulers_says_so(terminal: Terminal, board: Board):
    def note(first: str, second: str, *more: str) -> str | None:
        sides = (f"openai-compatible/{each}" for each in (first, second))
        done = terminal.run("compare", *sides, "--json", *more)
        assert done.returncode == 0, done.stderr
        told: str | None = json.loads(done.stdout)["note"]
        return told

    caution = "Their lengths are by different rulers"
    told = "Citation marks were taken out: openai-compatible/cites (5 of 5)."
    assert note("plain", "cites") == told
    assert caution in str(note("plain", "sends-no-count"))
    assert caution in str(note("counts-more", "plain"))


def test_the_gate_and_the_trend_tell_who_answered(terminal: Terminal, board: Board):
    [experiment] = board["plain"]["experiment_ids"]
    least = "--fail-under", "openai-compatible/falls-back=0.5"
    done = terminal.run("gate", experiment, *least, "--min-coverage", "0")
    assert "openai-compatible/falls-back (tiny-fallback-7b 5)" in done.stderr
    trend = terminal.run("trends", "openai-compatible/falls-back", "--json")
    [series] = json.loads(trend.stdout)["models"]
    assert [point["model_versions"] for point in series["points"]] == [["tiny-fallback-7b"]]


def test_one_ruler_measures_all_answers_alike(terminal: Terminal, board: Board):
    [experiment] = board["plain"]["experiment_ids"]
    refused = terminal.run("leaderboard", "--length", "same-ruler")
    assert refused.returncode == 2
    assert f"rescore {experiment} --profile socratic-v1-same-ruler" in refused.stderr
    rescored = terminal.run("rescore", experiment, "--profile", "socratic-v1-same-ruler")
    assert rescored.returncode == 0, rescored.stderr
    printed = terminal.run("leaderboard", "--length", "same-ruler", "--format", "json").stdout
    rows = {each["model_id"].partition("/")[2]: each for each in json.loads(printed)["models"]}
    alike = ("plain", "counts-more", "uses-up-the-limit", "sends-no-count", "thinks-whole")
    expected = pytest.approx((1 - 13 / 500 + 2) / 3, abs=1e-6)
    assert [rows[name]["overall_score"] for name in alike] == [expected] * len(alike)


COUNTED = {"o200k": 1.0, "claude-3": 1.1, "claude-4.7": 1.55, "none": None}
"""How many tokens a maker counts for each word or mark of one text."""


def _recordings(terminal: Terminal) -> None:
    """Write the same answers once for each maker, with its counts."""
    texts = [f"{ASKS} {'Think of it once more. ' * number}So?" for number in range(15)]
    for maker, tokens in COUNTED.items():
        lines = [
            {"scenario_id": f"s{number}", "text": text}
            | ({} if tokens is None else {"output_tokens": round(tokens * (15 + 6 * number))})
            for number, text in enumerate(texts)
        ]
        terminal.write(f"{maker}.jsonl", "\n".join(map(json.dumps, lines)))
    scenarios = [
        {"id": f"s{number}", "dimension": "student", "prompt": f"Question {number}?"}
        for number in range(15)
    ]
    models = [f"replay/{maker}.jsonl" for maker in COUNTED]
    config = {"models": models, "scenarios": scenarios, "repeats": 1, "profile": "socratic-v1"}
    terminal.write("provider.json", json.dumps(config))
    terminal.write("ruler.json", json.dumps({**config, "length": "same ruler"}))


def test_one_text_has_one_rank_whoever_counted_its_tokens(tmp_path: Path):
    terminal = Terminal(tmp_path)
    _recordings(terminal)
    for name in ("provider", "ruler"):
        done = terminal.run("run", f"{name}.json", "--store", f"sqlite:///{name}.db")
        assert done.returncode == 0, done.stderr

    def rows(name: str) -> dict[str, dict[str, Any]]:
        store = f"sqlite:///{name}.db"
        printed = terminal.run("leaderboard", "--store", store, "--format", "json").stdout
        models = json.loads(printed)["models"]
        return {row["model_id"].removeprefix("replay/")[:-6]: row for row in models}

    alike = rows("ruler")
    assert {row["overall_score"] for row in alike.values()} == {alike["none"]["overall_score"]}
    assert {tuple(row["rank_interval"]) for row in alike.values()} == {(1, 4)}
    told = {
        maker: {note["name"] for note in row.get("notes", ())}
        for maker, row in rows("provider").items()
    }
    assert told == {
        "o200k": set(),
        "claude-3": set(),
        "claude-4.7": {"tokenizer"},
        "none": {"estimated"},
    }
