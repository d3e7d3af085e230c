"""The page `/costs.html`: what a run of each model costs."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from socratic_api.pages import Page

PAGE: Final = Page(
    title="Costs",
    path="/costs.html",
    folder=files("socratic_example_page") / "static",
    description="What a run of each language model costs.",
    narrow=True,
)
