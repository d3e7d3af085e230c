"""A stand-in for GitHub's runner: the steps of a job in order, in bash, with a cache.

It knows what docs/ci.md and action.yml use: expressions of dotted names, strings, `==`, `&&` and
`||`; `env`, `with`, `if` and outputs; a cache that a pull request shares with its base alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.processes.forked import typed_command
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
OWN_ACTION = "OWNER/socratic-bench@COMMIT"
NOTHING_TO_DO = ("actions/checkout@v4", "actions/setup-python@v5")

INSTALLS_NOTHING = """#!/bin/sh
for each; do
  case "$each" in ./*) test -f "$each/pyproject.toml" || exit 1 ;; esac
done
"""

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
_TOKEN = re.compile(r"\s*('[^']*'|\|\||&&|==|[()]|[A-Za-z_][\w.-]*)")


@dataclass
class Cache:
    """Saved files by key, the newest last, with the branch or pull request that saved them."""

    folder: Path
    saved: list[tuple[str, str]] = field(default_factory=list)

    def save(self, key: str, scope: str, workspace: Path, pattern: str) -> None:
        self.saved.append((key, scope))
        place = self.folder / str(len(self.saved))
        place.mkdir(parents=True)
        for path in workspace.glob(pattern):
            shutil.copy(path, place)

    def restore(self, prefixes: list[str], scopes: set[str], workspace: Path) -> None:
        for prefix in prefixes:
            for number, (key, scope) in reversed(list(enumerate(self.saved, 1))):
                if key.startswith(prefix) and scope in scopes:
                    for path in (self.folder / str(number)).iterdir():
                        shutil.copy(path, workspace)
                    return


@dataclass
class Job:
    """One execution of a workflow's job."""

    workspace: Path
    cache: Cache
    github: Mapping[str, Any]
    secrets: Mapping[str, str]
    environ: dict[str, str]
    failed: bool = False
    log: str = ""
    steps: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        path = self.workspace / "summary.md"
        return path.read_text() if path.exists() else ""

    def run(self, workflow: Mapping[str, Any]) -> None:
        """Run the steps of the only job."""
        [job] = workflow["jobs"].values()
        self.environ |= self._values(job.get("env", {}))
        self._all(job["steps"])

    def _all(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            condition = str(step.get("if", ""))
            if not re.search(r"(always|failure|success)\(", condition):
                condition = f"success() && ({condition})" if condition else "success()"
            if self._evaluated(condition):
                self._step(step)

    def _step(self, step: dict[str, Any]) -> None:
        if "run" in step:
            self._shell(step)
            return
        uses, given = step["uses"], self._values(step.get("with", {}))
        if uses == OWN_ACTION:
            action = yaml.safe_load((ROOT / "action.yml").read_text())
            defaults = {name: each["default"] for name, each in action["inputs"].items()}
            assert given.keys() <= defaults.keys()
            self.inputs = defaults | given
            self._all(action["runs"]["steps"])
        elif uses == "actions/cache/restore@v4":
            scopes = {self._scope, self.github["base_ref"] or self.github["ref_name"]}
            self.cache.restore(given["restore-keys"].split(), scopes, self.workspace)
        elif uses == "actions/cache/save@v4":
            self.cache.save(given["key"], self._scope, self.workspace, given["path"])
        else:
            assert uses in NOTHING_TO_DO, uses

    @property
    def _scope(self) -> str:
        return str(self.github["head_ref"] or self.github["ref_name"])

    def _shell(self, step: dict[str, Any]) -> None:
        tools, control = self._tools()
        output = self.workspace / "output"
        output.write_text("")
        own = {
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.workspace / "summary.md"),
            "GITHUB_ACTION_PATH": str(ROOT),
            "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env=os.environ | self.environ | own | self._values(step.get("env", {})),
            pass_fds=[control],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.log += f"$ {step.get('name')}\n{done.stdout}{done.stderr}"
        self.failed = self.failed or done.returncode != 0
        pairs = (line.split("=", 1) for line in output.read_text().splitlines())
        self.steps[step.get("id", "")] = {"outputs": dict(pairs)}

    def _tools(self) -> tuple[Path, int]:
        """A folder with the command, and a `pip` that only looks for the packages.

        The number is that of a socket that the command inherits.
        """
        folder = self.workspace / "tools"
        folder.mkdir(exist_ok=True)
        pip = folder / "pip"
        pip.write_text(INSTALLS_NOTHING)
        pip.chmod(0o755)
        return folder, typed_command(folder)

    def _values(self, written: Mapping[str, Any]) -> dict[str, str]:
        return {
            name: _EXPRESSION.sub(lambda found: self._text(found[1]), str(value))
            for name, value in written.items()
        }

    def _text(self, expression: str) -> str:
        value = self._evaluated(expression)
        return (
            "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        )

    def _evaluated(self, expression: str) -> Any:
        python = []
        for token in _TOKEN.findall(expression):
            word = {"||": " or ", "&&": " and "}.get(token, token)
            if re.match(r"[A-Za-z_]", word) and word not in {" or ", " and "}:
                is_call = word in {"always", "success", "failure"}
                word = word if is_call else f"look_up({word!r})"
            python.append(word)
        known = {
            "look_up": self._look_up,
            "always": lambda: True,
            "success": lambda: not self.failed,
            "failure": lambda: self.failed,
        }
        return eval("".join(python), {"__builtins__": {}}, known)

    def _look_up(self, path: str) -> Any:
        found: Any = {
            "github": self.github,
            "secrets": self.secrets,
            "inputs": self.inputs,
            "steps": self.steps,
            "env": self.environ,
        }
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


def workflow_of(document: Path) -> dict[str, Any]:
    """Return the first workflow in a document."""
    written = re.search(r"```yaml\n(name:.*?)```", document.read_text(), re.DOTALL)
    assert written is not None
    loaded: dict[str, Any] = yaml.safe_load(written[1])
    return loaded
