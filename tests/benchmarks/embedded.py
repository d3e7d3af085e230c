"""One process: the speed of scoring, of a whole benchmark, and beside Inspect AI.

    python -m tests.benchmarks.embedded [scoring|throughput [RUNS ...]|inspect PYTHON]
    python -m tests.benchmarks.embedded pressure [MODELS]

`scoring` prints the time to score a response as a multiple of `str.lower` and `str.split` of its
text, the floor of any scorer in pure Python. The texts are about 1.8 KB long: real responses where
SOCRATIC_TEST_DATA names a folder of them (*.jsonl), else those of a reference tutor. Each figure is
the best of several rounds over all texts.

`throughput` prints runs a second through all stages, and the memory as runs grow. Reference tutors
answer at once, and SQLite writes to disk with full durability; each size has a fresh process.

`pressure` gives 25 reference tutors, or MODELS, three repeats of `pressure-24`, 21,600 calls, and
prints time, processor time and peak memory of each step: the commands `run`, `rescore` (judge and
fold) and `fidelity`, and a process that answers /api/fidelity, from its start on. Then come the
processor times of that answer alone: the first one, and one that a new app makes.

`inspect` compares that with Inspect AI and its mock model. PYTHON is an interpreter of another
environment, with `pip install inspect_ai==0.3.285`. Inspect AI scores by `includes`, the simplest
of its scorers, and is told the number of tokens, since counting them would need a download.

What is compared takes turns, so that ratios hold when the machine's speed drifts.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench import score
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.hosting.process import quiet_garbage_collector
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.results.fidelity.fidelity import FIDELITY
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.fidelity.profile import Fidelity
from socratic_cli.embedded import Benchmark
from socratic_runner.models.archetypes import lecturer
from socratic_runner.models.archetypes.moment import Moment
from socratic_runner.models.registry import open_client

ARCHETYPES = ("socratic", "lecturer", "hedger", "drifter")
TUTORS = tuple(f"reference/{name}" for name in ARCHETYPES)
SIZES = (1_000, 10_000, 100_000)
SHORTEST, LONGEST = 1_500, 2_200
SCORING_ROUNDS = 15
STUDENT = "I'm overwhelmed with work. What productivity system should I use?"
KEY = ("zero", "0 N", "17 apples")
EARLIER = (EarlierTurn("I added 12 and 5 and got 18.", "How could you check that sum?"),)
INSPECT_ROUNDS = 3
INSPECT_SAMPLES = 2_000
INSPECT_RUNS = 60_000

EVALUATION = """
import sys, time
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

samples, folder = int(sys.argv[1]), sys.argv[2]
REPLY = "What do you think happens when the denominator gets larger? Try it with a pizza. " * 5

def reply(*_):
    output = ModelOutput.from_content(model="mockllm", content=REPLY)
    output.usage = ModelUsage(input_tokens=10, output_tokens=90, total_tokens=100)
    return output

dataset = [Sample(input=f"Question {n}: is 1/3 more than 1/2?", target="?") for n in range(samples)]
task = Task(dataset=dataset, solver=generate(), scorer=includes())
started = time.perf_counter()
[log] = eval(
    task, model=get_model("mockllm/model", custom_outputs=reply), display="none", log_dir=folder
)
seconds = time.perf_counter() - started
assert log.status == "success", log.error
print(samples / seconds)
"""


def experiment_of(runs: int, tutors: Sequence[str] = TUTORS, **options: int) -> Experiment:
    """An experiment of about so many runs, with options for all its tutors."""
    scenarios = load_pack()
    manifest = Manifest(
        models=tuple(TutorModel(id=tutor, options=dict(options)) for tutor in tutors),
        scenarios=scenarios,
        repeats=max(1, runs // (len(tutors) * len(scenarios))),
    )
    return Experiment(manifest=manifest, created_at=SystemClock().now())


def scoring() -> None:
    """Print a line for each way to score."""
    source, responses = _texts()
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
    for _ in range(SCORING_ROUNDS):
        for name, work in works.items():
            rounds[name].append(_seconds_of_a_text(work, responses))
    best = {name: min(taken) for name, taken in rounds.items()}
    floor = best["lower"] + best["split"]
    length = statistics.mean(map(len, responses))
    print(f"scoring, {len(responses)} {source} of {length:,.0f} characters on average:")
    print(f"  lower + split                          {floor * 1e6:6.1f} µs")
    for name in list(works)[2:]:
        print(f"  {name:38} {best[name] * 1e6:6.1f} µs, {best[name] / floor:.2f} x lower + split")


def _texts() -> tuple[str, list[str]]:
    """Where the texts come from, and the texts."""
    folder = os.environ.get("SOCRATIC_TEST_DATA")
    if folder:
        source = "real responses"
        lines = [
            json.loads(line)
            for path in sorted(Path(folder).glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        texts = [line.get("response") or line.get("output") or "" for line in lines]
    else:
        source = "reference tutors"
        texts = [
            lecturer.answer(Moment("lecturer", each.id, each.dimension, each.prompt, 1, repeat))
            for each in load_pack()
            for repeat in range(1, 21)
        ]
    return source, [text for text in texts if SHORTEST <= len(text) <= LONGEST]


def _seconds_of_a_text(work: Callable[[str], object], responses: list[str]) -> float:
    started = time.perf_counter()
    for text in responses:
        work(text)
    return (time.perf_counter() - started) / len(responses)


def throughput(*sizes: int) -> None:
    """Print a line for each number of runs."""
    for size in sizes or SIZES:
        figures = _in_fresh_process(size)
        print(
            f"embedded, {figures['runs']:>7,.0f} runs: "
            f"{figures['runs'] / figures['seconds']:>7,.0f} runs/s, "
            f"peak memory {figures['peak_mb']:.0f} MB",
            flush=True,
        )


def _in_fresh_process(runs: int) -> dict[str, float]:
    """Runs, seconds and the peak memory in MB of an experiment of about so many runs."""
    command = [sys.executable, "-m", "tests.benchmarks.embedded", "one", str(runs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def one(runs: int) -> None:
    """Print the figures of one experiment in this process as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(_execute(experiment_of(runs), folder))
    print(json.dumps(figures))


async def _execute(experiment: Experiment, folder: str) -> dict[str, float]:
    store = SqlStore.from_url(f"sqlite:///{folder}/benchmark.db")
    await store.prepare()
    benchmark = Benchmark(experiment, store, open_client, store)
    started = time.perf_counter()
    result = await benchmark.execute()
    seconds = time.perf_counter() - started
    await store.close()
    planned = experiment.manifest.planned_runs
    assert result.progress.done == result.calls == planned
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"runs": planned, "seconds": seconds, "peak_mb": peak}


def pressure(models: int = 25) -> None:
    """Print a line for each step."""
    tutors = [f"reference/{ARCHETYPES[each % 4]}@{each}" for each in range(models)]
    plan = {"models": tutors, "scenarios": "pressure-24", "repeats": 3, "name": "pressure"}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "plan.json").write_text(json.dumps(plan))
        store = f"sqlite:///{folder}/benchmark.db"
        cli = ("-c", "import sys; from socratic_cli.cli import main; sys.exit(main())")
        _step("run", *cli, "run", f"{folder}/plan.json", "--store", store)
        _step("rescore", *cli, "rescore", "pressure", "--profile", FIDELITY, "--store", store)
        _step("fidelity", *cli, "fidelity", "--json", "--store", store)
        told = _step("/api/fidelity", "-m", "tests.benchmarks.embedded", "answer", store)
        print(told, end="")


def _step(name: str, *words: str) -> str:
    """Run Python, print what it took, and return its output."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, *words], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        if process.returncode:
            raise SystemExit(f"{name} ended with exit code {process.returncode}")
        output.seek(0)
        told = output.read()
    print(
        f"{name:14} {seconds:6.1f} s, {usage.ru_utime + usage.ru_stime:5.1f} s of processor time, "
        f"peak memory {usage.ru_maxrss / 1024:.0f} MB",
        flush=True,
    )
    return told


async def answer(url: str) -> None:
    """Print the processor time of /api/fidelity: of the first answer, and of a new app's."""
    taken = []
    for _ in range(2):
        store = SqlStore.from_url(url)
        await store.prepare()
        transport = httpx.ASGITransport(build_app(store, ApiSettings(store_timeout=60)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            started = time.process_time()
            found = await client.get("/api/fidelity")
            taken.append(time.process_time() - started)
        found.raise_for_status()
        await store.close()
    print(f"  first answer {taken[0]:.2f} s, a new app's {taken[1]:.2f} s of processor time")


def inspect(python: str) -> None:
    """Print a line for each round."""
    for _ in range(INSPECT_ROUNDS):
        theirs = _inspect_samples_per_second(python)
        figures = _in_fresh_process(INSPECT_RUNS)
        ours = figures["runs"] / figures["seconds"]
        print(
            f"{ours:,.0f} runs/s embedded, {theirs:.1f} samples/s of Inspect AI: "
            f"{ours / theirs:.0f} x",
            flush=True,
        )


def _inspect_samples_per_second(python: str) -> float:
    """The samples a second of Inspect AI, start and end included."""
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch, "evaluation.py")
        script.write_text(EVALUATION)
        done = subprocess.run(
            [python, script, str(INSPECT_SAMPLES), scratch],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return float(done.stdout.splitlines()[-1])


def main(name: str | None = None, *arguments: str) -> None:
    """Take one measurement, or all but the one beside Inspect AI."""
    match name:
        case None:
            scoring()
            throughput()
            pressure()
        case "scoring":
            scoring()
        case "throughput":
            throughput(*map(int, arguments))
        case "one":
            one(int(arguments[0]))
        case "pressure":
            pressure(*map(int, arguments))
        case "answer":
            with quiet_garbage_collector():
                asyncio.run(answer(arguments[0]))
        case "inspect":
            inspect(arguments[0])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
