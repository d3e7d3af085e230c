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
