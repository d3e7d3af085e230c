"""`python -m tests.architecture.documents.events_page > docs/events.md`: the page of the events.

The code has every sentence of a field: its docstring.
"""

import ast
import inspect
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

from pydantic import BaseModel

from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.codec import Event
from socratic_bench.events.envelope import Envelope, kind_of
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.statuses import Status

GOLDEN = Path(__file__).parents[2] / "golden" / "events" / "v1"

PRODUCERS = {
    "run.requested": "`submit` and `run`; the curator's reconciler, for runs that got lost",
    "response.recorded": "the runner; `submit` and `run`, for stored conversations; the "
    "curator's reconciler, for stored responses without a score",
    "response.scored": "the judge",
    "run.failed": "the runner; the curator's reconciler, for stored failures",
    "aggregate.updated": "the curator, after each batch",
    "experiment.completed": "the curator",
}

PARTS = (Run, Usage, EarlierTurn)
"""Structures that several events have, described once."""

INTRODUCTION = """\
# Events

The services talk in [CloudEvents 1.0](https://cloudevents.io), each encoded as structured JSON. A
work queue has one event type and competing consumers; a broadcast goes to every listener. A message
may arrive twice, and in any order. Readers ignore fields that they do not know.

`.venv/bin/python -m tests.architecture.documents.events_page > docs/events.md` writes this page
from the code; a test compares both.

## Attributes of every event

"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION + fields_of(Envelope)]
    parts += [section(event) for event in get_args(Event)]
    parts.append("## Parts\n")
    parts += [f"### {part.__name__}\n\n{sentence(part)}\n\n{fields_of(part)}" for part in PARTS]
    statuses = ", ".join(f"`{status}`" for status in Status)
    parts.append(f"### Status\n\n{sentence(Status)} One of {statuses}.\n")
    return "\n".join(parts)


def section(event: type[Envelope]) -> str:
    """The section of one event."""
    event_type = event.model_fields["type"].default
    kind = kind_of(event_type)
    data = event.model_fields["data"].annotation
    example = (GOLDEN / f"{kind}.json").read_text().rstrip()
    return f"""\
## `{kind}`

{sentence(event)}

- **Type** `{event_type}`
- **Producer** {PRODUCERS[kind]}
- **Consumer** {consumer(event_type)}

`data`: {sentence(data)}

{fields_of(data)}
```json
{example}
```
"""


def consumer(event_type: str) -> str:
    """The queues that take the type, or that it is broadcast."""
    if event_type in BROADCASTS:
        return "every listener (broadcast)"
    return ", ".join(f"queue `{q.name}`" for q in WORK_QUEUES if q.event_type == event_type)


def sentence(described: Any) -> str:
    """The docstring in one line."""
    return " ".join((inspect.getdoc(described) or "").split())


def fields_of(described: Any) -> str:
    """The table of the fields, with the schema's types and the code's sentences."""
    schema = schemas()[described.__name__]
    required = set(schema.get("required", ()))
    meanings = docstrings(described)
    rows = ["| field | type | presence | meaning |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        if name in {"type", "data"}:
            continue
        presence = "required" if name in required else "optional"
        rows.append(f"| `{name}` | {type_of(field)} | {presence} | {meanings[name]} |")
    return "\n".join(rows) + "\n"


def schemas() -> dict[str, Any]:
    """The JSON schema of every structure, by its class name."""
    found: dict[str, Any] = {"Envelope": Envelope.model_json_schema()}
    for model in (*get_args(Event), Response, ScoredResponse, RunFailure):
        schema = model.model_json_schema()
        found |= schema.pop("$defs") | {model.__name__: schema}
    return found


def type_of(field: dict[str, Any]) -> str:
    """A JSON type in words, with its bounds."""
    if "anyOf" in field:
        return " or ".join(type_of(each) for each in field["anyOf"])
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in field:
        return f'`"{field["const"]}"`'
    if field["type"] == "array":
        return f"array of {type_of(field['items'])}"
    if field["type"] == "object":
        return f"object of {type_of(field['additionalProperties'])}"
    word = {"date-time": "time (RFC 3339)"}.get(field.get("format", ""), field["type"])
    return word + bounds(field)


def bounds(field: dict[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None:
        return f", {least:,} to {most:,}"
    return "" if least is None else f", at least {least:,}"


def docstrings(described: type) -> dict[str, str]:
    """The docstrings of the fields, in one line each."""
    found: dict[str, str] = {}
    for each in reversed(described.__mro__):
        if each in {object, BaseModel} or not each.__module__.startswith("socratic"):
            continue
        [class_] = ast.parse(dedent(inspect.getsource(each))).body
        assert isinstance(class_, ast.ClassDef)
        for field, text in zip(class_.body, class_.body[1:], strict=False):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(sentences))),
                ):
                    found[name] = re.sub(r"\s+", " ", sentences).strip()
    return found


if __name__ == "__main__":
    sys.stdout.write(page())
