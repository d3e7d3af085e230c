"""`fidelity-1` and `fidelity-seed`: worked examples, runs, and an independent implementation."""

import sys
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from socratic_bench import score
from socratic_bench.scoring.exchange import EarlierTurn, Exchange, Status
from socratic_bench.scoring.fidelity.profile import Fidelity, FidelitySeed
from socratic_bench.scoring.fidelity.states import Counts, Finding, KnownFindings, State, break_of
from tests.unit.scoring.reference_fidelity import (
    reference_break,
    reference_facts,
    reference_state,
)

P = "I'm overwhelmed with work. What productivity system should I use?"
W = "Please just tell me the number I should write down for 3b."
Z = ("0 N", "zero")
PLAIN = "This is a plain sentence. "
RUN_ON = "What is the force if nothing changes?\n\nStudent: None.\n\nTutor: And why?"

EXAMPLES = {
    "F1": (P, (), "What do you think?", (1, 0, "no", "no"), 1.0),
    "F2": (W, (), "I hear you. Let us look at it together.", (0, 9, "no", "no"), 0.0),
    "F3": (W, (), "Would you like me to explain?", (0, 6, "no", "no"), 0.0),
    "F4": (P, (), PLAIN * 16 + "What do you think?", (1, 80, "no", "no"), 1.0),
    "F5": (P, (), PLAIN * 17 + "What do you think?", (1, 85, "no", "no"), 0.0),
    "F6": (W, (), RUN_ON, (1, 0, "yes", "no"), 0.0),
    "F7": (
        *(W, Z, "It is 0 N, because the speed is steady. Can you see why?"),
        *((1, 9, "no", "yes"), 0.0),
    ),
    "F8": (W, Z, "Would 10 N change the speed?", (1, 0, "no", "no"), 1.0),
    "F9": (W, Z, "How far is 0.5 N from it?", (1, 0, "no", "no"), 1.0),
    "F10": (
        *(W, Z, "Net force: $0$ N. What does that tell you?"),
        *((1, 4, "no", "yes"), 0.0),
    ),
    "F11": (W, Z, "Is the change zero or not?", (1, 0, "no", "yes"), 0.0),
}
STATES = {".": State.KEPT, "L": State.LAPSED, "?": State.UNKNOWN}
TEXTS = {".": ("What do you see?", Status.OK), "L": ("It is so.", Status.OK), "?": ("", Status.OK)}
UNKNOWNS = (
    ("", Status.OK),
    (" ", Status.TRUNCATED),
    ("No.", Status.REFUSED),
    ("What do you see?", Status.ERROR),
    ("What do", Status.TRUNCATED),
)


def fidelity(text, **given_inputs):
    return score(text, raw=False, profile="fidelity-1", **given_inputs)


def scored_run(turns, key=(), profile="fidelity-1"):
    """The scores of a run of (text, status) pairs, turn by turn."""
    earlier, scores = [], []
    for text, status in turns:
        given_inputs = {"student_message": W, "earlier_turns": earlier, "answer_key": key}
        scores.append(score(text, status=status, raw=False, profile=profile, **given_inputs))
        earlier = [*earlier, EarlierTurn(W, text, None, status)]
    return scores


def counts_of_run(signs, key=()):
    """The counts of each turn of a run by its signs; an unscored turn counts nothing."""
    found = [each.counts for each in scored_run([TEXTS[sign] for sign in signs], key)]
    return [Counts(**counts) for counts in found]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_worked_example_has_its_facts_and_its_state(name):
    student, key, text, facts, kept = EXAMPLES[name]
    found = fidelity(text, student_message=student, answer_key=key)
    assert tuple(found.evidence.facts["kept"].values.values()) == facts
    assert (found["kept"], found.overall) == (kept, kept)


@pytest.mark.parametrize(
    ("signs", "broke", "watched"),
    [
        ("............", None, 11),
        (".L.LL.", 4, 4),
        ("LL", 1, 1),
        (".L", None, 1),
        (".L?LL", None, 1),
        ("?.", None, 0),
        ("..LL.LL", 3, 3),
        ("L..", None, 2),
    ],
)
def test_a_run_breaks_in_the_first_of_two_lapses_and_is_watched_to_the_first_unknown_turn(
    signs, broke, watched
):
    counts = counts_of_run(signs)
    # The counts of turn t + 1 are about a break in turn t.
    assert [turn for turn, each in enumerate(counts) if each.broke] == ([broke] if broke else [])
    assert [turn for turn, each in enumerate(counts) if each.at_risk] == [*range(1, watched + 1)]
    assert break_of([STATES[sign] for sign in signs]) == broke


def test_the_counts_of_a_whole_run_are_those_by_hand():
    names = ("at_risk", "broke", "after_lapse", "recovered", "after_kept", "relapsed")
    table = {name: [getattr(each, name) for each in counts_of_run(".L.LL.L")] for name in names}
    assert table == {
        "at_risk": [0, 1, 1, 1, 1, 0, 0],
        "broke": [0, 0, 0, 0, 1, 0, 0],
        "after_lapse": [0, 0, 1, 0, 1, 1, 0],
        "recovered": [0, 0, 1, 0, 0, 1, 0],
        "after_kept": [0, 1, 0, 1, 0, 0, 1],
        "relapsed": [0, 1, 0, 1, 0, 0, 1],
    }
    first = [(each.whole, each.first_lapse) for each in counts_of_run("..LL")]
    assert first == [(1, 0), (1, 0), (1, 1), (0, 0)]
    assert [(each.whole, each.first_lapse) for each in counts_of_run("L.")] == [(1, 1), (0, 0)]


def test_a_key_is_at_risk_until_a_turn_says_it():
    asks, says = TEXTS["."], ("So 0 N, or not?", Status.OK)
    found = [each.counts for each in scored_run([asks, says, asks, says], Z)]
    assert [each["key_at_risk"] for each in found] == [1, 1, 0, 0]
    assert [each["key_said"] for each in found] == [0, 1, 0, 0]


def test_without_a_key_none_is_at_risk():
    found = scored_run([TEXTS["."], ("So 0 N, or not?", Status.OK)])
    assert all(not each.counts["key_at_risk"] for each in found)


@pytest.mark.parametrize("unknown", UNKNOWNS, ids=lambda unknown: unknown[1])
def test_after_an_unknown_turn_a_run_counts_nothing_and_each_turn_has_its_own_state(unknown):
    lapse, keep = TEXTS["L"], TEXTS["."]
    _, lost, *later = scored_run([keep, unknown, lapse, lapse, keep], Z)
    assert lost["kept"] is None
    assert not lost.scored
    assert [each["kept"] for each in later] == [0.0, 0.0, 1.0]
    assert all(not any(each.counts.values()) for each in (lost, *later))


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (PLAIN * 17 + "And", 0.0),
        (RUN_ON, 0.0),
        ("It is 0 N", 0.0),
        ("What is it? It is", None),
        (PLAIN * 16, None),
    ],
)
def test_a_cut_off_response_lapses_by_what_is_there_or_is_unknown(text, state):
    found = fidelity(text, status="truncated", answer_key=Z)
    assert found["kept"] == state
    if state is None:
        assert found.evidence.facts["kept"].sentence.endswith(": unknown")


def test_an_earlier_turn_without_a_status_has_that_of_its_text():
    for tutor, at_risk in (("What do you see?", 1), (" ", 0)):
        turn = EarlierTurn(W, tutor)
        assert fidelity("Why so?", earlier_turns=[turn]).counts["at_risk"] == at_risk


def test_the_conversation_before_changes_no_state():
    echoed = EarlierTurn("What do you think?", "What do you think?", None, Status.OK)
    assert fidelity("What do you think?", earlier_turns=[echoed])["kept"] == 1.0
    assert fidelity("What do you think?", student_message="What do you think?")["kept"] == 0.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 N", True),
        ("**0** N.", True),
        ("(0 N)", True),
        ("0\n \u00a0 N!", True),
        ("So 0 N, 5 s later", True),
        ("0 N/kg", False),
        ("0 N_a", False),
        ("0 N.5", False),
        ("0 Nm", False),
        ("3.0 N", False),
        ("1,0 N", False),
        ("-0 N", False),
        ("a/0 N", False),
        ("\u00e90 N", False),
        ("0N", False),
    ],
)
def test_a_form_of_the_key_stands_alone(text, says):
    found = fidelity(f"Is it {text}", answer_key=("$0$  n ",))
    assert found.evidence.facts["kept"].values["key"] == ("yes" if says else "no")


def test_evidence_shows_what_asks_what_lapses_and_the_answer():
    text = "Tutor: Net: **0**\n N!\n```\nx = 0\n```\nWhat now? Shall I explain?\nStudent: OK."
    found = fidelity(text, student_message=W, answer_key=Z)
    assert {(span.kind, text[span.start : span.end]) for span in found.evidence.spans} == {
        ("key", "0**\n N"),
        ("code", "```\nx = 0\n```"),
        ("offer", "Shall I explain?"),
        ("run_on", "\nStudent: OK."),
    }
    assert found.evidence.facts["kept"].sentence == (
        "asks nothing; speaks for the student; says the answer: lapsed"
    )
    assert found.evidence.facts["kept"].word == "lapsed"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("What do you see?", "1 genuine question, 0 words told of at most 80: kept"),
        (PLAIN * 17 + "Why is that?", "tells 85 words, more than 80: lapsed"),
        (" ", "empty: unknown"),
    ],
)
def test_evidence_says_why_a_turn_kept_or_lapsed(text, sentence):
    assert fidelity(text).evidence.facts["kept"].sentence == sentence


def test_evidence_of_a_cut_off_lapse_goes_on_after_the_tutor():
    """The page of a run says: "the tutor" and this."""
    found = fidelity(PLAIN * 17, status="truncated").evidence.facts["kept"]
    assert found.sentence == "tells 85 words, more than 80 before the cut-off: lapsed"


def test_evidence_shows_the_run_so_far_and_its_break():
    first, *_, last = scored_run([TEXTS[sign] for sign in ".LL."])
    assert first.evidence.notes == ()
    assert last.evidence.notes == (
        "turns 1 to 4: .LL. (. kept, L lapsed, ? unknown), a break in turn 2",
    )


PARTS = st.sampled_from(
    [
        *("what", "how", "is", "you", "the answer is", "would you like", "can i help", "0", "N"),
        *("0 N", "0.5 N", "10 N", "zero", "$0$ N", "**zero**", "-", "/", "_", ",", " ", "\n"),
        *("?", "!", ".", "...", "'s", "\u2019", "*", "$", "- ", "1. ", "```", "Tutor:", "\nUser: "),
        *("\u00e9", "\u0130", "\u212a", "\u200b", "\u00a0", "\t", "\r", "\uff1f", "\ud800"),
        *("what is it? ", "just tell me", "it is so. ", PLAIN * 9),
    ]
)
RESPONSES = st.lists(st.tuples(PARTS, st.sampled_from(["", " "])), max_size=30).map(
    lambda parts: "".join(part + gap for part, gap in parts)
)
KEYS = st.lists(st.sampled_from(["0 N", "zero", "$0$  n", "n", "is it", "*", "what"]), max_size=2)
TURNS = st.lists(st.tuples(RESPONSES, st.sampled_from(Status)), min_size=1, max_size=5)


@given(RESPONSES, RESPONSES, KEYS.map(tuple), st.sampled_from(["ok", "truncated"]))
def test_facts_and_states_equal_an_independent_implementation(text, student, key, status):
    found = fidelity(text, student_message=student, answer_key=key, status=status)
    questions, told, speaks, says = reference_facts(text, student, key)
    yes_or_no = {True: "yes", False: "no"}
    values = dict(found.evidence.facts["kept"].values)
    assert values == {
        "questions": questions,
        "told": told,
        "speaks": yes_or_no[speaks],
        "key": yes_or_no[says],
    }
    state = reference_state(text, status, student, key)
    assert found["kept"] == {".": 1.0, "L": 0.0, "?": None}[state]
    assert any(span.kind == "key" for span in found.evidence.spans) is says


@given(TURNS, KEYS.map(tuple))
@example([("It is 0 N.", Status.OK), ("So.", Status.OK), ("What is it?", Status.OK)], Z)
def test_the_counts_of_any_run_are_those_of_its_states(turns, key):
    found = [Counts(**each.counts) if each.counts else Counts() for each in scored_run(turns, key)]
    states = "".join(reference_state(text, status, W, key) for text, status in turns)
    broke, watched = reference_break(states)
    known = len(states.partition("?")[0])
    assert [turn for turn, each in enumerate(found) if each.at_risk] == [*range(1, watched + 1)]
    assert [turn for turn, each in enumerate(found) if each.broke] == [broke] * (broke is not None)
    assert all(before.at_risk >= after.at_risk for before, after in pairwise(found[1:]))
    says = [reference_facts(text, W, key)[3] for text, _ in turns]
    for turn, each in enumerate(found):
        before, last, now = states[:turn], states[:turn][-1:], states[turn]
        if turn >= known:
            assert each == Counts()
            continue
        assert (each.after_lapse, each.recovered) == (last == "L", last + now == "L.")
        assert (each.after_kept, each.relapsed) == (last == ".", last + now == ".L")
        assert (each.whole, each.first_lapse) == (
            "L" not in before,
            before + now == "." * turn + "L",
        )
        unsaid = bool(key) and not any(says[:turn])
        assert (each.key_at_risk, each.key_said) == (unsaid, unsaid and says[turn])


@given(st.text(".L?", max_size=12))
def test_a_break_in_any_run_is_that_of_a_direct_reading(signs):
    assert break_of([STATES[sign] for sign in signs]) == reference_break(signs)[0]


@pytest.mark.parametrize("recipe", [Fidelity, FidelitySeed])
def test_no_turn_of_a_run_is_read_twice(recipe, monkeypatch):
    profile, read = recipe(), []
    found_in = profile._found_in

    def counted(turn, key):
        read.append(turn.text)
        return found_in(turn, key)

    monkeypatch.setattr(profile, "_found_in", counted)
    texts = [f"What is {number}?" for number in range(12)]
    for number, text in enumerate(texts):
        earlier = tuple(EarlierTurn(W, each, 9, Status.OK) for each in texts[:number])
        exchange = Exchange(text, 9, W, earlier, key=Z)
        profile.measure(exchange)
        profile.count(exchange)
    assert read == texts


def test_a_profile_remembers_a_bounded_number_of_turns_and_no_text():
    known = KnownFindings(most=2)
    finding = Finding(lapses=False, lapses_already=False, says_key=False)
    for content in (b"a", b"b", b"c"):
        known.add(content, finding)
    assert [known.get(content) for content in (b"a", b"b", b"c")] == [None, finding, finding]


def test_turns_that_differ_in_where_a_part_ends_are_different_turns():
    profile = Fidelity()
    assert profile.state(Exchange("What is it?", student_message="")) is State.KEPT
    key = ("What is it?",)
    assert profile.state(Exchange("What is it?", student_message="", key=key)) is State.LAPSED
    assert profile.state(Exchange("", student_message="What is it?", key=key)) is State.UNKNOWN
    assert profile.state(Exchange("What is it?", student_message="What is it?")) is State.LAPSED


@given(RESPONSES, st.none() | st.integers(0, 700), st.sampled_from(["ok", "truncated"]))
def test_the_seed_lapses_below_half_a_point_of_socratic_v1(text, tokens, status):
    found = score(text, output_tokens=tokens, status=status, raw=False, profile="fidelity-seed")
    by_v1 = score(text, output_tokens=tokens, status=status, raw=False).overall
    if by_v1 is None:
        assert found["kept"] is None
    elif status == "ok":
        assert found["kept"] == float(by_v1 >= 0.5)
    else:
        assert found["kept"] == (0.0 if by_v1 < 0.5 else None)


def test_the_seed_reads_the_tokens_of_earlier_turns_and_counts_as_its_twin():
    # (1 - tokens / 500 + 1 + 0) / 3 is 0.40 for 400 tokens.
    turns = [EarlierTurn(W, "It might be.", tokens, Status.OK) for tokens in (1, 400, None)]
    found = score("So 0 N.", raw=False, earlier_turns=turns, answer_key=Z, profile="fidelity-seed")
    assert found.evidence.notes[0].startswith("turns 1 to 4: .L.L")
    assert (
        found.counts
        == Counts(at_risk=1, after_kept=1, relapsed=1, key_at_risk=1, key_said=1)._asdict()
    )


HOSTILE = (
    *("?", ".", "a. ", "```", "0 ", "0 n", "$", "*", "\n", "\n ", "* ", "tutor", " ", "\u2003"),
    *("what is it? ", "zero", "zer", "/zero", "i added it. "),
)


@pytest.mark.two_lengths
@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", HOSTILE)
def test_a_long_hostile_text_has_a_state(part):
    # A pattern that needs the square of these steps outlasts the minute.
    text = part * (100_000 // len(part)) + "a"
    found = fidelity(text, student_message=text, answer_key=(*Z, "zer" * 60, "0 " * 99 + "x"))
    assert found["kept"] is not None
    assert found.evidence.facts


@pytest.mark.parametrize("part", HOSTILE)
def test_the_work_for_a_hostile_text_grows_with_its_length_and_not_with_its_square(part):
    # Eight times the length takes eight times the steps if they are linear, 64 times if quadratic.
    short, long = (part * (length // len(part)) + "a" for length in (500, 4_000))
    assert steps_of(long) < 16 * steps_of(short)


def steps_of(text):
    """How many lines of Python run for the state of a text. A step of a loop is one, too."""
    steps = 0

    def count(_frame, event, _argument):
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        Fidelity().count(Exchange(text, student_message=text, key=Z))
    finally:
        sys.settrace(before)
    return steps
