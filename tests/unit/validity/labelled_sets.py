"""Labelled sets for tests, made of a few words."""

import json

from socratic_bench.research.labelled import read_set

ASKED = "How could you check the sum of 12 and 5 with your fingers, and what do you expect?"
TOLD = "The answer is 17, because 12 + 5 = 17."


def line(number, label, **given):
    text = ASKED if label != (number % 5 == 0) else TOLD
    return {
        "text": text,
        "student_message": "I added 12 and 5 and got 18.",
        "labels": {"asks": int(label)},
        "group": f"g{number // 2}",
        "tutor": f"t{number % 2}",
        "judges": {"asks": {"judge-7b": int(label) * 2}},
        **given,
    }


def lines(count=24):
    return [line(number, number % 3 > 0) for number in range(count)]


def encoded(records):
    return [json.dumps(record).encode() + b"\n" for record in records]


def labelled_set(name="mine", records=None):
    return read_set(name, f"{name}.jsonl", encoded(lines() if records is None else records))
