"""An independent implementation of `fidelity-1`: the definition, rule by rule, without haste.

Nothing comes from the library.
"""

import re

from tests.unit.scoring.reference_socratic_v2 import (
    _CUE,
    body,
    is_service,
    normalise,
    pad,
    sentences,
    words,
)

KEPT, LAPSED, UNKNOWN = ".", "L", "?"


def reference_facts(text, student="", key=()):
    """Genuine questions, words told, whether the tutor speaks for the student, says the key."""
    response, student = normalise(text), normalise(student)
    rest, fences, cut = body(response)
    counted, told = set(), 0
    for these, marked in sentences(rest):
        padded = pad(these)
        echo = len(these) >= 3 and padded in pad(words(student))
        asks = marked and len(these) >= 3 and any(word in _CUE for word in these)
        if asks and not echo and not is_service(padded) and padded not in counted:
            counted.add(padded)
        else:
            told += len(these)
    told += sum(len(words(fence)) for fence in fences)
    return len(counted), told, cut, any(stands_alone(squeezed(f), squeezed(text)) for f in key)


def squeezed(text):
    return re.sub(r"\s+", " ", normalise(text).replace("*", "").replace("$", "")).strip()


def stands_alone(form, text):
    for start in range(len(text)):
        if form and text.startswith(form, start):
            before, after = text[:start][-1:], text[start + len(form) :]
            if before and (before.isalnum() or before in "_./,-"):
                continue
            if after and (after[0].isalnum() or after[0] in "_/"):
                continue
            if after[:1] in (".", ",") and after[1:2].isdecimal():
                continue
            return True
    return False


def reference_state(text, status, student="", key=()):
    questions, told, speaks, says = reference_facts(text, student, key)
    if not text.strip() or status not in ("ok", "truncated"):
        return UNKNOWN
    if told > 80 or speaks or says:
        return LAPSED
    if status == "truncated":
        return UNKNOWN
    return KEPT if questions else LAPSED


def reference_break(states):
    """The turn in which a run broke, or None, and the last turn that was watched."""
    watched = 0
    for turn in range(1, len(states)):
        pair = states[turn - 1 : turn + 1]
        if UNKNOWN in pair:
            return None, watched
        watched = turn
        if pair == LAPSED + LAPSED:
            return turn, watched
    return None, watched
