"""The processor time that a runner takes to start, by the providers it uses.

    python -m tests.benchmarks.start [ROUNDS]

Each figure is the processor time of a fresh interpreter, from its first statement on. It imports
the runner and opens its models (opened). It then asks each model once at a closed port, which loads
the library and makes the client (asked). The yardstick is `import aiobotocore.session` alone, which
every runner with Bedrock needs. All take turns, so ratios hold when the machine's speed drifts.
Memory is the largest resident size.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from typing import NamedTuple

ROUNDS = 7
MODELS = {
    "reference only": ("reference/socratic",),
    "Bedrock only": ("bedrock/amazon.nova-lite-v1:0",),
    "OpenAI-compatible only": ("ollama/llama3",),
    "all of them": (
        "reference/socratic",
        "bedrock/amazon.nova-lite-v1:0",
        "ollama/llama3",
        "anthropic/claude-sonnet-5",
    ),
}
YARDSTICK = "import aiobotocore.session"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
    "AWS_REGION": "us-east-1",
    "LOCAL_KEY": "a-key",
}

_BEGIN = """
import sys, time
started = time.process_time()
def passed():
    return time.process_time() - started
def report(opened, asked):
    import resource
    print(opened, asked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_IMPORT = f"""{_BEGIN}
{YARDSTICK}
report(passed(), passed())
"""
_RUNNER = f"""{_BEGIN}
import asyncio
import socratic_runner.entrypoints.container
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import ModelCallFailed
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_runner.models.registry import open_client

async def main():
    models = [
        TutorModel(
            id=model_id,
            base_url=None if model_id.startswith("reference/") else "http://127.0.0.1:9",
        )
        for model_id in sys.argv[1:]
    ]
    endpoints = ANYWHERE.allowing([("aws", "http://127.0.0.1:9")])
    clients = [open_client(model, endpoints=endpoints) for model in models]
    opened = passed()
    # No part of a runner, and so not to be counted before.
    from socratic_bench.testing.samples import a_question
    question = a_question()
    began = passed()
    for client in clients:
        try:
            await client.ask(question)
        except ModelCallFailed:
            pass
    report(opened, opened + passed() - began)
    for client in clients:
        await client.close()

asyncio.run(main())
"""


class Sample(NamedTuple):
    """One fresh interpreter."""

    opened: float
    """Seconds."""

    asked: float
    """Seconds."""

    kilobytes: int


def sample(script: str, *models: str) -> Sample:
    """What a fresh interpreter measures."""
    done = subprocess.run(
        [sys.executable, "-c", script, *models],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    opened, asked, kilobytes = done.stdout.split()
    return Sample(float(opened), float(asked), int(kilobytes))


def main(rounds: int = ROUNDS) -> None:
    """Print the table."""
    samples: dict[str, list[Sample]] = {name: [] for name in (YARDSTICK, *MODELS)}
    for _ in range(rounds):
        samples[YARDSTICK].append(sample(_IMPORT))
        for name, models in MODELS.items():
            samples[name].append(sample(_RUNNER, *models))
    floor = min(each.asked for each in samples[YARDSTICK])
    print(f"start of a runner, best (median) of {rounds} fresh interpreters:")
    print(f"  {'':26} {'opened':>15}   {'asked':>15}  x import  memory")
    for name, taken in samples.items():
        opened, asked = [each.opened for each in taken], [each.asked for each in taken]
        print(
            f"  {name:26} {_milliseconds(opened)}   {_milliseconds(asked)}  "
            f"{min(asked) / floor:8.2f}  {min(each.kilobytes for each in taken) / 1024:3.0f} MB"
        )


def _milliseconds(seconds: list[float]) -> str:
    return f"{min(seconds) * 1000:4.0f} ({statistics.median(seconds) * 1000:4.0f}) ms"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
