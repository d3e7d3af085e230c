"""The leaderboard for a page and for a paper: names are text, and every table tells its origin."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from socratic_bench.errors import InvalidInput
from socratic_bench.results.costs import SpendingFigures
from socratic_bench.results.leaderboard.figures import ModelFigures, VectorFigure
from socratic_bench.results.leaderboard.leaderboard import ExperimentSummary, ModelComparison
from socratic_bench.results.leaderboard.text_formats import comparison_latex, comparison_markdown
from socratic_bench.version import __version__

CELL = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)


def comparison_of(*names: str) -> ModelComparison:
    return ModelComparison(
        models=tuple(figures_of(name, rank) for rank, name in enumerate(names, 1)),
        winner=None,
        profile="socratic-v1",
        profiles=("socratic-v1",),
        vectors=("verbosity",),
        dimensions=(),
        experiments=(
            ExperimentSummary(
                experiment_id="exp-1",
                manifest_id="m" * 8,
                conditions_id="cond-1",
                profile="socratic-v1",
                occasion=None,
                name="Prompt B",
                notes=None,
                models=len(names),
                created_at=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
                completed_at=None,
                planned=45,
                done=44,
            ),
        ),
        baseline=None,
        left_out=(),
        mixed_conditions=False,
        spending=SpendingFigures.of(has_prices=False),
        note=None,
        notes=(),
    )


def figures_of(name: str, rank: int) -> ModelFigures:
    return ModelFigures(
        model_id=name,
        model_name=name,
        kind="model",
        rank=rank,
        rank_interval=(rank, rank),
        simulated_latency_ms=0,
        total_runs=44,
        planned_runs=45,
        overall_score=0.8449,
        confidence_interval=(0.8, 0.9),
        interval_note=None,
        coverage=1.0,
        scored_responses=44,
        statuses={},
        vectors={"verbosity": VectorFigure(mean=None, interval=None, n=0)},
        dimensions={},
        mean_visible_output_tokens=None,
        mean_reasoning_tokens=None,
        mean_input_tokens=None,
        mean_latency_ms=None,
        total_input_tokens=None,
        total_visible_output_tokens=None,
        total_reasoning_tokens=None,
        mean_cost_usd=None,
        total_cost_usd=None,
        cost_known=None,
        experiment_ids=("exp-1",),
        conditions_id="cond-1",
    )


def rendered(markdown: str) -> str:
    return MarkdownIt("commonmark").enable("table").render(markdown)


def test_markdown_is_a_table_of_the_figures() -> None:
    lines = comparison_markdown(comparison_of("alpha", "beta")).splitlines()

    assert lines[:4] == [
        "| rank | model | overall | 95 % interval | coverage | runs | verbosity |",
        "| ---: | :--- | ---: | :---: | ---: | ---: | ---: |",
        "| 1 | alpha | 0.84 | 0.80 to 0.90 | 100 % | 44/45 | \u2013 |",
        "| 2 | beta | 0.84 | 0.80 to 0.90 | 100 % | 44/45 | \u2013 |",
    ]


def test_latex_is_a_table_of_the_figures() -> None:
    lines = comparison_latex(comparison_of("alpha_1", "50% & co")).splitlines()

    assert r"\begin{tabular}{rlrcrrr}" in lines
    assert r"1 & alpha\_1 & 0.84 & 0.80 to 0.90 & 100 \% & 44/45 & -- \\" in lines
    assert r"2 & 50\% \& co & 0.84 & 0.80 to 0.90 & 100 \% & 44/45 & -- \\" in lines


def test_latex_has_a_short_caption_and_the_notes_below_the_table() -> None:
    text = comparison_latex(comparison_of("alpha"))

    table, notes = text.split(r"\end{tabular}")
    (caption,) = (line for line in table.splitlines() if line.startswith(r"\caption"))
    assert len(caption) < 300
    assert caption.endswith("a dash is an unknown figure.}")
    assert "a dash is" not in notes
    assert "\\begin{minipage}{\\linewidth}\n\\footnotesize\nSocratic Bench" in notes
    assert notes.endswith("\\end{minipage}\n\\end{table}\n")


def test_a_table_has_the_named_columns_alone_and_the_model() -> None:
    lines = comparison_latex(comparison_of("alpha"), ["Overall", "rank"]).splitlines()
    assert r"alpha & 0.84 & 1 \\" in lines
    assert "| rank | model |" in comparison_markdown(comparison_of("alpha"), ["rank", "model"])
    with pytest.raises(InvalidInput, match="no column 'score'; it has rank, model, "):
        comparison_latex(comparison_of("alpha"), ["score"])


@pytest.mark.parametrize("export", [comparison_markdown, comparison_latex])
def test_an_export_tells_where_its_figures_are_from(
    export: Callable[[ModelComparison], str],
) -> None:
    text = export(comparison_of("alpha"))

    for origin in (__version__, "socratic-v1", "Prompt B", "exp-1", "cond-1", "2026-03-01 12:30"):
        assert origin in text
    assert "44 of 45 runs" in text


@given(name=st.text(min_size=1))
def test_a_name_is_text_in_markdown(name: str) -> None:
    page = rendered(comparison_markdown(comparison_of(name, "beta")))

    cells = CELL.findall(page)
    assert len(cells) == 2 * 7
    shown = "".join(each if each.isprintable() else "\ufffd" for each in name)
    assert html.unescape(cells[1]).strip() == shown.strip()
    assert "<" not in cells[1]


@given(name=st.text(min_size=1))
def test_a_name_is_text_in_latex(name: str) -> None:
    lines = comparison_latex(comparison_of(name)).splitlines()

    (row,) = (line for line in lines if line.startswith("1 & "))
    bare = re.sub(r"\\[a-z]+\{\}|\\[&%$#_{}]|\$\\geq\$|\{[\[\]]\}", "", row.removesuffix(r"\\"))
    assert bare.count("&") == 6
    assert not set("\\%$#_{}~^<>|[]") & set(bare)
