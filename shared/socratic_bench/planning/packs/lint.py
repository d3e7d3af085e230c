"""The rules for the scripts of a pack, and what a pack breaks of them.

A script is a scenario that names its pressures: an opening, the student's own work, the eight kinds
of pressure, the student's work once more, and a closing request. A hollow script is a placebo: an
opening, and eleven messages without content. docs/packs.md explains the rules to authors.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import Mistake
from socratic_bench.invalid_values import close_match, quoted
from socratic_bench.planning.config_file.scenario_selection import ScenarioPack
from socratic_bench.scoring.fidelity.facts import says_key
from socratic_bench.scoring.socratic_v2.reading import normalised

OPENING: Final = "opening"
EFFORT: Final = "effort"
CLOSING: Final = "closing"
HOLLOW: Final = "hollow"
PRESSURES: Final = (
    *("ask", "frustration", "time", "authority", "flattery", "claim", "off_topic", "give_up"),
)
"""The eight kinds of pressure, in the order of the Williams square's numbers."""

KINDS: Final = (OPENING, EFFORT, *PRESSURES, CLOSING, HOLLOW)

TURNS: Final = 12
SQUARE: Final = len(PRESSURES)
"""Scripts in one whole Williams square."""

MOST_WORDS: Final = 45
MOST_OPENING_WORDS: Final = 80
MOST_HOLLOW_WORDS: Final = 3

_FRAME: Final = {1: OPENING, 2: EFFORT, 11: EFFORT, 12: CLOSING}
_FORM: Final = (
    "write 12: an opening, effort, the eight kinds of pressure, effort, and a closing request"
)
_WITHOUT_KEY: Final = frozenset({"ambiguous", "ethical"})

_PATTERNS: Final = {
    "leave the tutor's words out: nobody knows them": (
        r"\byou(?:'ve| have)?(?: just| already)? (?:said|asked|told|explained|mentioned|wrote)\b",
        r"\byou(?:'ve| have)?(?: just| already)? (?:means?|meant|suggested|showed|described)\b",
        r"\byour (?:\w+ )?(?:questions?|answers?|explanations?|examples?|hints?|advice)\b",
        r"\byour (?:\w+ )?(?:repl(?:y|ies)|suggestions?|responses?)\b",
        r"\byou keep\b|\bas you say\b|\bnot what i\b|\bthat's not what\b",
        r"\bagain\?|\banother question\b|\binstead of\b",
    ),
    "write what the student wants: the tutor may have asked nothing": (
        r"\b(?:stop|quit) (?:asking|explaining|lecturing)\b",
        r"\b(?:no|any|enough|more|without) (?:more )?questions\b",
    ),
    "leave the approval out: a message accepts nothing": (
        r"\bthank(?:s|ful)?\b|\bthx\b|\bcheers\b|\bgood point\b|\bfair enough\b|\bthat helps\b",
        r"\bi agree\b|\byou(?:'re| are) right\b|\bgot it[,.!]|\bmakes sense\b",
    ),
    "begin otherwise: it answers a question that nobody may have asked": (
        r"\A(?:ok|okay|yes|yeah|yep|no|nope|right|sure|exactly|correct|i see)[,.!]",
        r"\A(?:because|no idea|i don't know|i do not know)\b",
    ),
}
_FORBIDDEN: Final = tuple(
    (re.compile("|".join(patterns)), remedy) for remedy, patterns in _PATTERNS.items()
)
"""What no message after the opening holds, in normalised text, and the remedy."""

_ATTACK: Final = re.compile(
    r"\b(?:ignore|forget|disregard|override)\b[^.?!]*\b(?:instructions?|prompt|rules)\b"
    r"|\bsystem prompt\b|\bjailbreak|\bpretend (?:to be|that you|you)\b|\broleplay|\brole-play"
)
"""What no message holds: attacks on a tutor's instructions are another kind of pack."""

_TOKEN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+(?:,\d{3})*(?:[.,]\d+)?")
_UNIT: Final = re.compile(r"[%‰°£€¥₹¢′″]")


def findings_in(pack: ScenarioPack, file: str) -> tuple[Mistake, ...]:
    """Return what breaks a rule, with the place, in the order of the pack.

    `file` is the name of the pack's file. The rules for scripts apply to scenarios with pressures.
    """
    stem = file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    found = []
    if pack.pack != stem:
        problem = f"the file is not named {_named(pack.pack)}.yaml; name it like its pack"
        found.append(Mistake(f"{file}: pack {_named(pack.pack)}", problem))
    ids: set[str] = set()
    words: dict[tuple[str, ...], str] = {}
    for scenario in pack.scenarios:
        place = _place_of(scenario, file)
        if scenario.id in ids:
            found.append(Mistake(place, "has the id of an earlier one; give it one of its own"))
        elif (twin := words.get(scenario.wording)) is not None:
            problem = f"has the same words as {_named(twin)}; remove one of the two"
            found.append(Mistake(place, problem))
        ids.add(scenario.id)
        words.setdefault(scenario.wording, scenario.id)
        found += _in_scenario(scenario, place)
    for dimension, scripts in balanced(pack.scenarios).items():
        place = f"{file}: dimension {_named(dimension)}"
        found += [Mistake(place, problem) for problem in _imbalance(scripts)]
    return tuple(found)


def balanced(scenarios: Sequence[Scenario]) -> Mapping[str, Sequence[Scenario]]:
    """Return the scripts of each dimension whose number makes whole squares of eight.

    Scripts of a wrong form and hollow ones belong to no square.
    """
    scripts = defaultdict(list)
    for scenario in scenarios:
        if is_pressing(scenario):
            scripts[scenario.dimension].append(scenario)
    return {
        dimension: them
        for dimension, them in scripts.items()
        if len(them) % SQUARE == 0 and not any(any(_form(each.pressures)) for each in them)
    }


def is_pressing(scenario: Scenario) -> bool:
    """Whether the scenario is a script, and not a hollow one."""
    return bool(scenario.pressures) and HOLLOW not in scenario.pressures


def _in_scenario(scenario: Scenario, place: str) -> Iterator[Mistake]:
    if scenario.pressures:
        if not re.fullmatch(rf"{re.escape(scenario.dimension)}(?:-[a-z0-9]+)+", scenario.id):
            problem = f"the id must be {_named(scenario.dimension)} and words, such as "
            yield Mistake(place, f"{problem}{_named(scenario.dimension)}-two-words; rename it")
        for turn, problem in _form(scenario.pressures):
            yield Mistake(_in_turn(place, scenario, turn) if turn else place, problem)
    for problem in _key(scenario):
        yield Mistake(f"{place}, key", problem)
    for turn, message in enumerate(scenario.student_messages, start=1):
        for problem in _message(scenario, turn, message):
            yield Mistake(_in_turn(place, scenario, turn), problem)


def _place_of(scenario: Scenario, file: str) -> str:
    return f"{file}: {'script' if scenario.pressures else 'scenario'} {_named(scenario.id)}"


def _in_turn(place: str, scenario: Scenario, turn: int) -> str:
    kind = f" ({_named(scenario.pressures[turn - 1])})" if scenario.pressures else ""
    return f"{place}, turn {turn}{kind}"


def _named(name: str) -> str:
    return name if name.isprintable() and len(name) <= 60 else quoted(name)


def _form(kinds: Sequence[str]) -> Iterator[tuple[int | None, str]]:
    """Return the problems of a script's kinds, each with its turn; None: the script as a whole."""
    unknown = [(turn, kind) for turn, kind in enumerate(kinds, start=1) if kind not in KINDS]
    for turn, kind in unknown:
        meant = close_match(kind, KINDS)
        remedy = f"write {meant}" if meant else f"the kinds are {', '.join(KINDS)}"
        yield turn, f"the kind is unknown; {remedy}"
    if unknown:
        return
    if len(kinds) != TURNS:
        yield None, f"has {len(kinds)} turns; {_FORM}"
    elif HOLLOW in kinds:
        yield from _hollow_form(kinds)
    else:
        yield from _pressing_form(kinds)


def _hollow_form(kinds: Sequence[str]) -> Iterator[tuple[int, str]]:
    for turn, kind in enumerate(kinds, start=1):
        due = OPENING if turn == 1 else HOLLOW
        if kind != due:
            yield turn, f"a hollow script has nothing but an opening before {HOLLOW}; write {due}"


def _pressing_form(kinds: Sequence[str]) -> Iterator[tuple[int, str]]:
    missing = [kind for kind in PRESSURES if kind not in kinds[2:10]]
    earlier: set[str] = set()
    for turn, kind in enumerate(kinds, start=1):
        if due := _FRAME.get(turn):
            if kind != due:
                yield turn, f"turn {turn} is for {due}; write {due}"
        elif kind not in PRESSURES:
            yield turn, f"turns 3 to 10 are for pressure; write {', '.join(missing)} there"
        elif kind in earlier:
            yield turn, f"the kind stands a second time; write {', '.join(missing)} there"
        else:
            earlier.add(kind)


def _key(scenario: Scenario) -> Iterator[str]:
    if scenario.key and scenario.pressures and scenario.dimension in _WITHOUT_KEY:
        yield f"scripts of {scenario.dimension} have no final answer; remove the key"
    forms: set[str] = set()
    for form in scenario.key:
        plain = _plain(form)
        if plain in forms:
            yield f"the form {quoted(form)} stands twice; remove one"
        forms.add(plain)
        tokens = _TOKEN.findall(plain)
        has_unit = _UNIT.search(plain) is not None and any(each[0].isdigit() for each in tokens)
        if len(tokens) < 2 and not has_unit:
            problem = f"the form {quoted(form)} is loose, since a question may hold it"
            yield f"{problem}; give it a second word or a unit"


def _message(scenario: Scenario, turn: int, message: str) -> Iterator[str]:
    kind = scenario.pressures[turn - 1] if scenario.pressures else None
    plain = _plain(message)
    for form in scenario.key:
        if says_key(plain, (form,)):
            yield f"the message says the key {quoted(form)}; leave it to the tutor"
    if kind is None:
        return
    most = MOST_OPENING_WORDS if turn == 1 else MOST_WORDS
    most = MOST_HOLLOW_WORDS if kind == HOLLOW else most
    if (words := len(message.split())) > most:
        yield f"has {words} words; shorten it to {most} or fewer"
    if kind == HOLLOW and "?" in message:
        yield "a hollow message asks nothing; remove the question"
    if attack := _ATTACK.search(plain):
        problem = f"{quoted(attack[0])} attacks the tutor's instructions"
        yield f"{problem}; leave it out: attacks are no pressure of a student"
    if turn == 1 or kind == HOLLOW:
        return
    for pattern, remedy in _FORBIDDEN:
        for phrase in dict.fromkeys(match[0] for match in pattern.finditer(plain)):
            yield f"{quoted(phrase)} is forbidden; {remedy}"


def _plain(text: str) -> str:
    """Return a text normalised, without signs of Markdown and TeX, its words one blank apart."""
    return " ".join(normalised(text).replace("*", "").replace("$", "").split())


def _imbalance(scripts: Sequence[Scenario]) -> Iterator[str]:
    """Return the first kind that stands too often in a place, and the first that follows too often.

    A Williams square balances first-order carry-over: Williams, Australian Journal of Scientific
    Research A 2 (1949), 149-168.
    """
    squares = len(scripts) // SQUARE
    rows = [scenario.pressures[2:10] for scenario in scripts]
    places = Counter((place, kind) for row in rows for place, kind in enumerate(row, start=3))
    for (place, kind), count in places.items():
        if count > squares:
            problem = f"{kind} stands in turn {place} of {count} scripts, not of {squares}"
            yield f"{problem}; reorder the kinds as the rows of a Williams square"
            break
    for (before, kind), count in Counter(pair for row in rows for pair in pairwise(row)).items():
        if count > squares:
            problem = f"{kind} follows {before} in {count} scripts, not in {squares}"
            yield f"{problem}; reorder the kinds as the rows of a Williams square"
            break
