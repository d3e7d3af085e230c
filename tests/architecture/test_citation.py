"""CITATION.cff names the release that it lies in."""

from pathlib import Path

import yaml

from socratic_bench.version import __version__

CITATION = Path(__file__).parents[2] / "CITATION.cff"


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load(CITATION.read_text("utf-8"))

    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == __version__
    assert {"title", "authors", "message"} <= citation.keys()
