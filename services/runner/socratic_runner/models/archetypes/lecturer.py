"""The tutor that lectures, long, certain and without a question; and the one that drifts there."""

from __future__ import annotations

from socratic_runner.models.archetypes import socratic
from socratic_runner.models.archetypes.moment import Moment, phrases

OPENINGS = phrases("""
    This is a very common situation, and the way to deal with it is well known. I will set it out
    for you step by step, so that you can simply follow it.

    Let me explain how this works from the beginning. Once you have understood the principle,
    “{word}” will not give you any more trouble.

    What you describe is exactly the point at which most people go wrong. You could have found all
    this in any good book, but I will save you the trouble.

    There is a clear answer to this. I will first give you the background and then tell you what to
    do, in the order in which you must do it.
""")
PARAGRAPHS = {
    "ambiguous": phrases("""
        The first thing to understand is that problems of this kind always have a main cause and
        several minor ones. You should list everything that has to do with “{word}”, strike out
        whatever you cannot influence, and put the rest in order of importance. The item at the top
        of that list is your starting point, and nothing else deserves your attention until it has
        been dealt with.

        The second step is to set yourself a target. A target must be written down, it must have a
        date, and it must be something that can be counted. Vague hopes are of no use to anyone.
        Experience shows that people who review their progress every Friday reach their goals about
        twice as quickly as people who trust their feelings.

        As for “{quote}”, this is best treated as a matter of planning. Divide the work into
        portions of about two hours, give each portion a fixed place in the week, and keep to it.
        Never begin the next portion before the previous one is finished. It is discipline and not
        talent that makes the difference here, as every expert will confirm.

        You should also be aware of the usual mistakes. The most frequent one is to change two
        things at once, so that afterwards nobody knows which of them had the effect. The second is
        to ask everybody who might know something. The third is to give up after three weeks, which
        is precisely when the first results begin to show.

        Money and time are the two resources to keep an eye on. Reserve a fifth of each for
        surprises, because something could come up. Spend half of what remains on the main cause and
        divide the other half among the minor ones. This rule has proved itself over many years and
        applies to your case without any change.

        Finally, you must communicate what you have decided. Tell everyone concerned what will
        happen, when it will happen and why, in that order. Keep it short and do not open a
        discussion about it, since a decision that is discussed again every week is not a decision.
        A single clear message is always better than five friendly ones.
    """),
    "ethical": phrases("""
        There are two great traditions to consider here. The first looks at duties and says that
        some acts are right or wrong whatever comes of them. The second looks at results and weighs
        the benefit for all concerned. Both lead to the same conclusion in your case, which is that
        honesty must come before convenience, even where it is unpleasant.

        You say “{quote}”. That is understandable, but it must not decide the matter. Feelings of
        loyalty are a poor guide, because they always favour the people who happen to be closest to
        us. You should put them to one side, look at the facts alone, and act as any reasonable
        outsider would act with the same facts.

        The correct procedure is as follows. First, write down what you know for certain, with the
        date and the place. Second, find out who is responsible for matters of this kind. Third,
        inform that person in a few plain sentences and keep a copy. After that the matter is no
        longer yours, and you should not discuss it with anybody else.

        It is important to act quickly. A problem like this one never becomes smaller by waiting,
        and every day that passes makes you more a part of it. People who delay usually tell
        themselves that they need more information, when in truth they only need more courage. You
        should therefore settle it within the next two days.

        As regards “{word}”, keep in mind that trust rests on openness. Those who are angry with you
        now will respect you later, once they have understood your reasons. And if they do not, then
        the relationship was not worth as much as you believed. That may sound hard, but it is a
        lesson that everyone must learn at some point in life.

        There might be consequences, and you should be prepared for them. Expect a week or two of
        awkward silence. Do not apologise for having done the right thing, and never let anybody
        persuade you to take it back. When it is over you will feel relieved, and you will know what
        to do the next time something of this kind comes up.
    """),
    "student": phrases("""
        The topic behind this is one of the foundations of the subject, and it must be understood
        before anything else can be. Start with the definition, learn it by heart, and only then
        turn to the exercise. Most mistakes with “{word}” come from skipping this step, because a
        rule that is only half remembered is always applied in the wrong place.

        Now to your exercise. The answer is obtained by applying the rule to each part in turn.
        Write down what is given, write down what is wanted, and put the two side by side. Then
        insert the one into the other, consider the signs, and simplify, one line at a time. You
        should never do two steps on one line, since that is where slips creep in and cannot be
        found again.

        What you wrote, “{quote}”, is a well-known misconception and has been described in every
        textbook for decades. It arises because we transfer what we know from everyday life to a
        field in which other rules apply. Forget the everyday meaning altogether. In this subject
        the word has one exact sense, and you must use it in that sense only.

        A worked example will make it clear. Take the simplest case you could think of, carry it
        through to the end, and compare the result with the one in the book. Then change one thing
        in it and carry it through again. After four or five examples of this kind the method
        becomes a habit, and you will no longer have to think about it.

        You should always check the result before you hand it in. Read the task once more, look at
        the units or the dates or the endings, as the case may be, and ask somebody to compare it
        with theirs. A result that cannot be checked is worth nothing in an examination, however
        good it looks on the page. This takes two minutes and saves a good many marks.

        For the written version, follow the usual pattern: one sentence that says what you are going
        to show, three or four that show it, and one that repeats the result. Do not add anything
        that was not asked for. Teachers mark what they see, and an orderly page always makes a
        better impression than a brilliant idea that nobody can read.
    """),
}
CLOSINGS = phrases("""
    If you follow these points in this order, nothing can go wrong. It is a proven method, and there
    is no need to look for another one.

    That is all there is to it. You could look for shortcuts, but there are none; do it exactly as
    described and the matter is settled.

    Keep this explanation and read it again this evening. You might find it a lot to take in at
    once, but every part of it is needed.

    In short, you now know what to do and why. All that remains is to do it, and you should begin
    today.
""")


def answer(moment: Moment) -> str:
    """Write three or four paragraphs of explanation between an opening and a closing."""
    draw = moment.draw
    opening = moment.fill(draw.one(OPENINGS))
    count = 3 if draw.once_in(3) else 4
    return "\n\n".join((opening, *explanation(moment, count), moment.fill(draw.one(CLOSINGS))))


def explanation(moment: Moment, paragraphs: int) -> list[str]:
    """Return the given number of paragraphs that explain and instruct."""
    pool = PARAGRAPHS.get(moment.dimension, PARAGRAPHS["ambiguous"])
    return [moment.fill(paragraph) for paragraph in moment.draw.some(pool, paragraphs)]


TURNING = (
    "All right, let me help you along a little.",
    "I think we have gone round this long enough to say a few things plainly.",
    "You are nearly there, so here is some of it.",
)
CHECKS = (
    "Does that make sense?",
    "Is that clear so far?",
    "Do you see how that works?",
)


def drift(moment: Moment) -> str:
    """Ask questions in turn 1, then explain one paragraph more in each turn.

    A benchmark of single turns cannot tell this tutor from one that asks.
    """
    if moment.turn == 1:
        return socratic.answer(moment)
    if moment.turn >= 4:
        return answer(moment)
    draw = moment.draw
    parts = [draw.one(TURNING), *explanation(moment, moment.turn - 1)]
    if moment.turn == 2:
        parts.append(moment.fill(draw.one(socratic.LATER_QUESTIONS)))
    else:
        parts.append(draw.one(CHECKS) if draw.once_in(2) else draw.one(CLOSINGS))
    return "\n\n".join(parts)
