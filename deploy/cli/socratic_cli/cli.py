"""The `socratic-bench` command.

Exit codes: 0 done, 1 the work says no (a failed check, a model without a single score), 2 wrong
use. What machines read goes to standard output, what people read beside it to standard error.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from typing import cast

import click

from socratic_bench.errors import InvalidInput, SocraticBenchError

COMMANDS = {
    "run": "Run the benchmark in CONFIG and show the leaderboard.",
    "submit": "Have running services carry out the benchmark in CONFIG.",
    "status": "Show how far experiments are, and what is not done.",
    "watch": "Follow an experiment to its end, and show the leaderboard.",
    "pause": "Pause an experiment: no call of it begins until it is resumed.",
    "resume": "Let an experiment go on that was paused or cancelled.",
    "cancel": "Cancel an experiment: it goes no further, and its results stay.",
    "delete": "Delete an experiment with everything that it brought, for good.",
    "dlq": "Look at dead letters, put them back, or throw them away.",
    "score": "Score texts or transcripts, without a model.",
    "leaderboard": "Show the models, best first, with intervals and coverage.",
    "serve": "Serve the API and the dashboard, until Ctrl-C.",
    "verify": "Recompute every aggregate and compare exactly.",
    "demo": "Benchmark the built-in tutors and a local model.",
}
"""Each is a function of its name in a module of its name. What it does is said here once more:
`--help` imports none of them."""


class _Commands(click.Group):
    """Imports a command when it is used: scoring a text waits for no database driver."""

    def invoke(self, ctx: click.Context) -> object:
        """Whoever reads our output may have read enough, as `head` does: that is no error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"socratic_cli.commands.{cmd_name}")
        return cast("click.Command", getattr(module, cmd_name))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="socratic-ai-bench", prog_name="socratic-bench")
def socratic_bench() -> None:
    """Measure how Socratic an LLM tutor is: does it ask, or does it lecture?"""


def main() -> None:
    """Run the command; every expected error is one sentence and an exit code."""
    if COMMANDS.keys() & set(sys.argv[1:]):
        import_module("socratic_cli.command_log").log_to_standard_error()
    try:
        # A command that ends with an exit code of its own gives it back from here.
        sys.exit(socratic_bench(standalone_mode=False))
    except click.Abort:
        # Python warns of each coroutine that the interrupt met before its first step.
        warnings.simplefilter("ignore", RuntimeWarning)
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SocraticBenchError as error:
        for line in str(error).splitlines():
            click.echo(f"Error: {line}", err=True)
        sys.exit(2 if isinstance(error, InvalidInput) else 1)
