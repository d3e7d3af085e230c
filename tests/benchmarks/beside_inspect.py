"""The embedded pipeline beside Inspect AI with its mock model, in turns.

    python -m tests.benchmarks.beside_inspect PYTHON

PYTHON is an interpreter of another environment, with `pip install inspect_ai==0.3.285`; the project
does not install it. Both carry out runs of one turn by tutors that answer at once, score each
answer and store it. Inspect AI scores by `includes`, the simplest of its scorers, and is told the
number of tokens, since counting them would need a download.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks import embedded

ROUNDS = 3
SAMPLES = 2_000
RUNS = 60_000

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


def inspect_samples_per_second(python: str) -> float:
    """The samples a second of Inspect AI, start and end included."""
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch, "evaluation.py")
        script.write_text(EVALUATION)
        done = subprocess.run(
            [python, script, str(SAMPLES), scratch],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return float(done.stdout.splitlines()[-1])


def main(python: str) -> None:
    """Print a line per round."""
    for _ in range(ROUNDS):
        theirs = inspect_samples_per_second(python)
        figures = embedded.measure(RUNS)
        ours = figures["runs"] / figures["seconds"]
        print(
            f"{ours:,.0f} runs/s embedded, {theirs:.1f} samples/s of Inspect AI: "
            f"{ours / theirs:.0f} x",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
