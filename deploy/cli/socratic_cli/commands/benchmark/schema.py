"""`socratic-bench schema`: prints the JSON schema of a configuration."""

from __future__ import annotations

import json

import click

from socratic_bench.planning.config_file.config import config_schema


@click.command()
def schema() -> None:
    """Print the JSON schema of a configuration, for an editor.

    An editor with YAML's language server takes it from the first line of a configuration:
    `# yaml-language-server: $schema=benchmark.schema.json`.
    """
    click.echo(json.dumps(config_schema(), indent=2))
