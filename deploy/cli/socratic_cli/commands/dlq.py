"""`socratic-bench dlq`: lists, redrives and purges dead letters."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.ports.broker import Broker, DeadLetter
from socratic_cli.display.fitting import FittingTable, TableColumn
from socratic_cli.display.terminal import excerpt, name_of, say, standard_output
from socratic_cli.options.store import broker_option, opened_broker

REASON_SHOWN = 300
"""The most characters of a reason in a table; `--json` has all of it."""

_COLUMNS = (
    TableColumn("queue", "left", is_name=True),
    TableColumn("message id", "left", is_name=True),
    TableColumn("group", "left", drop=1, is_name=True),
    TableColumn("attempts", drop=2),
    TableColumn("reason", "left", folds=True),
)


def dead_letters_table(letters: Iterable[DeadLetter]) -> FittingTable:
    """Make the table. Anybody may have written a message: it is shown as text, without control
    characters.
    """
    rows = [
        (
            letter.queue,
            name_of(letter.message.id, 120),
            name_of(letter.message.group, 80),
            str(letter.attempts),
            excerpt(letter.reason, REASON_SHOWN),
        )
        for letter in letters
    ]
    return FittingTable(_COLUMNS, rows, "see --json")


QUEUES = tuple(queue.name for queue in WORK_QUEUES)

F = TypeVar("F", bound=Callable[..., Any])


def _queue_argument(*, required: bool) -> Callable[[F], F]:
    metavar = "QUEUE" if required else "[QUEUE]"
    return click.argument("queue", type=click.Choice(QUEUES), required=required, metavar=metavar)


@click.group()
def dlq() -> None:
    """List dead letters, redrive them, or purge them.

    A dead letter is a message that no service could handle. Each work queue has its own dead
    letters: runner-run-requested, judge-response-recorded, curator-response-scored,
    curator-run-failed.
    """


@dlq.command("list")
@_queue_argument(required=False)
@broker_option
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="The most dead letters of one queue: the oldest.",
)
@click.option("--json", "as_json", is_flag=True, help="Print an object a line, bodies included.")
def list_(queue: str | None, broker_url: str | None, limit: int, as_json: bool) -> None:
    """List dead letters with their reasons.

    Lists those of QUEUE, or of all queues, and leaves them in place. It first names queues that are
    missing or have no leader; the exit code is then 1, for `redrive` and `purge` too.
    """
    problems, found = asyncio.run(_list(broker_url, _chosen(queue), limit, as_json=as_json))
    letters = [letter for letters in found.values() for letter in letters[:limit]]
    if as_json:
        for letter in letters:
            click.echo(json.dumps(_as_json(letter)))
    elif letters:
        standard_output().print(dead_letters_table(letters))
    for name, dead in found.items():
        if len(dead) > limit:
            say(f"{name}: more than {limit} dead letters; the oldest {limit} are listed.")
        elif dead:
            say(f"{name}: {_counted(len(dead))}.")
    if not letters:
        say(f"No dead letters in {', '.join(found)}.")
    _fail_because_of(problems)


@dlq.command()
@_queue_argument(required=False)
@broker_option
@click.option("--limit", type=click.IntRange(1), help="The most dead letters to redrive in all.")
def redrive(queue: str | None, broker_url: str | None, limit: int | None) -> None:
    """Put dead letters back into their queue.

    Takes those of QUEUE, or of all queues. Services handle them like new messages.
    """
    problems, put_back = asyncio.run(_redrive(broker_url, _chosen(queue), limit))
    for name, count in put_back.items():
        say(f"{name}: {_counted(count)} put back.")
    _fail_because_of(problems)


@dlq.command()
@_queue_argument(required=True)
@broker_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(queue: str, broker_url: str | None, yes: bool) -> None:
    """Delete the dead letters of QUEUE, for good."""
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("no terminal to ask for confirmation: give --yes to delete them")
        if not click.confirm(f"Delete all dead letters of {queue}, for good?", err=True):
            say("Nothing was deleted.")
            raise click.exceptions.Exit(1)
    problems, count = asyncio.run(_purge(broker_url, queue))
    say(f"{queue}: {_counted(count)} deleted.")
    _fail_because_of(problems)


def _chosen(queue: str | None) -> tuple[str, ...]:
    return QUEUES if queue is None else (queue,)


def _fail_because_of(problems: Sequence[str]) -> None:
    if problems:
        raise click.exceptions.Exit(1)


@asynccontextmanager
async def _inspected(
    broker_url: str | None, queues: Collection[str], *, as_json: bool = False
) -> AsyncIterator[tuple[Broker, Sequence[str]]]:
    """Open the broker, and report the problems of these queues first."""
    async with opened_broker(broker_url) as broker:
        problems = await broker.inspect(each for each in WORK_QUEUES if each.name in queues)
        for problem in problems:
            if as_json:
                click.echo(json.dumps({"problem": problem}))
            say(f"{problem}.")
        yield broker, problems


async def _list(
    broker_url: str | None, queues: Collection[str], limit: int, *, as_json: bool
) -> tuple[Sequence[str], dict[str, Sequence[DeadLetter]]]:
    """Return the problems, and one more than `limit` of each queue, if it has more."""
    async with _inspected(broker_url, queues, as_json=as_json) as (broker, problems):
        return problems, {name: await broker.dead_letters(name, limit + 1) for name in queues}


async def _redrive(
    broker_url: str | None, queues: Collection[str], limit: int | None
) -> tuple[Sequence[str], dict[str, int]]:
    """Return the problems, and the number of messages put back into each queue."""
    put_back: dict[str, int] = {}
    async with _inspected(broker_url, queues) as (broker, problems):
        await broker.declare(WORK_QUEUES, BROADCASTS)
        for name in queues:
            left = None if limit is None else max(0, limit - sum(put_back.values()))
            put_back[name] = await broker.redrive(name, left)
    return problems, put_back


async def _purge(broker_url: str | None, queue: str) -> tuple[Sequence[str], int]:
    """Return the problems, and the number of deleted messages."""
    async with _inspected(broker_url, [queue]) as (broker, problems):
        return problems, await broker.purge_dead_letters(queue)


def _counted(letters: int) -> str:
    return "1 dead letter" if letters == 1 else f"{letters} dead letters"


def _as_json(letter: DeadLetter) -> dict[str, object]:
    """Return it as JSON: the body as text if it is text, else in base64; both are lossless."""
    message = letter.message
    try:
        body: dict[str, object] = {"body": message.body.decode(), "body_base64": None}
    except UnicodeDecodeError:
        body = {"body": None, "body_base64": base64.b64encode(message.body).decode()}
    return {
        "queue": letter.queue,
        "id": message.id,
        "type": message.type,
        "group": message.group,
        "attempts": letter.attempts,
        "reason": letter.reason,
        **body,
    }
