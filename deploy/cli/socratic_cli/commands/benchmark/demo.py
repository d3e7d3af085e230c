"""`socratic-bench demo`: benchmarks the built-in tutors and, if installed, a real local model."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import click

from socratic_bench.domain.experiment.manifest import Manifest
from socratic_bench.errors import InvalidInput
from socratic_bench.planning.config_file.config import BenchmarkConfig, read_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_cli.commands.benchmark.run import execute
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
