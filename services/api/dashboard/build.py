#!/usr/bin/env python3
"""Build the dashboard's pages into `services/api/socratic_api/static/`, or check their sources.

    python services/api/dashboard/build.py [--required]    build, if a source changed
    python services/api/dashboard/build.py --check         check types, style and format

The script needs nothing but Python. It takes Node from this machine, or from PyPI where there is
none, and the packages of the lock file from the npm registry. Where these cannot be had it says so
and ends well: the API shows a page with the reason. With `--required` it ends with exit code 1.
A mistake in the sources is always exit code 1.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolchain import HERE, MODULES, BuildFailed, Node, Unavailable, prepare, run, say

SOURCES: Final = HERE / "src"
CONFIG: Final = SOURCES / "lib" / "config.js"
"""Not bundled: it names the API's address, which a static site changes."""

OUTPUT: Final = HERE.parent / "socratic_api" / "static"
STAMP: Final = OUTPUT / "stamp"
NOT_BUILT: Final = OUTPUT / "not-built.txt"
CHECKED: Final = MODULES / ".checked"
LOCK: Final = HERE / ".lock"
DRAFT: Final = ".static-"
EXAMPLE: Final = HERE.parents[2] / "examples" / "page"
SETTINGS: Final = ("*.json", "*.js", "*.py", ".npmrc", ".prettierignore")

BUNDLE_SECONDS: Final = 60
CHECK_SECONDS: Final = 180
LOCK_SECONDS: Final = 300
LOCK_POLL_SECONDS: Final = 0.1


def main() -> int:
    """Build or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="check types, style and format")
    parser.add_argument("--required", action="store_true", help="fail where a tool is missing")
    options = parser.parse_args()
    try:
        check() if options.check else build()
    except BuildFailed as error:
        say(str(error))
        return 1
    except Unavailable as reason:
        what = "checked" if options.check else "built"
        say(f"The dashboard's pages are not {what}. {reason}")
        return int(options.required)
    return 0


def build() -> None:
    """Build the pages unless they are up to date. Raises Unavailable, BuildFailed."""
    stamp = source_stamp()
    if _stamped(STAMP, stamp):
        return
    with _locked():
        if _stamped(STAMP, stamp):
            return
        begun = time.monotonic()
        say("Building the dashboard's pages ...")
        try:
            _swap(prepare(), stamp)
        except Unavailable as reason:
            _leave_reason(reason)
            raise
        say(f"Built the dashboard's pages in {time.monotonic() - begun:.1f} s.")


def check() -> None:
    """Check types, style and format of the sources. Raises Unavailable, BuildFailed."""
    stamp = source_stamp(*EXAMPLE.rglob("*.js"))
    if _stamped(CHECKED, stamp):
        return
    with _locked():
        if _stamped(CHECKED, stamp):
            return
        node = prepare(checks=True)
        say("Checking the dashboard's sources ...")
        for script in ("types", "lint", "format"):
            words = ["run", "--silent", script]
            run([*node.npm, *words], seconds=CHECK_SECONDS, env=node.environment())
        CHECKED.write_text(stamp)


def source_stamp(*others: Path) -> str:
    """A hash over everything that decides about the built files, and over `others`."""
    files = [path for path in SOURCES.rglob("*") if path.is_file()]
    files += [path for pattern in SETTINGS for path in HERE.glob(pattern)]
    digest = hashlib.sha256()
    for path in sorted((*files, *others)):
        content = path.read_bytes()
        digest.update(f"{os.path.relpath(path, HERE)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _stamped(file: Path, stamp: str) -> bool:
    try:
        return file.read_text() == stamp
    except OSError:
        return False


@contextmanager
def _locked() -> Iterator[None]:
    """One build at a time; another process waits here. Raises Unavailable."""
    deadline = time.monotonic() + LOCK_SECONDS
    with LOCK.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"Another build has run for {LOCK_SECONDS} seconds."
                    ) from None
                time.sleep(LOCK_POLL_SECONDS)
        yield


def _swap(node: Node, stamp: str) -> None:
    """Build beside the old files, then put the new ones in their place."""
    for left_over in OUTPUT.parent.glob(f"{DRAFT}*"):
        shutil.rmtree(left_over)
    draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=OUTPUT.parent))
    try:
        _bundle(node, draft / "new")
        (draft / "new" / STAMP.name).write_text(stamp)
        if OUTPUT.exists():
            OUTPUT.rename(draft / "old")
        (draft / "new").rename(OUTPUT)
    finally:
        shutil.rmtree(draft)


def _bundle(node: Node, folder: Path) -> None:
    modules = [page["module"] for page in json.loads((SOURCES / "pages.json").read_text())]
    run(
        [
            MODULES / ".bin" / "esbuild",
            "src/site.ts",
            *(f"src/pages/{module}.ts" for module in modules),
            "src/styles.css",
            "--bundle",
            f"--external:./{CONFIG.name}",
            "--format=esm",
            "--target=es2022",
            "--charset=utf8",
            "--minify",
            "--sourcemap",
            "--entry-names=[name]",
            "--log-level=warning",
            f"--outdir={folder / 'assets'}",
        ],
        seconds=BUNDLE_SECONDS,
        env=node.environment(),
    )
    (folder / "pages").mkdir()
    for module in modules:
        shutil.copy(SOURCES / "pages" / f"{module}.html", folder / "pages")
    for file in (SOURCES / "icon.svg", CONFIG):
        shutil.copy(file, folder / "assets")
    for name in ("document.html", "pages.json"):
        shutil.copy(SOURCES / name, folder)


def _leave_reason(reason: Unavailable) -> None:
    """Keep pages of an earlier build; without any, leave the reason for the API to show."""
    if STAMP.exists():
        say("The pages of an earlier build stay in place.")
        return
    OUTPUT.mkdir(exist_ok=True)
    NOT_BUILT.write_text(f"{reason}\n", encoding="utf-8")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
