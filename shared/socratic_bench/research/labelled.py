"""Responses and dialogues with people's labels: JSON lines, one each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import mistakes_in
from socratic_bench.scoring.exchange import EarlierTurn

_Finite = Annotated[float, Field(allow_inf_nan=False)]


TUTORS: Final = frozenset({"assistant", "tutor", "teacher", "ai", "model"})


class DialogueMessage(BaseModel):
    """A message of a dialogue."""

    model_config = ConfigDict(frozen=True)

    role: Literal[
        "system", "user", "student", "human", "assistant", "tutor", "teacher", "ai", "model"
    ]
    content: str


class TutorTurn(NamedTuple):
    """One response of the tutor, with what came before it."""

    text: str
    student_message: str
    earlier: tuple[EarlierTurn, ...]


class LabelledResponse(BaseModel):
    """A tutor's response or dialogue, what people said of it, and what models said of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    text: str = ""
    """The response; empty for a dialogue."""

    messages: tuple[DialogueMessage, ...] = ()
    """A dialogue with one label for all of the tutor's turns: its figures are their means."""

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

    columns: dict[str, str] = {}
    """The column of a profile that is meant for a label, such as `{"hint": "guide"}`. One line may
    say it for all."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if not self.messages:
            if "text" not in self.model_fields_set:
                raise ValueError("needs `text`, or the `messages` of a dialogue")
            return self
        if self.text or self.student_message:
            raise ValueError("has `messages` and a text besides: give one of both")
        if not any(message.role in TUTORS for message in self.messages):
            raise ValueError("no message of the dialogue is a tutor's")
        return self

    def turns(self) -> Iterator[TutorTurn]:
        """Yield the tutor's turns; several messages of one side in a row are one turn."""
        earlier = (EarlierTurn(self.context, ""),) if self.context else ()
        if not self.messages:
            yield TutorTurn(self.text, self.student_message, earlier)
            return
        student: list[str] = []
        tutor: list[str] = []
        for message in (*self.messages, None):
            if message is not None and message.role in TUTORS:
                tutor.append(message.content)
                continue
            if tutor:
                turn = TutorTurn("\n\n".join(tutor), "\n\n".join(student), earlier)
                yield turn
                earlier = (*earlier, EarlierTurn(turn.student_message, turn.text))
                student, tutor = [], []
            if message is not None and message.role != "system":
                student.append(message.content)


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """The responses of one file."""

    name: str
    responses: tuple[LabelledResponse, ...]
    problems: tuple[str, ...] = field(default=())
    """The lines that were left out: file, numbers and mistake, equal mistakes together."""

    @property
    def meant(self) -> dict[str, str]:
        """The columns that the data assigns to labels."""
        return {label: column for each in self.responses for label, column in each.columns.items()}


def read_set(name: str, place: str, lines: Iterable[bytes]) -> LabelledSet:
    """Read the lines of one file; a bad line is named in `problems`, and the rest goes on.

    Raises InvalidInput where no line is left.
    """
    responses: list[LabelledResponse] = []
    problems: dict[str, list[int]] = {}
    meant: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            response = LabelledResponse.model_validate_json(line.lstrip(b"\xef\xbb\xbf"))
        except ValidationError as error:
            problems.setdefault(mistakes_in(error, LabelledResponse), []).append(number)
            continue
        if other := _other_column(response, meant):
            problems.setdefault(other, []).append(number)
            continue
        responses.append(response)
    told = tuple(f"{place}, {_lines(numbers)}: {mistake}" for mistake, numbers in problems.items())
    if not responses:
        found = f" {told[0]}" if told else ""
        raise InvalidInput(f"{place}: the file has no labelled response.{found}")
    return LabelledSet(name, tuple(responses), told)


def _other_column(response: LabelledResponse, meant: dict[str, str]) -> str:
    """Return what is wrong with the columns of a line, given those of the lines before."""
    for label, column in response.columns.items():
        if meant.setdefault(label, column) != column:
            return f"columns.{label}: must be {meant[label]!r}, as before, not {column!r}"
    return ""


def _lines(numbers: list[int]) -> str:
    """Name lines: `line 3`, `lines 1 to 20`, `lines 1, 4 and 7 more`."""
    first, *others = numbers
    if not others:
        return f"line {first}"
    if others[-1] - first == len(others):
        return f"lines {first} to {others[-1]}"
    more = len(others) - 1
    return f"lines {first}, {others[0]}" + (f" and {more} more" if more else "")
