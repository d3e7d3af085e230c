"""Every folder of a kind has the same parts, and imports only what it may."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.events.codec import EVENT_TYPES

ROOT = Path(__file__).parents[2]
SERVICES = ("runner", "judge", "curator", "api")


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_depends_on_no_other_service(service):
    project = tomllib.loads((ROOT / "services" / service / "pyproject.toml").read_text())
    ours = [d for d in project["project"]["dependencies"] if d.startswith("socratic-ai-bench")]
    assert [d.partition("[")[0] for d in ours] == ["socratic-ai-bench-core"]


@pytest.mark.parametrize("service", SERVICES)
def test_the_readme_of_a_service_says_what_it_exchanges_and_has_its_settings(service):
    readme = (ROOT / "services" / service / "README.md").read_text()
    for word in ("**consumes**", "**publishes**", "**reads**", "**writes**", "## settings"):
        assert word in readme.lower(), word


def test_every_event_goes_to_a_queue_or_is_a_broadcast():
    assert {queue.event_type for queue in WORK_QUEUES} | set(BROADCASTS) == set(EVENT_TYPES)
    assert len({queue.event_type for queue in WORK_QUEUES}) == len(WORK_QUEUES)


def loaded(code, *modules):
    """The modules that this code loads, of these."""
    shown = f"import sys; {code}; print(*(name for name in {modules} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_scoring_a_text_loads_no_service_no_driver_and_no_yaml():
    code = "from socratic_bench import score; score('x?')"
    avoided = ("pydantic", "structlog", "sqlalchemy", "yaml", "asyncio", "jinja2")
    assert loaded(code, *avoided) == []


@pytest.mark.parametrize("command", ["report", "compare-profiles", "validity"])
def test_a_command_loads_the_engine_of_templates_at_its_page(command):
    code = f"from socratic_cli.cli import load_command; load_command('{command}')"
    assert loaded(code, "jinja2", "markupsafe", "socratic_bench.results.pages") == [
        "socratic_bench.results.pages"
    ]


LOCKS = (
    "constraints.txt",
    "tests/requirements.txt",
    "tests/servers/requirements.txt",
    "deploy/aws/requirements.txt",
    "deploy/emulator/requirements.txt",
    "services/runner/requirements-local.txt",
)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_names_no_package_index_and_each_requirement_has_a_hash(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "index-url" not in text
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert "--hash=sha256:" in requirement, requirement.splitlines()[0]
