"""The agreement of two profiles as tables for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from socratic_bench.reporting.formats import MISSING, figure, signed
from socratic_bench.reporting.pages.agreement_page import (
    READING,
    cost_sentences,
    limits_text,
    ranks_text,
)
from socratic_bench.reporting.profiles.agreement import ProfileAgreement
from socratic_cli.display.terminal import counted, name_of
from socratic_cli.tables.fitting import Column, fitted_table


def agreement_table(agreement: ProfileAgreement, *, width: int) -> RenderableType:
    """Make the tables: each figure that both profiles have, and the ranks of the models."""
    first, second = name_of(agreement.first), name_of(agreement.second)
    figures = fitted_table(
        [
            Column("figure", "left", is_name=True),
            Column("responses", drop=0),
            Column(first),
            Column(second),
            Column("Spearman"),
            Column("concordance", drop=2),
            Column("kappa at 0.50", drop=3),
            Column("difference"),
            Column("95 % limits", drop=1),
        ],
        [
            [
                Text(name_of(each.name)),
                Text(f"{each.pairs:,}"),
                Text(figure(each.first_mean)),
                Text(figure(each.second_mean)),
                Text(figure(each.spearman)),
                Text(figure(each.concordance)),
                Text(figure(each.kappa)),
                Text(MISSING if each.difference is None else signed(each.difference.mean)),
                Text(limits_text(each.difference)),
            ]
            for each in agreement.figures
        ],
        width=width,
    )
    ranks = fitted_table(
        [
            Column("model", "left", is_name=True),
            Column(f"rank, {first}"),
            Column(f"rank, {second}"),
            Column("changes"),
        ],
        [
            [
                Text(name_of(each.model_name)),
                Text(ranks_text(each.first_rank, each.first_ranks)),
                Text(ranks_text(each.second_rank, each.second_ranks)),
                Text("yes" if each.changes else "no"),
            ]
            for each in agreement.models
        ],
        width=width,
    )
    alone = (
        f"{counted(agreement.only_first, 'response')} have a score by {first} alone, "
        f"{agreement.only_second} by {second} alone."
    )
    left_out = [alone] if agreement.only_first or agreement.only_second else []
    lines = [*figures.note("see --format json"), *left_out, *cost_sentences(agreement), *READING]
    return Group(
        figures.table, Text(), ranks.table, Text(), *(Text(line, style="dim") for line in lines)
    )
