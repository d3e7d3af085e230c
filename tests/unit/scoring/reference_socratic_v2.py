"""An independent implementation of `socratic-v2`: the definition, rule by rule, without haste.

The constants are those of the definition, character by character; nothing comes from the library.
"""

import re

# fmt: off
# ruff: noqa: E501, SIM905
_TRANSLATE = str.maketrans({
    "\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"',
    "\uff1f": "?", "\uff01": "!", "\u3002": ".", "\u00a0": " ", "\t": " ", "\r": "\n",
    "\u200b": None, "\u200c": None, "\u200d": None, "\ufe0f": None, "\ufeff": None,
})
_LABEL = re.compile(r"\A[ \n>*_#]*(?:assistant|teacher|tutor)[*_]* *:[ *_]*")
_RUNON = re.compile(r"\n[ >*_#]*(?:student|user|human|learner|assistant|teacher|tutor) ?[0-9]*[*_]* *:")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"\n *(?:>+|#+|[-*\u2022+](?= )|\(?[0-9]{1,2}[.)](?= )|\(?[a-z][.)](?= )) *")
_END = re.compile(r"\?[.!?]*[\"')\]*_~`\u00bb]*|(?<![.!])[.!]+[\"')\]*_~`\u00bb]*(?=[ \n]|\Z)|\n")
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_NUMBER = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
_EQUATION = re.compile(r"=[-$\u00a3\u20ac( ]*[0-9]|[0-9][)% ]*=")
_OPEN = frozenset("what how why which where when who whose".split())
_CUE = _OPEN | frozenset(
    "is are am was were do does did can could would will should shall has have had may might isn't aren't wasn't "
    "weren't don't doesn't didn't can't couldn't wouldn't won't shouldn't hasn't haven't hadn't what's how's who's "
    "where's".split())
_SERVICE = re.compile(
    r" (?:can|could|may) i (?:help|assist|do|clarify|explain|offer|provide|answer|get) "
    r"| (?:does|do|did) (?:this|that|it|these|those) (?:help|answer|sound|work|clarify) ")
_OFFER = re.compile(
    r" would you (?:like|prefer|want|need|care|be interested) | shall (?:i|we) | (?:want|like|need) me to "
    r"| do you (?:want|need|have) (?:any|more|some|help|another|further|other) "
    r"| should i (?:explain|give|show|tell|provide|continue|go) | anything else "
    r"| (?:any|other|more|further|additional) (?:questions|doubts) | let me know | feel free | makes? sense "
    r"| sounds? good | are you ready (?:to|for) | is (?:that|this|it) clear | got it ")
_TELL = tuple(f" {p} " for p in (
    "the answer is", "the answer was", "the answer would be", "the correct answer", "you need to", "you have to",
    "you should", "you must", "we need to", "we have to", "is actually", "are actually", "this means", "that means",
    "which means", "gives us", "gives you", "because", "therefore", "equals"))
_TELL_KEYS = frozenset(
    "answer need have should must actually means gives because therefore equals".split())  # every phrase has one
_STOP = frozenset(
    "about all also and any are because been but can could did does doing don't for from get going got had has have "
    "her here his how into its it's just know let let's like make many may might more much must need not now okay one "
    "only our out over same say see she should some such than that that's the their them then there these they think "
    "this those too use very want was well were what when where which who why will with would yes you your you're"
    .split())
_FLAG = re.compile(r"\b(?:not quite|mistake|incorrect|wrong|error|however|but|careful|confusion|misunderstanding|reconsider|another look|double[- ]check|almost|close|not correct|isn't|wasn't|actually)\b")
# fmt: on


VECTORS = (
    *("asking", "open", "closing", "uptake", "substance", "withholding"),
    *("ground", "flag", "numbers", "form", "guide", "notice", "locate"),
)


def normalise(text):
    return text.translate(_TRANSLATE).lower()


def words(text):
    return _WORD.findall(text)


def pad(found):
    return " " + " ".join(found) + " "


def keys(found):
    return {w[:6] for w in found if w not in _STOP and (len(w) >= 3 or re.fullmatch("[0-9]+", w))}


def numbers(text):
    return {number.replace(",", "") for number in _NUMBER.findall(text)}


def sentences(text):
    found, start = [], 0
    for end in _END.finditer(text):
        found.append((words(text[start : end.start()]), "?" in end.group()))
        start = end.end()
    found.append((words(text[start:]), False))
    return [each for each in found if each[0]]


def is_service(padded):
    if _SERVICE.search(padded):
        return True
    offer = _OFFER.search(padded)
    return bool(offer) and not any(w in _OPEN for w in words(padded[: offer.start()]))


def tells(padded):
    return any(phrase in padded for phrase in _TELL)


def body(response):
    text = "\n" + _LABEL.sub("", response, count=1)
    cut = _RUNON.search(text)
    if cut:
        text = text[: cut.start()]
    fences = _FENCE.findall(text)
    return _BULLET.sub("\n", _FENCE.sub("\n", text)), fences, bool(cut)


def form(response, student, context):
    """The six vectors, the guards and overall."""
    text, fences, cut = body(response)
    found = sentences(text)
    n = len(found)
    said_words = words(student) + words(context)
    grounded = not said_words or bool(keys(said_words) & keys(words(response)))
    if n == 0:
        return (0, 0, 0, 0, 0, 0, 0.5, 1, 1, 0)
    genuine, told, heard = [], [], []
    counted = set()
    last = False
    for these, marked in found:
        padded = pad(these)
        echo = len(these) >= 3 and padded in pad(words(student))
        if not echo:
            heard += these
        asks = marked and len(these) >= 3 and any(w in _CUE for w in these)
        if asks and not echo and not is_service(padded) and padded not in counted:
            counted.add(padded)
            genuine.append(these)
            last = True
        else:
            told.append(these)
            last = False
    q = len(genuine)
    asking = min(1, 3 * q / n)
    opening = 1 if any(any(w in _OPEN for w in g) and keys(g) for g in genuine) else 0
    closing = 1 if last else 0
    uptake = min(1, len(keys(heard) & keys(words(student))) / max(3, len(keys(heard)) / 5))
    substance = min(1, sum(len(these) for these, _ in found) / 15)
    leaks = len(fences) + sum(tells(pad(these)) for these in told)
    leaks += len(numbers(text) - numbers(student) - numbers(context))
    leaks += len(_EQUATION.findall(text))
    leaks += sum(tells(pad(g)) and not any(w in _OPEN for w in g) for g in genuine)
    withholding = 1 - min(1, leaks / 2)
    load = sum(map(len, told)) + sum(map(len, genuine[3:]))
    load += sum(len(words(fence)) for fence in fences)
    inquiry = 1 if q >= 1 else 0.5
    restraint = 1 - max(0, min(1, (load - 60) / 180))
    solo = 0.5 if cut else 1
    mean = (asking + opening + closing + uptake + substance) / 5
    overall = mean * (0.25 + 0.75 * withholding) * inquiry * restraint * solo
    overall *= 1 if grounded else 0.5
    six = (asking, opening, closing, uptake, substance, withholding)
    return (*six, inquiry, restraint, solo, overall)


def reference_figures(text, student="", context=""):
    """All vectors by name, with `overall` and the guards inquiry, restraint and solo."""
    response, student, context = map(normalise, (text, student, context))
    made = form(response, student, context)
    said = context + "\n" + student
    mine = keys(words(response))
    ground = min(1, len(mine & keys(words(said))) / max(1, len(mine)) / 0.6)
    flag = min(1, len(_FLAG.findall(response)) / 2)
    shared = min(1, len(numbers(response) & numbers(said)) / 3)
    overall = made[-1]
    reading = (ground, flag, shared, overall, (overall + ground) / 2, (flag + ground) / 2)
    figures = dict(zip(VECTORS, (*made[:6], *reading, (flag + ground + shared) / 3), strict=True))
    guards = dict(zip(("inquiry", "restraint", "solo"), made[6:9], strict=True))
    return {**figures, **guards, "overall": overall}
