"""The options that change a configuration on the spot, and `--fresh`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from socratic_bench.domain.run import MOST_REPEATS
from socratic_bench.planning.config_file.changes import Changes

F = TypeVar("F", bound=Callable[..., Any])


class Setting(click.ParamType[tuple[str, str]]):
    """`FIELD=VALUE`."""

    name = "field=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return the field and its value."""
        field, equals, text = str(value).partition("=")
        if not equals or not field.strip():
            self.fail(f"{value!r} sets nothing: write --set repeats=1", param, ctx)
        return field.strip(), text


def changes_options(command: F) -> F:
    """Add the options that change a configuration to a command that takes `changes`."""

    @functools.wraps(command)
    def with_changes(
        *args: object,
        occasion: str | None,
        settings: tuple[tuple[str, str], ...],
        only_models: tuple[str, ...],
        only_scenarios: tuple[str, ...],
        most_scenarios: int | None,
        repeats: int | None,
        **options: object,
    ) -> object:
        fields = dict(settings)
        for field, value in (("occasion", occasion), ("repeats", repeats)):
            if value is not None:
                if field in fields:
                    raise click.UsageError(f"--set {field} and --{field}: take one of them")
                fields[field] = str(value)
        changes = Changes(fields, only_models, only_scenarios, most_scenarios)
        return command(*args, changes=changes, **options)

    for option in reversed(_OPTIONS):
        with_changes = option(with_changes)
    return cast("F", with_changes)


_OPTIONS = (
    click.option(
        "--occasion",
        metavar="ID",
        help="The execution of CONFIG: another ID, such as a commit, asks every question again.",
    ),
    click.option(
        "--set",
        "settings",
        type=Setting(),
        multiple=True,
        help="A field of CONFIG, such as repeats=1, name=main or parameters.temperature=0.",
    ),
    click.option(
        "--model",
        "only_models",
        metavar="ID",
        multiple=True,
        help="One model of CONFIG, by id or name; several times: several.",
    ),
    click.option(
        "--scenario",
        "only_scenarios",
        metavar="ID",
        multiple=True,
        help="One scenario of CONFIG, by id or title; several times: several.",
    ),
    click.option(
        "--limit",
        "most_scenarios",
        type=click.IntRange(min=1),
        metavar="N",
        help="The first N scenarios of CONFIG, or of those chosen.",
    ),
    click.option(
        "--repeats",
        type=click.IntRange(1, MOST_REPEATS),
        metavar="N",
        help="How often each model gets each scenario, whatever CONFIG says.",
    ),
)


def fresh_option(command: F) -> F:
    """Add `--fresh` to a command."""
    return click.option("--fresh", is_flag=True, help="Reuse no answers of other experiments.")(
        command
    )
