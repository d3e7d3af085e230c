"""The third-party libraries of the layer: installed from the lock file, and cut to their use."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from socratic_aws.packaging.targets import Target

AWS_SERVICES: Final = (
    "bedrock-runtime",
    "dynamodb",
    "s3",
    "secretsmanager",
    "sns",
    "sqs",
    "ssm",
    "sts",
)
"""The services whose descriptions botocore keeps; those of all services have 27 MB."""

_NOT_USED: Final = ("examples-1.json", "RECORD", "*.pyi", "*.pyx", "*.pxd", "*.c", "*.h")


def needs_of(root: Path, distribution: str, *extras: str) -> set[str]:
    """Return the libraries that a distribution of ours needs with these extras."""
    project = tomllib.loads((root / distribution / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    found = set()
    for need in (*project["dependencies"], *(each for extra in extras for each in optional[extra])):
        if core := re.fullmatch(r"socratic-ai-bench-core\[(.+)\]", need):
            found |= needs_of(root, "shared", *core[1].split(","))
        else:
            found.add(need)
    return found


def install(needs: Sequence[str], lock: Path, target: Target, folder: Path) -> None:
    """Install wheels of the lock file into `folder`, those that the needs lead to.

    pip checks hashes for a whole lock file alone: it fetches all wheels, then installs from them,
    where no setting of this machine names other wheels. Raises CalledProcessError.
    """
    with tempfile.TemporaryDirectory(prefix="socratic-wheels-") as wheels:
        _pip("download", target, "--require-hashes", "--no-deps", "--dest", wheels, "-r", lock)
        source = ("--isolated", "--no-index", "--find-links", wheels)
        into = ("--no-compile", "--target", folder)
        _pip("install", target, *source, *into, *needs, PIP_CONFIG_FILE=os.devnull)
    shutil.rmtree(folder / "bin", ignore_errors=True)


def _pip(command: str, target: Target, *words: str | Path, **variables: str) -> None:
    platforms = [word for each in target.platforms() for word in ("--platform", each)]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", command, "--quiet"),
            *("--only-binary", ":all:", "--implementation", "cp"),
            *("--python-version", target.python, *platforms, *words),
        ],
        env={**os.environ, **variables},
        check=True,
    )


def cut(folder: Path) -> None:
    """Remove what no function reads: tests, sources of extensions, descriptions of services."""
    for pattern in _NOT_USED:
        for file in folder.rglob(pattern):
            file.unlink()
    for tests in [*folder.glob("*/tests"), *folder.glob("*/test")]:
        shutil.rmtree(tests)
    descriptions = folder / "botocore" / "data"
    for service in descriptions.iterdir():
        if service.is_dir() and service.name not in AWS_SERVICES:
            shutil.rmtree(service)
    _cut_endpoints(descriptions / "endpoints.json")


def _cut_endpoints(file: Path) -> None:
    """Keep the endpoints of the services of AWS_SERVICES: every first client parses the file."""
    endpoints = json.loads(file.read_text())
    for partition in endpoints["partitions"]:
        kept = set(AWS_SERVICES) & partition["services"].keys()
        partition["services"] = {name: partition["services"][name] for name in sorted(kept)}
    file.write_text(json.dumps(endpoints, separators=(",", ":")))


def compile_all(folder: Path, installed_at: str) -> None:
    """Write the bytecode of all modules below `folder`, whose path in a function is `installed_at`.

    A function cannot write it, and compiling at a cold start doubles its time. Fixed seed and
    order give the same bytes each time; the bytecode is not compared with its source, since the
    times of files in a package say nothing. Raises CalledProcessError.
    """
    subprocess.run(
        [
            *(sys.executable, "-m", "compileall", "-q", "-j", "1"),
            *("--invalidation-mode", "unchecked-hash", "-s", folder, "-p", installed_at, folder),
        ],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
    )
