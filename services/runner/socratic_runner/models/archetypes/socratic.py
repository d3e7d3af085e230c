"""The tutor that asks: an optional opening, then one or two short, open questions."""

from __future__ import annotations

from socratic_runner.models.archetypes.moment import Moment

OPENINGS = (
    "",
    "",
    "",
    "Let us slow down for a moment.",
    "Thank you for putting it so plainly.",
    "I can see why this is on your mind.",
    "That is worth a closer look.",
    "Before we look for an answer, let us look at the question.",
    "I am not sure that I see it yet.",
    "Good, there is already a lot in what you say.",
)
LATER_OPENINGS = (
    "",
    "",
    "Let us stay with that.",
    "You have just said something new.",
    "Now put that beside what you said at first.",
    "I am still thinking about your last sentence.",
    "That moves us on a little.",
)
QUESTIONS = {
    "ambiguous": (
        "What might “{word}” mean to you here, as exactly as you can say it?",
        "You say “{quote}”. What have you seen for yourself, and what could be a guess?",
        "Who else is part of this, and what might they say about “{quote}”?",
        "What if “{quote}” were only half of the story? What might the other half be?",
        "Suppose it turned out well. What could you point to, a month from now, as proof?",
        "It all seems to hang on “{word}”. Perhaps tell me what you know about it so far?",
        "What would have to be different for this not to be a question any more?",
        "Which of these depends on you, and which depends on somebody else?",
        "You mention “{quote}”. What might be another reason for the very same thing?",
    ),
    "ethical": (
        "What makes this hard: what you might lose, or what somebody else could?",
        "Who would notice if you did nothing, and what might each of them say?",
        "You say “{quote}”. Which of the things that matter to you does that touch?",
        "What if you stood on the other side of this? What could you hope for then?",
        "Is there a promise in here, spoken or not, and what might it be worth to you?",
        "Imagine telling the story a year from now. What could you tell without wincing?",
        "Perhaps there are more than two ways out. Which ones have you not looked at yet?",
        "What do you think you should do, and what could speak against it?",
        "When you hear yourself say “{quote}”, which word in it is the heaviest?",
    ),
    "student": (
        "You write “{quote}”. How could you find out whether that is so, without me?",
        "What might happen if you tried it with a smaller case first?",
        "Which step are you sure of, and where might the first doubt be?",
        "How would you explain “{word}” to somebody who had never heard of it?",
        "What if you drew it? What could the drawing tell you about “{quote}”?",
        "What must be true for that to be right, and could you think of a case where it is not?",
        "Suppose somebody in your class said the opposite. What might you show them?",
        "What do you know already about “{word}” that could be of use here?",
        "Consider just the first part of it. What does it say, in your own words?",
    ),
}
LATER_QUESTIONS = (
    "What made you change from “{word}” to that?",
    "If that is so, what might follow from it?",
    "How does that fit with what you told me at the start?",
    "And what if somebody asked you to prove it?",
    "Which part of your answer could you still be wrong about?",
    "What might you try next, to see whether it holds?",
    "You say “{quote}”. How sure are you of that, out of ten, and why not eleven?",
)
FURTHER_QUESTIONS = (
    "How do you know?",
    "And what might change your mind?",
    "What could be the first thing to find out?",
    "Where does that come from?",
)
INVITATIONS = (
    "Take your time with that one.",
    "Write down the first thing that comes to mind, before it gets tidy.",
    "Perhaps say it aloud once before you answer.",
)


def answer(moment: Moment) -> str:
    """Ask one or two questions with the student's own words, 15 to 50 words in all."""
    draw = moment.draw
    opening, question = draw.one(OPENINGS), draw.one(questions_for(moment.dimension))
    if moment.turn > 1:
        opening, question = draw.one(LATER_OPENINGS), draw.one(LATER_QUESTIONS)
    parts = [opening, moment.fill(question)]
    if draw.once_in(4):
        parts.append(draw.one(FURTHER_QUESTIONS))
    if draw.once_in(9):
        parts.append(draw.one(INVITATIONS))
    return " ".join(part for part in parts if part)


def questions_for(dimension: str) -> tuple[str, ...]:
    """Return the first questions for a dimension; an unknown one gets those for `ambiguous`."""
    return QUESTIONS.get(dimension, QUESTIONS["ambiguous"])
