"""The published figures: what can be computed here is computed again."""

import os
from pathlib import Path

import pytest

from socratic_bench.research.building import validity_report
from socratic_bench.research.gaming import gaming_table
from socratic_bench.research.labelled import read_set
from socratic_bench.research.validity_report import published_figures

DOCUMENT = Path("docs/validity.md")


def label_files():
    """The labelled sets, which this project may not copy."""
    folder = Path(os.environ.get("SOCRATIC_TEST_DATA", "nowhere")) / "labels"
    found = sorted(folder.glob("*.jsonl"))
    if not found:
        pytest.skip("SOCRATIC_TEST_DATA names no folder with labelled responses in labels/*.jsonl")
    return found


def test_the_published_gaming_table_is_that_of_the_profiles():
    published = published_figures()
    for profile in published.profiles:
        found = {each.reply: each.overall[profile] for each in published.gaming}
        assert found == pytest.approx(gaming_table(profile))


def test_each_published_figure_lies_within_its_interval():
    for label in published_figures().labels:
        for column in label.columns:
            assert column.interval[0] <= column.auc <= column.interval[1]


def test_the_document_has_the_published_figures():
    text = DOCUMENT.read_text()
    for label in published_figures().labels:
        meant = label.column(label.dimension)
        assert f"{label.data}: {label.label}" in text
        assert f"{meant.auc:.3f}".removeprefix("0") in text, label.label


def test_figures_on_the_labels_stay_within_the_published_intervals():
    published = published_figures()
    sets = [
        read_set(path.stem, str(path), path.read_bytes().splitlines()) for path in label_files()
    ]
    now = validity_report(sets, published.profiles, resamples=20, seed=published.seed)
    current = {(each.data, each.label): each for each in now.labels}
    for label in published.labels:
        for column in label.columns:
            low, high = column.interval or (0.0, 1.0)
            figure = current[label.data, label.label].column(column.column).auc
            assert low <= figure <= high, (label.data, label.label, column.column)
            assert figure == pytest.approx(column.auc, abs=0.001)
