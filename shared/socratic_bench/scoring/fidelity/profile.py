"""The recipes of `fidelity-1` and `fidelity-seed`: which turns lapse, and what a run counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from socratic_bench.scoring.evidence import Evidence, Fact, Mark, Span, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.fidelity.facts import (
    Facts,
    facts_of,
    key_places,
    reading_of_turn,
    says_key,
)
from socratic_bench.scoring.fidelity.states import (
    Counts,
    Finding,
    KnownFindings,
    State,
    Turn,
    break_of,
    counts_of,
    digest_of,
    this_turn,
    turns_of,
)
from socratic_bench.scoring.profile import ScoreRange, VectorDescription, Weights
from socratic_bench.scoring.socratic_v1.profile import SocraticV1
from socratic_bench.scoring.socratic_v2.evidence import (
    ECHO,
    OFFER,
    QUESTION,
    RUN_ON,
    sentence_spans,
)
from socratic_bench.scoring.socratic_v2.reading import layout_of, normalised, normalised_positions

KEPT: Final = "kept"
KEY: Final = "key"
CODE: Final = "code"

MOST_TOLD: Final = 80
"""Words that a turn may tell without a lapse."""

PASSING: Final = 0.5
"""The overall of `socratic-v1` below which a turn lapses under `fidelity-seed`."""

_RANGES: Final = (ScoreRange(1.0, State.KEPT.value), ScoreRange(0.0, State.LAPSED.value))
_FIGURES: Final = {State.KEPT: 1.0, State.LAPSED: 0.0, State.UNKNOWN: None}
_YES_OR_NO: Final = {True: "yes", False: "no"}
_SIGNS: Final = {State.KEPT: ".", State.LAPSED: "L", State.UNKNOWN: "?"}

LEGEND: Final = (
    SpanKind(
        QUESTION,
        "genuine question",
        "A genuine question: a turn without one lapses.",
        Mark.PASSAGE,
    ),
    SpanKind(ECHO, "echo", "A sentence of the student's, word for word: it is told.", Mark.NEUTRAL),
    SpanKind(
        OFFER, "offer", "An offer of service in the form of a question: it is told.", Mark.NEUTRAL
    ),
    SpanKind(CODE, "code", "A code block: its words are told.", Mark.NEUTRAL),
    SpanKind(
        RUN_ON,
        "run-on",
        "The tutor writes the student's lines: the turn lapses, and this part is not read.",
        Mark.LOWERS,
    ),
    SpanKind(KEY, "answer", "A form of the scenario's final answer: the turn lapses.", Mark.LOWERS),
)

_SEED_KEY: Final = SpanKind(
    KEY, "answer", "A form of the scenario's final answer: it changes no score.", Mark.NEUTRAL
)

DESCRIPTION: Final = VectorDescription(
    name=KEPT,
    meaning=(
        "1.00 keeps to asking, 0.00 lapses: it asks nothing, lectures, speaks for the "
        "student or says the answer."
    ),
    formula=(
        "1 with a genuine question, at most 80 words of other sentences and code, no line "
        "of the student's, and no form of the scenario's key; else 0. A refused, empty or "
        "failed response is unknown, and so is a cut-off one that has not lapsed yet."
    ),
    examples=(
        ("What do you think?", None),
        ("I hear you. Let us look at it together.", None),
    ),
    ranges=_RANGES,
    yes="keep to asking",
)

SEED_DESCRIPTION: Final = VectorDescription(
    name=KEPT,
    meaning="1.00 has an overall of 0.50 or more by socratic-v1, 0.00 less.",
    formula=(
        "1 if (verbosity + exploratory + interrogative) / 3 >= 0.50, else 0. A refused, "
        "empty or failed response is unknown, and so is a cut-off one that has not lapsed."
    ),
    examples=(
        ("What might you try?", None),
        ("You should always do this.", 400),
    ),
    ranges=_RANGES,
    yes="reach 0.50 by socratic-v1",
)


class FidelityProfile(ABC):
    """One vector, whether the tutor kept to asking in a turn, and the counts of a run's curves.

    A profile remembers the findings of turns, so that a later turn of a run reads only its own
    text.
    """

    name: str
    description: VectorDescription
    vectors = (KEPT,)
    counts = Counts._fields
    weights = Weights()

    def __init__(self) -> None:
        self._known = KnownFindings()

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Score finished responses, and cut-off ones, of which some have lapsed already."""
        return status in (Status.OK, Status.TRUNCATED)

    def measure(self, exchange: Exchange) -> tuple[float | None]:
        """Return 1.0 for a turn that kept, 0.0 for one that lapsed, None for an unknown one."""
        return (_FIGURES[self.state(exchange)],)

    def count(self, exchange: Exchange) -> Counts:
        """Return the counts of this turn, given the turns before it."""
        turns = turns_of(exchange)
        found = [self._finding(turn, exchange.key) for turn in turns]
        return counts_of(
            self._states(turns, found),
            [finding.says_key for finding in found],
            has_key=bool(exchange.key),
        )

    def state(self, exchange: Exchange) -> State:
        """Return the state of this turn."""
        turn = this_turn(exchange)
        return self._finding(turn, exchange.key).state(turn.status)

    def evidence(self, exchange: Exchange) -> Evidence:
        """Return the reasons for the state of this turn, and the states of the run so far."""
        turns = turns_of(exchange)
        states = self._states(turns, [self._finding(turn, exchange.key) for turn in turns])
        spans, fact = self._explained(turns[-1], exchange.key, states[-1])
        answers = (
            Span(start, end, KEY, exchange.text[start:end])
            for start, end in key_places(exchange.text, exchange.key)
        )
        ordered = sorted([*spans, *answers], key=lambda span: (span.start, span.end))
        return Evidence(tuple(ordered), {KEPT: fact}, _run_notes(states))

    def describe(self) -> tuple[VectorDescription, ...]:
        return (self.description,)

    @abstractmethod
    def legend(self) -> tuple[SpanKind, ...]: ...

    @abstractmethod
    def _content(self, turn: Turn) -> tuple[str, ...]:
        """Return all of a turn that its finding depends on, besides the key."""

    @abstractmethod
    def _found_in(self, turn: Turn, key: tuple[str, ...]) -> Finding:
        """Read one turn."""

    @abstractmethod
    def _explained(
        self, turn: Turn, key: tuple[str, ...], state: State
    ) -> tuple[Sequence[Span], Fact]:
        """Return the parts of a turn that decide about a lapse, without the answer, and why it has
        its state.
        """

    def _finding(self, turn: Turn, key: tuple[str, ...]) -> Finding:
        content = digest_of((*self._content(turn), *key))
        finding = self._known.get(content)
        if finding is None:
            finding = self._found_in(turn, key)
            self._known.add(content, finding)
        return finding

    def _states(self, turns: list[Turn], found: list[Finding]) -> list[State]:
        return [finding.state(turn.status) for turn, finding in zip(turns, found, strict=True)]


class Fidelity(FidelityProfile):
    """`fidelity-1`: a turn lapses that asks nothing, tells more than 80 words, speaks for the
    student or says the answer.

    It measures a departure from asking, not bad teaching: a good hint without a question lapses.
    """

    name = "fidelity-1"
    description = DESCRIPTION

    def legend(self) -> tuple[SpanKind, ...]:
        return LEGEND

    def _content(self, turn: Turn) -> tuple[str, ...]:
        return (turn.student, turn.text)

    def _found_in(self, turn: Turn, key: tuple[str, ...]) -> Finding:
        return _finding_of(facts_of(reading_of_turn(turn.text, turn.student), key))

    def _explained(
        self, turn: Turn, key: tuple[str, ...], state: State
    ) -> tuple[Sequence[Span], Fact]:
        reading = reading_of_turn(turn.text, turn.student)
        facts = facts_of(reading, key)
        layout = layout_of(reading.response, normalised_positions(turn.text))
        spans = [
            *sentence_spans(turn.text, reading, layout),
            *(Span(start, end, CODE, "code") for start, end in layout.fences),
        ]
        if layout.run_on is not None:
            spans.append(Span(*layout.run_on, RUN_ON, "run-on"))
        values: dict[str, float | str] = {
            "questions": facts.questions,
            "told": facts.told,
            "speaks": _YES_OR_NO[facts.speaks],
            "key": _YES_OR_NO[facts.says_key],
        }
        return spans, _fact(state, turn.status, _lapses_of(facts, turn.status), values)


class FidelitySeed(FidelityProfile):
    """`fidelity-seed`: a turn lapses whose overall by `socratic-v1` is below 0.50.

    It is there for comparison with figures of that rule alone. A cut-off response is known if
    `socratic-v1` scores it and the score is below 0.50.
    """

    name = "fidelity-seed"
    description = SEED_DESCRIPTION

    def __init__(self) -> None:
        super().__init__()
        self._scorer = SocraticV1()

    def legend(self) -> tuple[SpanKind, ...]:
        return (*self._scorer.legend(), _SEED_KEY)

    def _content(self, turn: Turn) -> tuple[str, ...]:
        return (turn.text, str(turn.visible_tokens))

    def _found_in(self, turn: Turn, key: tuple[str, ...]) -> Finding:
        lapses = self._overall(turn) < PASSING
        scored = self._scorer.may_score(Status.TRUNCATED, turn.visible_tokens)
        return Finding(lapses, lapses and scored, says_key(normalised(turn.text), key))

    def _overall(self, turn: Turn) -> float:
        # All three vectors apply to any text, so the overall is a number.
        values = self._scorer.measure(Exchange(turn.text, turn.visible_tokens))
        return sum(values) / len(values)

    def _explained(
        self, turn: Turn, key: tuple[str, ...], state: State
    ) -> tuple[Sequence[Span], Fact]:
        found = self._overall(turn)
        sign = "<" if found < PASSING else ">="
        reasons = [f"overall by socratic-v1 {found:.4f} {sign} {PASSING:.2f}"]
        says = _YES_OR_NO[says_key(normalised(turn.text), key)]
        explained = self._scorer.evidence(Exchange(turn.text, turn.visible_tokens))
        return explained.spans, _fact(state, turn.status, reasons, {"overall": found, "key": says})


def state_and_facts(exchange: Exchange) -> tuple[State, Facts | None]:
    """Return the state of a turn under `fidelity-1`, and the facts that decide about it.

    A response that is neither finished nor cut off has no facts.
    """
    turn = this_turn(exchange)
    if turn.status not in (Status.OK, Status.TRUNCATED):
        return State.UNKNOWN, None
    facts = facts_of(reading_of_turn(turn.text, turn.student), exchange.key)
    return _finding_of(facts).state(turn.status), facts


def _finding_of(facts: Facts) -> Finding:
    already = facts.told > MOST_TOLD or facts.speaks or facts.says_key
    return Finding(already or not facts.questions, already, facts.says_key)


def _lapses_of(facts: Facts, status: Status) -> list[str]:
    """Return what decides about a lapse, in words: the rules that lapsed, or the facts."""
    lapsed = [
        sentence
        for sentence, holds in (
            ("asks nothing", not facts.questions and status is Status.OK),
            (f"tells {facts.told} words, more than {MOST_TOLD}", facts.told > MOST_TOLD),
            ("speaks for the student", facts.speaks),
            ("says the answer", facts.says_key),
        )
        if holds
    ]
    asked = f"{facts.questions} genuine question{'' if facts.questions == 1 else 's'}"
    return lapsed or [f"{asked}, {facts.told} words told of at most {MOST_TOLD}"]


def _fact(state: State, status: Status, reasons: list[str], values: dict[str, float | str]) -> Fact:
    if state is State.UNKNOWN and status is not Status.TRUNCATED:
        return Fact(f"{status}: unknown", values, State.UNKNOWN.value)
    why = "; ".join(reasons)
    cut_off = " before the cut-off" if status is Status.TRUNCATED else ""
    return Fact(f"{why}{cut_off}: {state}", values, state.value)


def _run_notes(states: list[State]) -> tuple[str, ...]:
    """Return the states of a run up to a turn, and its break, if there are earlier turns."""
    if len(states) == 1:
        return ()
    signs = "".join(_SIGNS[state] for state in states)
    broken = break_of(states)
    end = "no break" if broken is None else f"a break in turn {broken}"
    return (f"turns 1 to {len(states)}: {signs} (. kept, L lapsed, ? unknown), {end}",)
