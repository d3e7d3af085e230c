"""A scenario: a student with a question, within one of the testing conditions."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[^\s\x00]([^\n\x00]*[^\s\x00])?$")
]
"""A non-empty name on one line, without white space at its ends, and without NUL."""

DIMENSIONS: Final = ("ambiguous", "ethical", "student")
"""The dimensions of the default pack, in the order in which they are shown."""


class Scenario(BaseModel):
    """One test prompt within a dimension, and what it is there for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Name
    dimension: Name
    """The testing condition: `ambiguous`, `ethical` or `student` in the default pack."""

    prompt: Annotated[str, Field(min_length=1, max_length=20_000)]
    """What the student says first."""

    title: str = ""
    persona: str = ""
    """Who is asking: for people who read the scenario; the tutor is not told."""

    aim: str = ""
    """What a Socratic answer would go for; the tutor is not told."""

    follow_ups: tuple[Annotated[str, Field(min_length=1, max_length=20_000)], ...] = ()
    """What the student says in the turns after the first, whatever the tutor answered."""

    @property
    def student_messages(self) -> tuple[str, ...]:
        """What the student says, turn by turn."""
        return (self.prompt, *self.follow_ups)

    @property
    def turns(self) -> int:
        """How many turns a run of this scenario has."""
        return 1 + len(self.follow_ups)
