"""Responses with people's labels: JSON lines, one response each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import mistakes_in

_Finite = Annotated[float, Field(allow_inf_nan=False)]


class LabelledResponse(BaseModel):
    """A tutor's response, what people said of it, and what models said of it."""

    model_config = ConfigDict(frozen=True)

    text: str
    student_message: str = ""
    context: str = ""
    """The earlier messages of both sides, with the problem."""

    labels: dict[str, Literal[0, 1]]
    """People's yes (1) or no (0), by question."""

    ordinal: dict[str, _Finite] = {}
    """People's finer answers, by question, where there are any."""

    group: str
    """Responses of one group, such as one problem, resemble each other."""

    source: str = "?"
    tutor: str = "?"
    judges: dict[str, dict[str, _Finite | None]] = {}
    """Verdicts of models, by question and model; None: the model gave none."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """The responses of one file."""

    name: str
    responses: tuple[LabelledResponse, ...]
    problems: tuple[str, ...] = field(default=())
    """The lines that were left out, each with its file, its number and the mistake."""


def read_set(name: str, place: str, lines: Iterable[bytes]) -> LabelledSet:
    """Read the lines of one file; a bad line is named in `problems`, and the rest goes on.

    Raises InvalidInput where no line is left.
    """
    responses: list[LabelledResponse] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            responses.append(LabelledResponse.model_validate_json(line.lstrip(b"\xef\xbb\xbf")))
        except ValidationError as error:
            mistake = mistakes_in(error, LabelledResponse)
            problems.append(f"{place}, line {number}: {mistake}")
    if not responses:
        found = f" {problems[0]}" if problems else ""
        raise InvalidInput(f"{place}: the file has no labelled response.{found}")
    return LabelledSet(name, tuple(responses), tuple(problems))
