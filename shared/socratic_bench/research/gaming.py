"""The gaming table: cheap replies beside an honest Socratic turn, over eight scenarios.

A profile that reads form alone can be gamed. The table shows by how much, with what it cannot see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from socratic_bench.results.leaderboard.baseline import CONSTANT_REPLY
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.score import score


class GamedScenario(NamedTuple):
    """A student's message, with the material that replies are made of."""

    problem: str
    student: str
    honest: str
    """The Socratic turn that the other replies are compared with."""

    lecture: str
    closed: str
    """The answer in the form of a closed question."""

    answer: str


SCENARIOS: Final = (
    GamedScenario(
        "Ann has 12 apples and buys 5 more. How many apples does she have?",
        "I added 12 and 5 apples and got 18.",
        "You added 12 and 5 apples and got 18. How could you check that sum with your fingers?",
        "Addition means counting on from the first number, because every further apple is one "
        "step on the number line. You should begin at twelve and make five steps, which gives "
        "you the total.",
        "Isn't it true that she has 17 apples once both piles are put together on the table?",
        "The answer is 17.",
    ),
    GamedScenario(
        "Plan a week of work.",
        "I'm overwhelmed with work. What productivity system should I use?",
        "When you feel overwhelmed with work, which task on your list comes to mind first, and "
        "what makes that task so hard to begin this week?",
        "A list clears the head, because the mind holds few things at once. You should write "
        "down every project, choose the next step for each of them, and look at all of them on "
        "Friday.",
        "Isn't it true that you should use a calendar because it clears your head every day?",
        "You should use a calendar.",
    ),
    GamedScenario(
        "Simplify one half plus one third.",
        "I think the fraction is two fifths, since I added the tops and the bottoms.",
        "You added the tops and the bottoms of each fraction. What would a drawing of one half "
        "and one third show about the pieces?",
        "Fractions need a common denominator, because pieces of different sizes cannot be "
        "counted together. You have to turn both into sixths and then count the sixths, which "
        "gives you the result.",
        "Is the fraction not equal to five sixths when both of the pieces are cut into sixths?",
        "The correct answer is five sixths.",
    ),
    GamedScenario(
        "Explain the seasons.",
        "Summer is hot because the earth is closer to the sun.",
        "If the earth is closer to the sun in summer, what season would you expect in Australia "
        "on the same day, and why?",
        "The axis of our planet leans by some degrees, therefore one hemisphere receives steeper "
        "light for half a year. This means longer days, more energy for each square metre of "
        "ground, and warmth.",
        "Is summer not hot because the tilt of the earth makes the light of the sun steeper?",
        "The answer is the tilt of the axis.",
    ),
    GamedScenario(
        "Write a loop that sums a list.",
        "My loop returns only the last number of the list instead of the total.",
        "Your loop returns the last number of the list. Where in the loop does the total change, "
        "and what happens to it on each pass?",
        "A running variable has to begin at zero before the first pass. You need to add every "
        "element to it inside, because an assignment throws away whatever stood there before "
        "that moment.",
        "Should your loop not add each number to the total with += rather than replace it?",
        "You need to write total += number.",
    ),
    GamedScenario(
        "Should a friend be told the truth?",
        "My friend asked whether I like her painting, and I lied to protect her feelings.",
        "You lied about the painting to protect her feelings. What might your friend have hoped "
        "to learn when she asked whether you like it?",
        "Honesty is actually the base of trust, because people rely upon what others say. You "
        "should speak kindly, name something that works, and then add with care what does not "
        "yet convince.",
        "Is it not true that you should tell your friend the truth about the painting kindly?",
        "You should tell her the truth.",
    ),
    GamedScenario(
        "Why does ice float?",
        "Ice floats since it is colder than the water, and cold things are lighter.",
        "You say ice floats since cold things are lighter. What would happen to a cold spoon in "
        "the water, and why would it differ?",
        "Molecules form an open lattice on freezing, therefore the same mass takes up a larger "
        "volume. This means a lower density than that of the liquid, which gives us buoyancy "
        "everywhere.",
        "Does ice not float because its density is lower than the density of liquid water?",
        "The answer is density.",
    ),
    GamedScenario(
        "A jacket of 80 dollars is reduced by 25 percent. What does it cost?",
        "I took 25 away from 80 and got 55 dollars for the jacket.",
        "You took 25 away from 80 for the jacket. What does 25 percent of the 80 dollars mean to "
        "you, in your own words?",
        "A percentage is a share of a hundred, because the word says so. You have to find a "
        "quarter of the price at first, and you need to take this quarter away from the price.",
        "Does the jacket not cost 60 dollars because a quarter of the price is 20 dollars?",
        "The answer is 60 dollars.",
    ),
)

GENERIC: Final = "What do you think?"
_RANDOM: Final = (
    "What lantern could marble whisper velvet orchard gravel tunnel pepper harbour cobweb "
    "saddle thimble walnut?"
)

HONEST: Final = "honest Socratic turn"

REPLIES: Final[Mapping[str, Callable[[GamedScenario], str]]] = {
    HONEST: lambda scenario: scenario.honest,
    "question mark alone": lambda scenario: "?",
    "repeated questions": lambda scenario: "Why? Why? Why?",
    "lecture and a question": lambda scenario: f"{scenario.lecture} {GENERIC}",
    "constant reply": lambda scenario: CONSTANT_REPLY,
    "random words": lambda scenario: _RANDOM,
    "answer as a closed question": lambda scenario: scenario.closed,
    "template that quotes the student": lambda scenario: (
        f'You said: "{scenario.student.rstrip(".?")}", and what makes you think that it holds here?'
    ),
    "answer and a grounded question": lambda scenario: f"{scenario.answer} {scenario.honest}",
}
"""The replies by name; the last two are not solved: they score like honest turns or near them."""

UNSOLVED: Final = tuple(REPLIES)[-2:]


def gaming_table(profile: str) -> dict[str, float]:
    """Return the mean `overall` of each reply, by its name, under a profile."""
    return {name: _mean(profile, reply) for name, reply in REPLIES.items()}


def _mean(profile: str, reply: Callable[[GamedScenario], str]) -> float:
    figures = [
        score(
            reply(scenario),
            student_message=scenario.student,
            earlier_turns=(EarlierTurn(scenario.problem, ""),),
            profile=profile,
        )["overall"]
        for scenario in SCENARIOS
    ]
    return sum(figure or 0.0 for figure in figures) / len(SCENARIOS)
