"""The leaderboard as CSV, LaTeX and Markdown, with its scale and where its figures are from."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

from socratic_bench.results.formats import (
    MISSING,
    figure,
    moment,
    p_value,
    printable,
    signed,
    signed_interval,
)
from socratic_bench.results.leaderboard.baseline import CONSTANT_REPLY
from socratic_bench.results.leaderboard.columns import (
    depends_on_weights,
    leaderboard_columns,
    named_columns,
)
from socratic_bench.results.leaderboard.figures import ModelFigures
from socratic_bench.results.leaderboard.leaderboard import ExperimentSummary, ModelComparison
from socratic_bench.results.leaderboard.prompt_effects import PromptEffect
from socratic_bench.version import __version__

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of a text that a spreadsheet reads as a formula."""


def comparison_csv(comparison: ModelComparison) -> str:
    """Return one row a model, scores unrounded; an empty field is unknown, never zero."""
    fields = [
        field for column in leaderboard_columns(comparison) for field in column.fields.items()
    ]
    fields += _prompt_fields(comparison)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([spreadsheet_text(name) for name, _ in fields])
    for model in comparison.models:
        writer.writerow([spreadsheet_text(read(model)) for _, read in fields])
    return text.getvalue()


def _prompt_fields(comparison: ModelComparison) -> list[tuple[str, Callable[[ModelFigures], Any]]]:
    """Return the fields of a row that tell of its prompt, over all models; none without several."""
    if not comparison.prompts:
        return []
    nothing = comparison.prompts[0].model_copy(update={"prompt": None, "overall": None})
    by_name = {each.prompt: each for each in comparison.prompts}

    def effect(model: ModelFigures) -> PromptEffect:
        return by_name.get(model.model_id.rpartition("@")[2], nothing)

    return [
        ("prompt", lambda model: effect(model).prompt),
        ("prompt_overall", lambda model: effect(model).overall),
        ("prompt_difference", lambda model: effect(model).difference),
        ("prompt_difference_low", lambda model: (effect(model).interval or (None,))[0]),
        ("prompt_difference_high", lambda model: (effect(model).interval or (None,))[-1]),
        ("prompt_p_value", lambda model: effect(model).p_value),
    ]


PROMPT_ALIGNS: Final[tuple[Literal["left", "right", "center"], ...]] = (
    *("left", "right", "right", "center", "right"),
)


def prompt_headings(effects: Sequence[PromptEffect]) -> list[str]:
    """Return the headings of the table of prompts, of which there is one at least."""
    return ["prompt", "overall", f"less {effects[0].prompt}", "95 % interval", "chance"]


def prompt_cells(effect: PromptEffect) -> list[str]:
    """Return the row of a prompt."""
    return [
        effect.prompt,
        figure(effect.overall),
        signed(effect.difference),
        signed_interval(effect.interval),
        MISSING if effect.p_value is None else p_value(effect.p_value),
    ]


def prompt_basis(effects: Sequence[PromptEffect]) -> str:
    """Return what the effects of prompts are over, in a sentence."""
    models, scenarios = effects[0].models, effects[0].scenarios
    return (
        f"Over {models} model{'' if models == 1 else 's'} and "
        f"{scenarios} scenario{'' if scenarios == 1 else 's'} with a score under each prompt: "
        "paired by model and scenario, clustered by scenario, Holm-corrected."
    )


def spreadsheet_text(value: object) -> object:
    """Quote a name that a spreadsheet would execute as code."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


SCALE: Final = (
    "Scores run from 0.00 to 1.00; intervals are 95 %, clustered by scenario, with room for three "
    "more scenarios that score 0 or 1 in a vector"
)

MOST_UNANIMOUS: Final = 4
"""The most sentences about vectors with equal answers."""

TIES: Final = (
    "Models that share ranks, such as 1\u20133, may differ by chance alone (paired by scenario, "
    "Holm-corrected, 5 %)."
)

OTHER_WEIGHTS: Final = (
    "other weights: the share of all weightings of the vectors under which a model is ahead of the "
    "next one, and its ranks under 95 % of them."
)

BASELINE: Final = (
    "The constant reply is no tutor. It answers every message \u201c"
    f"{CONSTANT_REPLY}\u201d A mean below it does not show that a model read a message."
)


def is_tied(comparison: ModelComparison) -> bool:
    """Whether models of the table share ranks."""
    intervals = [model.rank_interval for model in comparison.models if model.rank_interval]
    return any(best < worst for best, worst in intervals)


_SCALE_SENTENCE: Final = f"{SCALE}; a dash is an unknown figure."


def reading_aid(comparison: ModelComparison) -> list[str]:
    """Return what a reader must know of the figures, one sentence each."""
    sentences = [_SCALE_SENTENCE]
    if is_tied(comparison):
        sentences.append(TIES)
    if depends_on_weights(comparison):
        sentences.append(OTHER_WEIGHTS)
    if any(model.kind == "reference" for model in comparison.models):
        sentences.append(
            "A reference tutor is a built-in archetype that shows the scale, not a real model."
        )
    if comparison.baseline is not None:
        sentences.append(BASELINE)
    return [*sentences, *comparison.cautions]


def unanimity(comparison: ModelComparison) -> list[str]:
    """Return what equal answers leave open, a sentence for each vector that says yes or no.

    Of real models alone: a reference tutor answers from fixed texts.
    """
    found = (
        f"{name} {figure(vector.mean)}: {vector.note}."
        for name in comparison.vectors
        for model in comparison.models
        if model.kind == "model" and (vector := model.vectors[name]).note
    )
    return list(dict.fromkeys(found))[:MOST_UNANIMOUS]


def provenance(comparison: ModelComparison) -> list[str]:
    """Return the version, the profile, and each experiment with its date and conditions."""
    return [
        f"Socratic Bench {__version__}, profile {comparison.profile}.",
        *map(origin, comparison.experiments),
    ]


def origin(experiment: ExperimentSummary) -> str:
    """Return an experiment's name, date, conditions and progress in a sentence."""
    title = experiment.name or experiment.occasion
    named = f"{title} ({experiment.experiment_id})" if title else experiment.experiment_id
    return (
        f"Experiment {named}, {moment(experiment.created_at)}, conditions "
        f"{experiment.conditions_id}, {experiment.done} of {experiment.planned} runs."
    )


_LATEX_MARKUP: Final = {
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "\u2013": "--",
    "\u2265": r"$\geq$",
}


def comparison_latex(comparison: ModelComparison, headings: Sequence[str] = ()) -> str:
    """Return a `table` with one row a model, best first; it needs the package booktabs.

    The notes stand below it. Its columns are those of the command's table, or the ones named.
    Raises InvalidInput.
    """
    columns = named_columns(comparison, headings)
    notes = (each for each in _notes(comparison) if each != _SCALE_SENTENCE)
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs} and \usepackage[T1]{fontenc}.",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{as_latex(_SCALE_SENTENCE)}}}",
            rf"\begin{{tabular}}{{{''.join(column.align[0] for column in columns)}}}",
            r"\toprule",
            _row(column.title for column in columns),
            r"\midrule",
            *(_row(column.text(model) for column in columns) for model in comparison.rows),
            r"\bottomrule",
            r"\end{tabular}",
            *_latex_prompts(comparison.prompts),
            "",
            r"\medskip",
            r"\begin{minipage}{\linewidth}",
            r"\footnotesize",
            *map(as_latex, notes),
            r"\end{minipage}",
            r"\end{table}",
            "",
        ]
    )


def _latex_prompts(effects: Sequence[PromptEffect]) -> list[str]:
    """Return a second `tabular`: a row a prompt; none without several prompts."""
    if not effects:
        return []
    return [
        "",
        r"\medskip",
        rf"\begin{{tabular}}{{{''.join(align[0] for align in PROMPT_ALIGNS)}}}",
        r"\toprule",
        _row(prompt_headings(effects)),
        r"\midrule",
        *(_row(prompt_cells(each)) for each in effects),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def as_latex(text: str) -> str:
    """Escape what LaTeX would read as a command: a model's name is no command."""
    return "".join(_LATEX_MARKUP.get(each, each) for each in printable(text))


def _row(cells: Iterable[str]) -> str:
    return f"{' & '.join(map(as_latex, cells))} \\\\"


RULES: Final = {"left": ":---", "right": "---:", "center": ":---:"}

_MARKDOWN_MARKUP: Final = {
    **{each: f"\\{each}" for each in "\\`*_[]{}~!#"},
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "|": "&#124;",
}


def comparison_markdown(comparison: ModelComparison, headings: Sequence[str] = ()) -> str:
    """Return a table with one row a model, best first.

    Its columns are those of the command's table, or the ones named. Raises InvalidInput.
    """
    columns = named_columns(comparison, headings)
    rows = [
        markdown_row(map(markdown_of, (column.title for column in columns))),
        markdown_row(RULES[column.align] for column in columns),
        *(
            markdown_row(markdown_of(column.text(model)) for column in columns)
            for model in comparison.rows
        ),
    ]
    if effects := comparison.prompts:
        rows += [
            "",
            markdown_row(map(markdown_of, prompt_headings(effects))),
            markdown_row(RULES[align] for align in PROMPT_ALIGNS),
            *(markdown_row(map(markdown_of, prompt_cells(each))) for each in effects),
        ]
    notes = map(markdown_of, _notes(comparison))
    return "\n".join([*rows, "", *(f"- {note}" for note in notes), ""])


def _notes(comparison: ModelComparison) -> list[str]:
    """Return the sentences below the tables."""
    prompts = [prompt_basis(comparison.prompts)] if comparison.prompts else []
    aid = reading_aid(comparison)
    return [*prompts, *aid, *unanimity(comparison), *provenance(comparison)]


def markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_of(text: str) -> str:
    """Escape what Markdown or HTML would read as markup: a model's name is no markup."""
    return "".join(_MARKDOWN_MARKUP.get(each, each) for each in printable(text))
