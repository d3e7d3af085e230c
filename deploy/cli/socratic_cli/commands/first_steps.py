"""`socratic-bench demo`, `init` and `schema`: a first benchmark and a first configuration."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from importlib import resources
from pathlib import Path

import click

from socratic_bench.domain.experiment.manifest import Manifest
from socratic_bench.errors import InvalidInput
from socratic_bench.planning.config_file.config import BenchmarkConfig, config_schema, read_config
from socratic_bench.planning.config_file.scenario_selection import DEFAULT_PACK, load_pack
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.scoring.fidelity.profile import Fidelity
from socratic_bench.scoring.profile import CANONICAL
from socratic_cli.commands.run import execute
from socratic_cli.display.terminal import counted, say
from socratic_cli.key_approval import access_check, own_endpoints
from socratic_cli.options.store import store_option


def _config(name: str, repeats: int) -> BenchmarkConfig:
    with resources.as_file(resources.files("socratic_cli.configs") / name) as path:
        config = read_config(path, RegisteredModels(access_check(own_endpoints())))
    manifest = Manifest.model_validate({**config.manifest.model_dump(), "repeats": repeats})
    return replace(config, manifest=manifest)


@click.command()
@store_option
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How often each tutor is given each scenario; answers in the store are used again.",
)
def demo(store_url: str, repeats: int) -> None:
    """Benchmark the built-in tutors and a local model.

    The local model is a real one. Without it the demo shows the built-in tutors alone.
    """
    try:
        config = _config("demo.yaml", repeats)
    except InvalidInput as missing:
        say(f"Going on without the local model: {missing}")
        config = _config("demo-without-local.yaml", repeats)
    manifest = config.manifest
    names = "; ".join(model.display_name for model in manifest.models)
    say(
        f"{manifest.planned_runs} runs: {len(manifest.models)} tutors ({names}), "
        f"{len(manifest.scenarios)} scenarios, {counted(repeats, 'repeat')}. "
        "The local model takes a minute or two; after Ctrl-C the same command continues."
    )
    outcome = execute(config, store_url=store_url)
    say("See it in a browser: make serve   (or: socratic-bench serve --store URL)")
    if repeats == 1:
        say(
            "Narrower intervals: socratic-bench demo --store URL --repeats 3   "
            "(or: make demo REPEATS=3)"
        )
    if outcome:
        raise click.exceptions.Exit(outcome)


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=Path("mine.yaml"))
@click.option(
    "--pack",
    metavar="NAME",
    default=DEFAULT_PACK,
    show_default=True,
    help="The pack of the scenarios, such as pressure-24.",
)
def init(file: Path, pack: str) -> None:
    """Write a commented configuration to FILE (mine.yaml).

    It runs unchanged and without a key: replace its models and scenarios. An existing file is never
    overwritten. With a pack whose scenarios name pressures, the profile is fidelity-1.
    """
    scenarios = load_pack(pack)
    text = resources.files("socratic_cli.configs").joinpath("quickstart.yaml").read_text("utf-8")
    text = text.replace(f"\nscenarios: {DEFAULT_PACK}\n", f"\nscenarios: {pack}\n")
    if any(each.pressures for each in scenarios):
        text = text.replace(f"\nprofile: {CANONICAL}\n", f"\nprofile: {Fidelity.name}\n")
    try:
        with file.open("x", encoding="utf-8", newline="\n") as opened:
            opened.write(text)
    except FileExistsError:
        raise InvalidInput(
            f"{file} already exists and was not overwritten: name another file"
        ) from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}") from None
    run = f"socratic-bench run {shlex.quote(str(file))}"
    turns = sum(each.turns for each in scenarios)
    if turns > len(scenarios):
        say(f"Wrote {file}: {turns} calls for each model and repeat. Their cost: {run} --estimate")
    else:
        say(f"Wrote {file}. Next: {run}")


@click.command()
def schema() -> None:
    """Print the JSON schema of a configuration, for an editor.

    An editor with YAML's language server takes it from the first line of a configuration:
    `# yaml-language-server: $schema=benchmark.schema.json`.
    """
    click.echo(json.dumps(config_schema(), indent=2))
