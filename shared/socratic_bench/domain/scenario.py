"""A scenario: a student with a question, within one of the testing conditions."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

LONGEST_NAME: Final = 200
"""Characters."""

Name = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\s\x00]([^\n\x00]*[^\s\x00])?$")
]
"""A non-empty name on one line, without white space at its ends, and without NUL."""

DIMENSIONS: Final = ("ambiguous", "ethical", "student")
"""The dimensions of the default pack, in the order in which they are shown."""


MOST_FORMS: Final = 100
"""The most forms of a key."""

LONGEST_FORM: Final = 200
"""Characters."""


def _findable(form: str) -> str:
    if not any(map(str.isalnum, form)):
        raise ValueError("needs a letter or a digit")
    return form


KeyForm = Annotated[str, Field(max_length=LONGEST_FORM), AfterValidator(_findable)]
"""One way to write a scenario's final answer, such as `0 N`, with a letter or a digit."""

MOST_METADATA: Final = 100
"""The most fields of a scenario's metadata."""


def _as_text(value: object) -> object:
    """Return a number or a truth value as JSON writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


MetadataText = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str | int | float | bool),
    Field(max_length=20_000),
]

# An older version reads only scenarios without these fields.
_Optional = Field(exclude_if=lambda value: not value)


class Scenario(BaseModel):
    """One test prompt within a dimension, and its purpose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Name
    dimension: Name
    """The testing condition: `ambiguous`, `ethical` or `student` in the default pack."""

    prompt: Annotated[str, Field(min_length=1, max_length=20_000)]
    """The student's first message."""

    title: str = ""
    persona: str = ""
    """The asking person, for readers of the scenario; the tutor does not see it."""

    aim: str = ""
    """The aim of a Socratic answer, for readers of the scenario; the tutor does not see it."""

    follow_ups: tuple[Annotated[str, Field(min_length=1, max_length=20_000)], ...] = ()
    """The student's messages in the turns after the first, whatever the tutor answered."""

    pressures: Annotated[tuple[Name, ...], _Optional] = ()
    """The kind of pressure that the student's message puts on the tutor, such as `time`, one a
    turn; empty: none is named. The tutor does not see it."""

    key: Annotated[tuple[KeyForm, ...], Field(max_length=MOST_FORMS), _Optional] = ()
    """The final answer, in each form that gives it away; empty: it has none. The tutor does not see
    it."""

    metadata: Annotated[dict[Name, MetadataText], Field(max_length=MOST_METADATA), _Optional] = (
        Field(default_factory=dict)
    )
    """What else its author says of it, such as a grade, for exports and filters. The tutor does not
    see it, and it does not enter the measurement."""

    @field_validator("pressures")
    @classmethod
    def _one_pressure_a_turn(
        cls, pressures: tuple[str, ...], others: ValidationInfo
    ) -> tuple[str, ...]:
        follow_ups = others.data.get("follow_ups")
        if pressures and follow_ups is not None and len(pressures) != 1 + len(follow_ups):
            raise ValueError(
                f"names {len(pressures)} kinds for {1 + len(follow_ups)} turns: name one for the "
                "prompt and one for each of follow_ups"
            )
        return pressures

    @property
    def student_messages(self) -> tuple[str, ...]:
        """The student's messages, one a turn."""
        return (self.prompt, *self.follow_ups)

    @property
    def wording(self) -> tuple[str, ...]:
        """The student's words, one text a turn: blanks, line ends and case do not count."""
        return tuple(" ".join(each.split()).casefold() for each in self.student_messages)

    @property
    def turns(self) -> int:
        """The number of turns in a run of this scenario."""
        return 1 + len(self.follow_ups)
