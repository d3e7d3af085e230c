"""The workflow of docs/ci.md, step by step, with a stand-in for GitHub's runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.changing_tutor import ASKS, TELLS, Tutor, changing_tutor
from tests.e2e.workflow_runner import OWN_ACTION, ROOT, Cache, Job, workflow_of

WORKFLOW = workflow_of(ROOT / "docs/ci.md")


@dataclass
class Repository:
    """A repository with a tutor, and its jobs on GitHub."""

    tutor: Tutor
    cache: Cache
    plan: dict[str, Any] = field(default_factory=dict)
    runs: int = 0

    async def job(
        self, sha: str, *, pull_request: str = "", fork: bool = False, attempt: int = 1
    ) -> Job:
        """Run the job of a push to main, or of a pull request from this branch."""
        self.runs += attempt == 1
        workspace = self.tutor.terminal.folder / f"{sha}-{self.runs}-{attempt}"
        workspace.mkdir()
        config = self.tutor.config("tutor", **self.plan)
        (workspace / "tutor.yaml").write_text(config.read_text())
        head = {"sha": sha, "repo": {"fork": fork}}
        github = {
            "sha": f"merge-of-{sha}" if pull_request else sha,
            "ref_name": f"{self.runs}/merge" if pull_request else "main",
            "base_ref": "main" if pull_request else "",
            "head_ref": pull_request,
            "run_id": self.runs,
            "run_attempt": attempt,
            "event": {"pull_request": {"head": head}} if pull_request else {},
        }
        secrets = {} if fork else {"OPENAI_API_KEY": "sk-never-sent"}
        job = Job(workspace, self.cache, github, secrets, {})
        await asyncio.to_thread(job.run, WORKFLOW)
        return job


@pytest.fixture
async def repository(tmp_path: Path) -> AsyncIterator[Repository]:
    async with changing_tutor(tmp_path) as tutor:
        yield Repository(tutor, Cache(tmp_path / "caches"))


async def test_main_has_a_first_run_and_a_second_merge_and_a_change_that_fell_fails(
    repository: Repository,
) -> None:
    tutor = repository.tutor
    first = await repository.job("aaaa")
    assert not first.failed, first.log
    assert tutor.calls == 6
    assert "the experiment is the baseline itself" in first.summary

    second = await repository.job("bbbb")
    assert not second.failed, second.log
    assert tutor.calls == 12
    assert "against main · aaaa (exp-" in second.summary

    tutor.says = TELLS
    fell = await repository.job("cccc", pull_request="shorter-prompts")
    assert fell.failed
    assert tutor.calls == 18
    assert "::error title=vllm/tutor%3A overall falls by at most 0.05::" in fell.log
    assert "### Where vllm/tutor fell: 6 scenarios, the 3 worst" in fell.summary

    again = await repository.job("cccc", pull_request="shorter-prompts", attempt=2)
    assert (again.failed, tutor.calls) == (True, 18), again.log

    tutor.says = ASKS
    mended = await repository.job("dddd", pull_request="shorter-prompts")
    assert (mended.failed, tutor.calls) == (False, 24), mended.log


async def test_a_fork_without_a_key_asks_nothing_and_says_so(repository: Repository) -> None:
    job = await repository.job("aaaa", pull_request="fix", fork=True)
    assert (job.failed, repository.tutor.calls, repository.cache.saved) == (False, 0, [])
    assert "A fork has no OPENAI_API_KEY: no tutor is asked" in job.log


async def test_an_exhausted_budget_fails_and_its_answers_are_kept(repository: Repository) -> None:
    price = {"input_per_million": 10, "output_per_million": 10}
    tutor = repository.tutor
    model = {"id": "vllm/tutor", "base_url": tutor.address, "options": {"stream": False}}
    plan = {"models": [{**model, "price": price, "limits": {"concurrency": 1}}]}
    repository.plan = {**plan, "budget": 0.01, "parameters": {"max_tokens": 600}}
    poor = await repository.job("aaaa")
    assert poor.failed
    asked = tutor.calls
    assert 0 < asked < 6
    assert "of 6 runs have ended" in poor.summary
    assert len(repository.cache.saved) == 1

    repository.plan = {**repository.plan, "budget": 1}
    enough = await repository.job("aaaa", attempt=2)
    assert (enough.failed, tutor.calls) == (False, 6), enough.log


def test_the_workflow_pins_the_benchmark_and_fills_the_cache_on_main() -> None:
    [job] = WORKFLOW["jobs"].values()
    assert [step["uses"] for step in job["steps"]] == ["actions/checkout@v4", OWN_ACTION]
    # YAML 1.1 reads `on` as true.
    assert WORKFLOW[True] == {"push": {"branches": ["main"]}, "pull_request": None}


def test_no_step_holds_a_value_of_github_in_its_script() -> None:
    """A branch may be named like a command: scripts read the environment alone."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


async def test_the_hook_of_pre_commit_reads_each_configuration_without_a_key(
    repository: Repository,
) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    good = repository.tutor.config("good")
    bad = repository.tutor.config("bad", repeat=2)
    for files, told in (((good,), ""), ((good, bad), "did you mean `repeats`?")):
        steps = [{"name": "hook", "run": f"{hook['entry']} {' '.join(map(str, files))}"}]
        job = Job(repository.tutor.terminal.folder, repository.cache, {}, {}, {})
        await asyncio.to_thread(job.run, {"jobs": {"hook": {"steps": steps}}})
        assert (job.failed, told in job.log) == (bool(told), True), job.log
