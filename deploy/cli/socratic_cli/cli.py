"""The `socratic-bench` command.

Exit codes: 0 done, 1 a negative result (a failed check, a model without a single score), 2 wrong
use. Output for programs goes to standard output, notes for people to standard error.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from io import BufferedWriter, FileIO, TextIOWrapper
from keyword import iskeyword
from typing import Final, cast

import click

from socratic_bench.errors import InvalidInput, SocraticBenchError
from socratic_bench.version import __version__

COMMANDS = {
    "init": ("first_steps", "Write a commented configuration to FILE (mine.yaml)."),
    "run": ("run", "Run the benchmark in CONFIG and show the leaderboard."),
    "schema": ("first_steps", "Print the JSON schema of a configuration, for an editor."),
    "pack": ("pack", "Check a pack of scenarios."),
    "submit": ("submit", "Have running services carry out the benchmark in CONFIG."),
    "status": ("status", "Show the progress of experiments, and their pending runs."),
    "watch": ("watch", "Follow an experiment to its end, and show the leaderboard."),
    "pause": ("decisions", "Pause an experiment: its calls wait until `resume`."),
    "resume": ("decisions", "Resume a paused or cancelled experiment."),
    "cancel": ("decisions", "Cancel an experiment; its results stay."),
    "delete": ("decisions", "Delete an experiment with all its results, for good."),
    "pin": ("decisions", "Pin an experiment: the leaderboard shows it by default."),
    "unpin": ("decisions", "Unpin an experiment."),
    "dlq": ("dlq", "List dead letters, redrive them, or purge them."),
    "score": ("score", "Score texts or transcripts, without a model."),
    "import": ("import_", "Import answers that another tool kept, and score them."),
    "leaderboard": (
        "leaderboard",
        "Show the models, best first, with intervals and coverage.",
    ),
    "rescore": ("rescore", "Score stored responses by another profile."),
    "compare-profiles": (
        "compare_profiles",
        "Say how far two profiles agree on the same responses.",
    ),
    "compare": ("compare", "Compare two models on the scenarios of both."),
    "fidelity": ("fidelity", "Show how many turns each tutor keeps asking."),
    "trends": ("trends", "Show each model's score over time, and where it changed."),
    "gate": ("gate", "Check an experiment's scores against thresholds."),
    "transcripts": ("transcripts", "Show what was said in the runs of an experiment."),
    "show": ("transcripts", "Show one run in full, with the evidence for its score."),
    "export": (
        "export",
        "Write the scored responses of an experiment to a file.",
    ),
    "report": ("export", "Write one page about an experiment, to share or cite."),
    "figure": ("figure", "Draw a figure about an experiment, for a paper."),
    "validity": ("validity", "Compare scores with people's labels, and write a report."),
    "serve": ("serve", "Serve the API and the dashboard, until Ctrl-C."),
    "verify": ("verify", "Recompute every aggregate and compare exactly."),
    "demo": ("first_steps", "Benchmark the built-in tutors and a local model."),
}
"""The module of each command in `socratic_cli.commands`, and its summary. `--help` imports no
command, so the summary stands here too."""


def load_command(name: str) -> click.Command:
    """Import a command: the function of its name."""
    module, _ = COMMANDS[name]
    imported = import_module(f"socratic_cli.commands.{module}")
    function = f"{name}_" if iskeyword(name) else name.replace("-", "_")
    return cast("click.Command", getattr(imported, function))


class _Commands(click.Group):
    """Imports a command at its use: scoring a text waits for no database driver."""

    def invoke(self, ctx: click.Context) -> object:
        """End quietly once the reader of our output has read enough, as `head` does."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in COMMANDS else None


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="socratic-bench")
def socratic_bench() -> None:
    """Measure how Socratic an LLM tutor is: does it ask, or does it lecture?"""


def _unknown_option(error: click.NoSuchOption) -> click.UsageError:
    """Return the error with the likely remedy: click suggests `--help` for `--model`."""
    is_help = error.option_name.startswith("--h")
    guesses = [each for each in error.possibilities or () if is_help or each != "--help"]
    remedy = f" Did you mean {guesses[0]!r}?" if guesses else ""
    if not guesses and error.ctx and error.ctx.info_name in {"run", "submit"}:
        remedy = " CONFIG holds the plan: `models`, `scenarios`, `repeats` and so on."
    return click.UsageError(f"No such option {error.option_name!r}.{remedy}", error.ctx)


_STORING: Final = frozenset(
    {"run", "submit", "rescore", "demo", "watch", "gate", "validity", "serve"}
)
"""The commands whose exit code tells of more than what they print."""


class _Output(FileIO):
    """Standard output or error; once it takes no more, the work goes on without it."""

    lost: str | None = None
    """Why it takes no more; None while it does, and for a reader that has read enough."""

    stops_work = False
    """Whether work ends with its reader, as before `head`."""

    def write(self, data: object) -> int:
        """Write; what cannot be written counts as written."""
        try:
            return cast("int", super().write(data))  # type: ignore[arg-type]
        except BrokenPipeError:
            if self.stops_work:
                raise
        except OSError as error:
            self.lost = error.strerror or str(error)
        return memoryview(data).nbytes  # type: ignore[arg-type]


def _keep_outputs() -> _Output | None:
    """Have outputs that are closed, full or of another encoding spoil no work; returns the first.

    A closed one gets a null device: the next file that is opened would take its number.
    """
    closed: list[int] = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            closed.append(os.open(os.devnull, os.O_RDWR))
    outputs: list[_Output | None] = []
    for number, name in enumerate(("stdout", "stderr"), start=1):
        stream, output = getattr(sys, name), None
        if stream is None or (stream is getattr(sys, f"__{name}__") and stream.fileno() == number):
            output = _Output(number, "w", closefd=False)
            output.lost = "it is closed" if number in closed else None
            output.stops_work = number == 1 and not _STORING & set(sys.argv[1:2])
            kept = TextIOWrapper(
                BufferedWriter(output),
                encoding=getattr(stream, "encoding", None),
                errors="replace",
                line_buffering=number == 2 or output.isatty(),
            )
            setattr(sys, name, kept)
        elif isinstance(stream, TextIOWrapper):
            with suppress(OSError):
                stream.reconfigure(errors="replace")
        outputs.append(output)
    return outputs[0]


def _exit_code_of(output: _Output | None, code: object) -> object:
    """Return the exit code of a command, and say if its output got lost."""
    if output is None or sys.stdout is None:
        return code
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    if output.lost is None:
        return code
    click.echo(f"Error: standard output took not everything: {output.lost}", err=True)
    return code or (0 if _STORING & set(sys.argv[1:2]) else 1)


def main() -> None:
    """Run the command; every expected error becomes one sentence and an exit code."""
    output = _keep_outputs()
    try:
        _run()
    except SystemExit as end:
        sys.exit(cast("int", _exit_code_of(output, end.code)))


def _run() -> None:
    if COMMANDS.keys() & set(sys.argv[1:]):
        import_module("socratic_cli.display.command_log").log_to_standard_error()
    try:
        # A command with an exit code of its own returns it here.
        sys.exit(socratic_bench(standalone_mode=False))
    except click.Abort:
        # Python would warn of each coroutine that the interrupt prevented from starting.
        warnings.simplefilter("ignore", RuntimeWarning)
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            error = _unknown_option(error)
        error.show()
        sys.exit(error.exit_code)
    except SocraticBenchError as error:
        for line in str(error).splitlines():
            click.echo(f"Error: {line}", err=True)
        sys.exit(2 if isinstance(error, InvalidInput) else 1)
