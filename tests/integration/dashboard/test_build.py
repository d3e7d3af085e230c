"""The script that builds the dashboard's pages, over a copy of its sources."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.built_pages import BUILD, BUILD_SECONDS, require_pages
from tests.servers.discovery import missing
from tests.waiting import block_until

SOURCES = BUILD.parent
BUILDING = "Building the dashboard's pages"
UNREACHABLE = "http://127.0.0.1:9/"
LEFT_BEHIND = ("node_modules", ".venv-node", "__pycache__")
STEPS_NEED = ("sh", "cp", "mkdir", "mv", "rm")


@dataclass
class Tree:
    """A copy of the sources, and the folder that they are built into."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def static(self) -> Path:
        return self.folder.parent / "socratic_api" / "static"

    def words(self, *options: str) -> list[str]:
        return [sys.executable, str(self.folder / "build.py"), *options]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables}

    def build(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*options),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )

    def change(self, name: str, old: str, new: str) -> None:
        path = self.folder / "src" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture
def bare(tmp_path: Path) -> Tree:
    """Without npm packages, and with neither a registry nor an index that answers."""
    folder = tmp_path / "services" / "api" / "dashboard"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    (folder.parent / "socratic_api").mkdir()
    lock = Path("deploy", "aws", "requirements.txt")
    (tmp_path / lock.parent).mkdir(parents=True)
    shutil.copy(SOURCES.parents[2] / lock, tmp_path / lock)
    offline = {
        "npm_config_registry": UNREACHABLE,
        "npm_config_cache": str(tmp_path / "cache"),
        "PIP_INDEX_URL": UNREACHABLE,
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1",
    }
    return Tree(folder, offline)


@pytest.fixture
def tree(bare: Tree) -> Tree:
    """With the npm packages of this checkout."""
    require_pages()
    (bare.folder / "node_modules").symlink_to(SOURCES / "node_modules")
    return bare


def test_pages_are_built_once_until_a_source_changes(tree: Tree):
    first, second = tree.build("--required"), tree.build("--required")
    before = (tree.static / "assets" / "research.js").read_text()
    tree.change("pages/research.ts", "by overall score, best first", "best first of all")
    third = tree.build("--required")

    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 0)
    assert BUILDING in first.stderr
    assert second.stderr == ""
    assert BUILDING in third.stderr
    assert "by overall score, best first" in before
    assert "best first of all" in (tree.static / "assets" / "research.js").read_text()
    assert [path.name for path in tree.static.parent.iterdir()] == ["static"]


@pytest.mark.long
def test_every_listed_page_has_its_content_and_its_module(tree: Tree):
    assert tree.build("--required").returncode == 0
    for page in json.loads((tree.folder / "src" / "pages.json").read_text()):
        assert (tree.static / "pages" / f"{page['module']}.html").read_text()
        assert (tree.static / "assets" / f"{page['module']}.js").read_text()


@pytest.mark.long
def test_two_processes_at_once_build_once(tree: Tree):
    processes = [
        subprocess.Popen(
            tree.words("--required"), env=tree.environment, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=BUILD_SECONDS)[1] for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    assert "".join(said).count(BUILDING) == 1


def test_a_step_that_does_not_end_leaves_no_process(tree: Tree, tmp_path: Path):
    script, npm, child = tree.folder / "build.py", tmp_path / "bin" / "npm", tmp_path / "child"
    script.write_text(script.read_text().replace("STEP_SECONDS: Final = 180", "STEP_SECONDS = 0.5"))
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\nsleep 600 & echo $! >'{child}'\nwait\n")
    npm.chmod(0o755)
    tree.variables["PATH"] = f"{npm.parent}{os.pathsep}{os.environ['PATH']}"

    done = tree.build("--required")

    assert (done.returncode, "npm did not end within 0.5 s." in done.stderr) == (1, True)
    pid = int(child.read_text())
    block_until(lambda: not _runs(pid), "the end of what npm started")


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def test_a_mistake_in_a_source_fails_and_leaves_the_built_pages(tree: Tree):
    assert tree.build().returncode == 0
    built = (tree.static / "assets" / "research.js").read_text()
    tree.change("pages/research.ts", "class ResearchPage {", "class ResearchPage ((")
    failed = tree.build()

    assert failed.returncode == 1
    assert "src/pages/research.ts" in failed.stderr
    assert (tree.static / "assets" / "research.js").read_text() == built
    assert [path.name for path in tree.static.parent.iterdir()] == ["static"]


def test_a_registry_that_cannot_be_reached_is_a_reason_and_no_failure(bare: Tree):
    if not shutil.which("npm"):
        missing("npm is not installed")
    done, required = bare.build(), bare.build("--required")

    assert (done.returncode, required.returncode) == (0, 1)
    assert "The dashboard's pages are not built. The npm registry did not give" in done.stderr
    assert "ECONNREFUSED" in done.stderr
    assert "The npm registry did not give" in (bare.static / "not-built.txt").read_text()


@pytest.mark.long
def test_a_registry_that_does_not_answer_is_given_up(bare: Tree):
    if not shutil.which("npm"):
        missing("npm is not installed")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bare.variables["npm_config_registry"] = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        done = bare.build()

    assert done.returncode == 0
    assert "The dashboard's pages are not built. The npm registry" in done.stderr


@pytest.mark.long
def test_pages_of_an_earlier_build_stay_where_a_new_build_cannot_be(tree: Tree):
    assert tree.build("--required").returncode == 0
    (tree.folder / "node_modules").unlink()
    tree.change("icon.svg", "<svg", "<svg ")
    done = tree.build()

    assert done.returncode == 0
    assert "The pages of an earlier build stay in place." in done.stderr
    assert (tree.static / "assets" / "research.js").exists()


@pytest.mark.long
def test_without_a_recent_node_here_or_on_pypi_the_reason_names_both(bare: Tree, tmp_path: Path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("node", "npm"):
        (programs / name).write_text("#!/bin/sh\necho v16.20.0\n")
        (programs / name).chmod(0o755)
    bare.variables["PATH"] = f"{programs}:/nowhere"
    done = bare.build("--required")

    assert done.returncode == 1
    assert "Node here is v16.20.0; the dashboard needs >=20.19, with npm." in done.stderr
    assert "There is no Node of the right version on this machine, and pip" in done.stderr


@pytest.mark.long
def test_node_comes_from_pypi_where_the_machine_has_none(bare: Tree, tmp_path: Path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in STEPS_NEED:
        (programs / name).symlink_to(shutil.which(name) or name)
    bare.variables = {"PATH": str(programs)}
    done = bare.build("--required")
    if done.returncode and "not built" in done.stderr:
        missing(done.stderr)

    assert done.returncode == 0, done.stderr
    assert "Fetching Node from PyPI" in done.stderr
    assert (bare.static / "assets" / "research.js").exists()


@pytest.mark.long
def test_a_wrong_type_in_a_source_fails_the_check(tree: Tree):
    checked = subprocess.run(
        [sys.executable, str(BUILD), "--check", "--required"],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if checked.returncode:
        missing(checked.stderr)
    tree.change("lib/models.ts", "leader: ModelFigures | null", "leader: number")
    failed = tree.build("--check")

    assert failed.returncode == 1
    assert "src/lib/models.ts" in failed.stderr
