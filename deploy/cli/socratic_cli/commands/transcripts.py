"""`socratic-bench transcripts` and `show`: what was said in the runs of an experiment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import click
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.filters import written_conditions
from socratic_bench.results.formats import MISSING, dollars, figure
from socratic_bench.results.leaderboard.answer_sentences import told_of
from socratic_bench.results.transcripts import Transcript, Turn, transcript_of, worst_first
from socratic_bench.results.transcripts import transcripts as transcripts_of
from socratic_bench.scoring.evidence import Span
from socratic_bench.scoring.profile import OVERALL
from socratic_cli.display.terminal import counted, excerpt, name_of, say, standard_output
from socratic_cli.options.results import profile_option, where_option
from socratic_cli.options.store import readable_store, store_option

OPEN: Final = "\u27e6"
CLOSE: Final = "\u27e7"
"""The marks around evidence where no style can show it, as in a file."""

INDENT: Final = "  "

_MARK: Final = "bold underline"


def transcript_text(
    transcript: Transcript, *, has_style: bool, most: int | None = None
) -> RenderableType:
    """Return a transcript with its evidence marked, by style or between OPEN and CLOSE.

    It shows at most `most` characters of a text. A text is data: its control characters and marks
    that change the direction of writing are replaced.
    """
    run = transcript.run
    about = f"{name_of(run.scenario_id)}  repeat {run.repeat}  {run.run_id}"
    parts: list[RenderableType] = [
        Text.assemble((name_of(run.model_id, 100), "bold"), (f"  {about}", "dim"))
    ]
    for turn in transcript.turns:
        parts += _turn(turn, has_style=has_style, most=most)
    if failure := transcript.failure:
        told = f"failed at turn {failure.turn} after {counted(failure.attempts, 'attempt')}"
        parts.append(Text(f"{told}: {failure.kind}: {excerpt(failure.message, 300)}"))
    return Group(*parts, Text())


def readable(text: str) -> str:
    """Return a text of the same length whose characters all print, line ends aside."""
    return "".join(
        each if each.isprintable() or each == "\n" else " " if each in "\t\r" else "\ufffd"
        for each in text
    )


def _turn(turn: Turn, *, has_style: bool, most: int | None) -> Iterator[RenderableType]:
    response = turn.response
    yield Text()
    yield Text(f"student, turn {response.turn}", style="dim")
    said = response.student_message
    yield _Indented(Text(readable(said)[:most]).append(_rest(said, most), style="dim"))
    yield Text("tutor", style="dim")
    yield _Indented(_marked(turn, has_style=has_style, most=most))
    facts = turn.score.evidence.facts if turn.score.scored else {}
    names = [OVERALL, *facts]
    width = max(map(len, names))
    if turn.score.scored:
        for name in names:
            fact = facts.get(name)
            why = f"  {excerpt(fact.sentence, 200)}" if fact else ""
            word = f"  {excerpt(fact.word)}" if fact and fact.word else ""
            yield Text.assemble(
                f"  {name:<{width}}  {figure(turn.score[name])}", (why, "dim"), (word, "italic")
            )
    yield Text(f"  {_about(turn)}", style="dim")
    for told in told_of(response):
        yield Text(f"  note: {told}", style="dim")


def _marked(turn: Turn, *, has_style: bool, most: int | None) -> Text:
    text = readable(turn.response.text)[:most]
    spans = turn.score.evidence.spans if turn.score.scored else ()
    if has_style:
        marked = Text(text)
        for span in spans:
            marked.stylize(_MARK, span.start, span.end)
    else:
        marked = Text("".join(_bracketed(text, spans)))
    return marked.append(_rest(turn.response.text, most), style="dim")


def _bracketed(text: str, spans: tuple[Span, ...]) -> Iterator[str]:
    """Yield the text with brackets around its spans; a span inside another one has none."""
    done = 0
    for span in spans:
        if done <= span.start < min(span.end, len(text)):
            yield text[done : span.start]
            yield f"{OPEN}{text[span.start : span.end]}{CLOSE}"
            done = span.end
    yield text[done:]


def _rest(text: str, most: int | None) -> str:
    """Say how much of a text is not shown."""
    rest = 0 if most is None else len(text) - most
    return f" \u2026 {rest:,} more characters" if rest > 0 else ""


@dataclass(frozen=True, slots=True)
class _Indented:
    """A text two columns in from the left, without blanks at the ends of its lines."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.wrap(console, max(1, options.max_width - len(INDENT))):
            line.rstrip()
            yield Text.assemble(INDENT, line) if line else line


def _about(turn: Turn) -> str:
    response = turn.response
    tokens, cost = response.usage.visible_output_tokens, response.cost_nanodollars
    latency = MISSING if response.latency_ms is None else f"{response.latency_ms} ms"
    price = MISSING if cost is None else dollars(cost / NANODOLLARS_PER_DOLLAR)
    status = turn.score.status.value
    scored = "" if turn.score.scored else ", no score"
    return (
        f"status {status}{scored}  tokens {MISSING if tokens is None else tokens}  "
        f"latency {latency}  cost {price}"
    )


MOST_CHARACTERS: Final = 4_000
"""The most characters of a text; `show` has all of them."""


@click.command()
@click.argument("experiment")
@store_option
@profile_option
@click.option("--model", metavar="ID", help="Only this model.")
@click.option("--scenario", metavar="ID", help="Only this scenario.")
@where_option
@click.option(
    "--worst", type=click.IntRange(min=1), metavar="N", help="The N runs with the lowest scores."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="The most runs."
)
def transcripts(
    experiment: str,
    store_url: str,
    profile: str | None,
    model: str | None,
    scenario: str | None,
    where: tuple[str, ...],
    worst: int | None,
    limit: int,
) -> None:
    """Show what was said in the runs of an experiment.

    The evidence for each score is marked in place. EXPERIMENT is an ID, its start, an occasion or
    a name.
    """

    async def show_them() -> None:
        console = standard_output()
        shown, most = 0, worst or limit
        async with readable_store(store_url) as store:
            known = await find_experiment(store, experiment)
            found = transcripts_of(
                store,
                known,
                model=model,
                scenario=scenario,
                where=written_conditions(where),
                profile=profile,
            )
            if worst is not None:
                found = _each(await worst_first(found, worst))
            async for transcript in found:
                if shown == most:
                    say(f"There are more runs: --limit {2 * most} shows more of them.")
                    break
                console.print(
                    transcript_text(transcript, has_style=console.is_terminal, most=MOST_CHARACTERS)
                )
                shown += 1
        if not shown:
            say("There is no such transcript yet.")

    asyncio.run(show_them())


async def _each(found: Iterable[Transcript]) -> AsyncIterator[Transcript]:
    for transcript in found:
        yield transcript


@click.command()
@click.argument("run")
@store_option
@profile_option
def show(run: str, store_url: str, profile: str | None) -> None:
    """Show one run in full, with the evidence for its score.

    RUN is its id, as `transcripts` shows it.
    """
    console = standard_output()
    transcript = asyncio.run(_load(store_url, run, profile))
    console.print(transcript_text(transcript, has_style=console.is_terminal))


async def _load(store_url: str, run: str, profile: str | None) -> Transcript:
    async with readable_store(store_url) as store:
        return await transcript_of(store, run, profile)
