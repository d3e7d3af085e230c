"""The `socratic-bench` command.

Exit codes: 0 done, 1 the work says no (a failed check, a model without a single score), 2 wrong
use. What machines read goes to standard output, what people read beside it to standard error.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from typing import cast

import click
import structlog
from structlog.typing import EventDict

from socratic_bench.errors import InvalidInput, SocraticBenchError

COMMANDS = (
    "run",
    "submit",
    "status",
    "watch",
    "dlq",
    "score",
    "leaderboard",
    "serve",
    "verify",
    "demo",
)
"""Each is a function of its name in a module of its name."""

SAYINGS = 50
"""Different log lines that are printed before the rest is kept to itself."""


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

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"socratic_embedded.commands.{cmd_name}")
        return cast("click.Command", getattr(module, cmd_name))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="socratic-ai-bench-embedded", prog_name="socratic-bench")
def socratic_bench() -> None:
    """Measure how Socratic an LLM tutor is: does it ask, or does it lecture?"""


def main() -> None:
    """Run the command; every expected error is one sentence and an exit code."""
    _log_to_standard_error()
    try:
        # A command that ends with an exit code of its own gives it back from here.
        sys.exit(socratic_bench(standalone_mode=False))
    except click.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SocraticBenchError as error:
        for line in str(error).splitlines():
            click.echo(f"Error: {line}", err=True)
        sys.exit(2 if isinstance(error, InvalidInput) else 1)


def _log_to_standard_error() -> None:
    # What a driver warns of, such as a channel that was closed under it, is its own affair.
    logging.getLogger().setLevel(logging.ERROR)
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    structlog.configure(
        processors=[
            _named_error,
            _Once(),
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _named_error(_logger: object, _method: str, event: EventDict) -> EventDict:
    """An exception as its name and message: a traceback helps nobody at a prompt."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["error"] = f"{type(error).__name__}: {error}"
    return event


class _Once:
    """Says the same thing once, however many runs it happens to."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def __call__(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        saying = (str(event["event"]), str(event.get("error", event.get("reason", ""))))
        if saying in self._said or len(self._said) >= SAYINGS:
            raise structlog.DropEvent
        self._said.add(saying)
        return event
