"""The options that change a configuration on the spot, and `--fresh`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

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
    """Add `--occasion`, `--set`, `--model` and `--limit` to a command that takes `changes`."""

    @functools.wraps(command)
    def with_changes(
        *args: object,
        occasion: str | None,
        settings: tuple[tuple[str, str], ...],
        only_models: tuple[str, ...],
        most_scenarios: int | None,
        **options: object,
    ) -> object:
        fields = dict(settings)
        if occasion is not None:
            fields["occasion"] = occasion
        changes = Changes(fields, only_models, most_scenarios)
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
        "--limit",
        "most_scenarios",
        type=click.IntRange(min=1),
        metavar="N",
        help="The first N scenarios of CONFIG.",
    ),
)


def fresh_option(command: F) -> F:
    """Add `--fresh` to a command."""
    return click.option("--fresh", is_flag=True, help="Reuse no answers of other experiments.")(
        command
    )
