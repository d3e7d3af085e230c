"""Reads samples of lm-evaluation-harness, and observations that Langfuse exported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_cli.reading.answers import usage_of
from socratic_cli.reading.conversations import student_and_turns, system_prompt_of
from socratic_cli.reading.files import MOST_BYTES
from socratic_cli.reading.json_stream import documents, reader, rows_of
from socratic_cli.reading.logged_runs import (
    LogFacts,
    LoggedRun,
    LoggedTurn,
    LogRows,
    Unread,
    instant,
    member,
    text_or_none,
    whole_number,
)
from socratic_cli.reading.messages import content_of


def read_lm_eval(path: Path, facts: LogFacts) -> LogRows:
    """Yield the runs of a sample file. Model and version stand in the results beside it."""
    results = _results_of(path)
    model = text_or_none(results.get("model_name")) or path.parent.name or "unknown"
    facts.version = text_or_none(results.get("lm_eval_version"), 40)
    facts.created = instant(results.get("date"))
    task = path.stem.removeprefix("samples_").rpartition("_")[0]
    facts.planned = whole_number(member(results, "n-samples", task, "effective"))
    if not results:
        facts.remarks = [f"no {_results_name(path)} stands beside it: the model is unknown"]
    system = results.get("system_instruction")
    system = system if isinstance(system, str) else None
    seen: set[object] = set()

    def runs_of(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
        document = record["doc_id"]
        if document in seen:
            return  # the same answers, through another filter
        seen.add(document)
        answers = record["resps"][0]
        if not isinstance(answers, list) or not all(isinstance(each, str) for each in answers):
            raise ValueError("`resps` holds no texts: the task compares likelihoods")
        asked, before, prompt = _asked(member(record, "arguments", "gen_args_0", "arg_0"))
        for number, text in enumerate(answers, start=1):
            yield LoggedRun(
                place,
                model,
                f"{task} {document}".strip(),
                [LoggedTurn(asked, text)],
                before,
                repeat=number,
                system_prompt=prompt if prompt is not None else system,
                dimension=task,
                at=facts.created,
            )

    yield from reader(runs_of)(path, facts)


def _results_name(path: Path) -> str:
    return f"results_{path.stem.rpartition('_')[2]}.json"


def _results_of(path: Path) -> Mapping[str, Any]:
    try:
        with (path.parent / _results_name(path)).open("rb") as file:
            results = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return results if isinstance(results, Mapping) else {}


def _asked(prompt: object) -> tuple[str, tuple[EarlierTurn, ...], str | None]:
    """Return what the student says in a prompt, the turns before, and the system prompt."""
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        return "", (), None
    if prompt.lstrip().startswith("["):
        try:
            messages = json.loads(prompt)
            if (asked := student_and_turns(messages)) is not None:
                system = system_prompt_of({"messages": messages})
                return asked["student_message"], tuple(asked["earlier_turns"]), system
        except (ValueError, TypeError, RecursionError):
            pass
    return prompt, (), None


_GENERATION: Final = "GENERATION"


def read_langfuse(path: Path, facts: LogFacts) -> LogRows:
    """Yield each generation of an export as a run; a page of the API has them in `data`."""
    for found in documents(path):
        if isinstance(found, Unread):
            yield found
            continue
        place, record = found
        page = member(record, "data")
        for number, each in enumerate(page if isinstance(page, list) else [record], start=1):
            where = f"{place} observation {number}" if isinstance(page, list) else place
            yield from rows_of(where, each, _generation)


def _generation(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    if record.get("type", _GENERATION) != _GENERATION:
        return
    asked, before, system = _input(record.get("input"))
    output = record.get("output")
    output = _parsed(output)
    if isinstance(choices := member(output, "choices"), list) and choices:
        output = member(choices[0], "message")
    said = content_of(member(output, "content") if isinstance(output, Mapping) else output)
    failed = record.get("level") == "ERROR"
    error = text_or_none(record.get("statusMessage"), 500) or "Langfuse marks it as an error"
    if said is None and not failed:
        raise ValueError("`output` holds no text")
    status = Status.REFUSED if said is not None and said.refused else Status.OK
    turns = [] if said is None or failed else [_turn(record, asked, said.text, status)]
    yield LoggedRun(
        place,
        text_or_none(record.get("model")) or "unknown",
        "",
        turns,
        before,
        error=error if failed else None,
        asked=asked,
        system_prompt=system,
        dimension=text_or_none(record.get("name"), 100) or "",
        at=instant(record.get("startTime", record.get("start_time"))),
    )


def _turn(record: Mapping[str, Any], asked: str, text: str, status: Status) -> LoggedTurn:
    details = _parsed(record.get("usageDetails", record.get("usage_details")))
    usage = _parsed(record.get("usage"))
    written = whole_number(member(details, "output"))
    if written is None:
        written = whole_number(member(usage, "output"))
    read = whole_number(member(details, "input"))
    read = whole_number(member(usage, "input")) if read is None else read
    thought = whole_number(member(details, "output_reasoning_tokens")) or 0
    seconds = record.get("latency")
    # The details part the output into what is seen and thoughts; a count of 0 is none.
    return LoggedTurn(
        asked,
        text,
        status,
        written or None,
        thought,
        read or usage_of(record)[0],
        whole_number(seconds * 1000) if isinstance(seconds, int | float) else None,
    )


def _input(asked: object) -> tuple[str, tuple[EarlierTurn, ...], str | None]:
    asked = _parsed(asked)
    messages = member(asked, "messages") if isinstance(asked, Mapping) else asked
    return _asked(json.dumps(messages) if isinstance(messages, list) else messages)


def _parsed(value: object) -> object:
    """Return what stands as JSON in a string, as in an export of a table; else the value."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        found: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found
