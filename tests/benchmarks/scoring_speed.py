"""The time to score one response, as a multiple of lowering and splitting its text.

    python -m tests.benchmarks.scoring_speed

`str.lower` and `str.split` of the text are the floor of any scorer in pure Python. The texts are
about 1.8 KB long: real responses where SOCRATIC_TEST_DATA names a folder of them (*.jsonl), else
those of the reference tutors. Each figure is the best of several rounds over all texts. They
take turns, so the ratio holds when the machine's speed drifts.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from socratic_bench import score
from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.fidelity.profile import Fidelity
from socratic_runner.models.archetypes import lecturer
from socratic_runner.models.archetypes.moment import Moment

SHORTEST, LONGEST = 1_500, 2_200
ROUNDS = 15
STUDENT = "I'm overwhelmed with work. What productivity system should I use?"
KEY = ("zero", "0 N", "17 apples")
EARLIER = (EarlierTurn("I added 12 and 5 and got 18.", "How could you check that sum?"),)


def texts() -> tuple[str, list[str]]:
    """Where the texts come from, and the texts."""
    folder = os.environ.get("SOCRATIC_TEST_DATA")
    if folder:
        lines = [
            json.loads(line)
            for path in sorted(Path(folder).glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        responses = [line.get("response") or line.get("output") or "" for line in lines]
        return "real responses", [t for t in responses if SHORTEST <= len(t) <= LONGEST]
    written = [_lecture(scenario, repeat) for scenario in load_pack() for repeat in range(1, 21)]
    return "reference tutors", [text for text in written if SHORTEST <= len(text) <= LONGEST]


def _lecture(scenario: Scenario, repeat: int) -> str:
    return lecturer.answer(
        Moment("lecturer", scenario.id, scenario.dimension, scenario.prompt, 1, repeat)
    )


def seconds_per_text(work: Callable[[str], object], responses: list[str]) -> float:
    """One round over all texts."""
    started = time.perf_counter()
    for text in responses:
        work(text)
    return (time.perf_counter() - started) / len(responses)


def main() -> None:
    """Print the figures."""
    source, responses = texts()
    works: dict[str, Callable[[str], object]] = {
        "lower": str.lower,
        "split": str.split,
        "score": score,
        "score with the provider's token count": lambda text: score(text, output_tokens=300),
        "score by socratic-v2": lambda text: score(
            text, student_message=STUDENT, earlier_turns=EARLIER, profile="socratic-v2"
        ),
        # A new profile has read no turn yet.
        "count by fidelity-1": lambda text: (
            score(text, student_message=STUDENT, answer_key=KEY, profile=Fidelity()).counts
        ),
    }
    rounds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            rounds[name].append(seconds_per_text(work, responses))
    best = {name: min(taken) for name, taken in rounds.items()}
    floor = best["lower"] + best["split"]
    size = statistics.mean(map(len, responses))
    print(f"scoring, {len(responses)} {source} of {size:,.0f} characters on average:")
    print(f"  lower + split                          {floor * 1e6:6.1f} µs")
    for name in list(works)[2:]:
        print(f"  {name:38} {best[name] * 1e6:6.1f} µs, {best[name] / floor:.2f} x lower + split")


if __name__ == "__main__":
    main()
