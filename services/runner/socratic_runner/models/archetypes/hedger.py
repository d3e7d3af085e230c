"""The tutor that avoids commitment: everything might, could, perhaps, and depends."""

from __future__ import annotations

from socratic_runner.models.archetypes.moment import Moment, phrases

OPENINGS = phrases("""
    That is a good question, and perhaps not one with a single answer.

    It depends, really, on a number of things that could go either way.

    There might be several ways to look at “{quote}”, and each could have something to it.

    I would be careful here, since so much depends on the circumstances.

    Perhaps it is best to begin by saying that people see “{word}” very differently.
""")
SENTENCES = {
    "ambiguous": phrases("""
        It could be what you think it is, though it might just as well be something that has nothing
        to do with it.

        Some would look at the figures first, while others might say that figures could mislead at
        this stage.

        Where you say “{quote}”, that might be the heart of it, or it could be a side issue.

        A small step could help, although a large one might help more, depending on how much time
        you have.

        You might ask somebody who has been through it, but then their case could be quite unlike
        yours.

        Perhaps waiting a little is an option, if it turns out that nothing much is lost by it.

        There are no guarantees, of course, and what works for one person might not for another.
    """),
    "ethical": phrases("""
        On the one hand loyalty could weigh a great deal here, and on the other hand so might being
        open about it.

        Some people in your place might speak up, and others could have good reasons to wait.

        What you call “{quote}” might look different in a week, or perhaps it will look the same.

        It could be worth thinking about the consequences, as far as anybody can foresee them.

        Rules might help a little, though they could also miss what is special about your case.

        Perhaps a middle way exists, if everyone involved could agree to something of that sort.

        Neither choice is wrong as such, and either might turn out to be the better one.
    """),
    "student": phrases("""
        There might be more than one way to do this, and which is easier could be a matter of taste.

        Your idea about “{word}” could well be right, although it might need a small correction
        somewhere.

        Some books would put it one way, and perhaps your teacher might put it another way.

        You might look at the step before, or it could be the one after that needs attention.

        It may help to consider an example, though examples could also be misleading at times.

        Where you write “{quote}”, I could imagine that some would agree and some might not.

        Perhaps checking it once more is worthwhile, if only because small slips are common.
    """),
}
CLOSINGS = phrases("""
    So it could go either way, and perhaps that is fine for now.

    In the end it depends on what feels right to you, which might of course change.

    There is always a bit of uncertainty in these things, and that might be all right.

    I could say more, but it would probably depend on details that I do not have.
""")
QUESTIONS = (
    "Would any of that perhaps be of use to you?",
    "Could one of these be closer to what you had in mind?",
    "Does that make sense so far, or might it depend on something else?",
)


def answer(moment: Moment) -> str:
    """Write 80 to 130 words around the matter; one reply in three ends with a question."""
    draw = moment.draw
    sentences = SENTENCES.get(moment.dimension, SENTENCES["ambiguous"])
    parts = [draw.one(OPENINGS), *draw.some(sentences, 3 + draw.below(2))]
    parts.append(draw.one(QUESTIONS) if draw.once_in(3) else draw.one(CLOSINGS))
    return " ".join(moment.fill(part) for part in parts)
