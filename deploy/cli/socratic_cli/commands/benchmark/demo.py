"""`socratic-bench demo`: benchmarks the built-in tutors and, if installed, a real local model."""

from __future__ import annotations

from importlib import resources

import click

from socratic_bench.errors import InvalidInput
from socratic_bench.planning.config_file.config import BenchmarkConfig, read_config
from socratic_bench.planning.registered_models import RegisteredModels
from socratic_cli.commands.benchmark.run import execute
from socratic_cli.display.terminal import say
from socratic_cli.key_approval import access_check, own_endpoints
from socratic_cli.options.store import store_option


def _config(name: str) -> BenchmarkConfig:
    with resources.as_file(resources.files("socratic_cli.configs") / name) as path:
        return read_config(path, RegisteredModels(access_check(own_endpoints())))


@click.command()
@store_option
def demo(store_url: str) -> None:
    """Benchmark the built-in tutors and a local model.

    The local model is a real one. Without it the demo shows the built-in tutors alone.
    """
    try:
        config = _config("demo.yaml")
    except InvalidInput as missing:
        say(f"Going on without the local model: {missing}")
        config = _config("demo-without-local.yaml")
    names = "; ".join(model.display_name for model in config.manifest.models)
    manifest = config.manifest
    say(
        f"{manifest.planned_runs} runs: {len(manifest.models)} tutors ({names}), "
        f"{len(manifest.scenarios)} scenarios, {manifest.repeats} repeats. "
        "A local model takes a few minutes; after Ctrl-C the same command continues."
    )
    outcome = execute(config, store_url=store_url)
    say("See it in a browser: make serve   (or: socratic-bench serve --store URL)")
    if outcome:
        raise click.exceptions.Exit(outcome)
