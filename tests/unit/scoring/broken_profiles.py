"""Profiles that are broken in one way each, as code that a distribution installs."""

from __future__ import annotations

from socratic_bench.scoring.profiles import GROUP

SOURCE = """
from socratic_bench.scoring.evidence import Evidence, Span
from socratic_bench.scoring.socratic_v1.profile import SocraticV1

class Broken(SocraticV1):
    name = "broken-v1"
"""

MEASURES = {
    "raises": ("raise ZeroDivisionError('no words')", "cannot measure a response: ZeroDivision"),
    "nan": ("return (float('nan'), 0.0, 0.0)", "measured nan for verbosity"),
    "infinite": ("return (0.0, float('inf'), 0.0)", "measured inf for exploratory"),
    "above-one": ("return (0.0, 0.0, 1.5)", "measured 1.5 for interrogative"),
    "negative": ("return (-0.1, 0.0, 0.0)", "measured -0.1 for verbosity"),
    "a-text": ("return ('0.5', 0.0, 0.0)", "measured '0.5' for verbosity"),
    "too-few": ("return (0.5,)", "measured 1 vectors, but names 3"),
    "too-many": ("return (0.5, 0.5, 0.5, 0.5)", "measured 4 vectors, but names 3"),
    "nothing": ("return None", "measured NoneType, not a tuple of vectors"),
}
"""A body of `measure`, and the error that names the profile."""

EVIDENCE = {
    "raises": ("raise KeyError('why')", "cannot explain a score: KeyError"),
    "beyond-the-end": (
        "return Evidence((Span(0, len(exchange.text) + 1, 'question', '?'),), {})",
        "marks characters 0 to 5 of a text that has 4",
    ),
    "before-the-start": (
        "return Evidence((Span(-1, 2, 'question', '?'),), {})",
        "marks characters -1 to 2 of a text that has 4",
    ),
    "backwards": (
        "return Evidence((Span(3, 1, 'question', '?'),), {})",
        "marks characters 3 to 1 of a text that has 4",
    ),
    "nothing": ("return None", "explains a score by NoneType, not Evidence"),
}
"""A body of `evidence`, and the error about the text `Why?`."""


def source_of(method: str, body: str) -> str:
    """A profile that is sound but for one method; it works for texts that contain `good`."""
    return (
        f"{SOURCE}\n"
        f"    def {method}(self, exchange):\n"
        f"        if 'good' in exchange.text:\n"
        f"            return super().{method}(exchange)\n"
        f"        {body}\n"
    )


def install_broken(install, method: str, body: str) -> None:
    """Install the profile `broken-v1`."""
    source = source_of(method, body)
    files = {"broken_profile.py": source}
    install("broken-dist", GROUP, "broken-v1", "broken_profile:Broken", files)
