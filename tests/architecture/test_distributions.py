"""The contents, the version and the extras of every distribution."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import socratic_bench
from tests.architecture.containers.container_files import compose

ROOT = Path(__file__).parents[2]
VERSION_FILE = ROOT / "shared/socratic_bench/version.py"
SERVICES = ("runner", "judge", "curator", "api")
DISTRIBUTIONS = {
    "shared": "socratic_bench",
    **{f"services/{service}": f"socratic_{service}" for service in SERVICES},
    "deploy/cli": "socratic_cli",
}
CLIENTS = (
    *("aio-pika", "asyncpg", "aiobotocore", "pyarrow", "matplotlib"),
    *("[rabbitmq", "[postgresql", "[parquet", "[figures", ",rabbitmq"),
)


def pyproject(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_a_distribution_reads_its_version_where_all_of_them_do(folder):
    whole = pyproject(folder)
    assert whole["project"]["dynamic"] == ["version"]
    assert (ROOT / folder / whole["tool"]["hatch"]["version"]["path"]).resolve() == VERSION_FILE


def test_the_version_stands_in_one_file_and_opens_the_changelog():
    version = socratic_bench.__version__
    assert f'__version__ = "{version}"' in VERSION_FILE.read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[(.*?)\]", changelog, re.MULTILINE)[1] == version
    places = ("shared", "services", "deploy", ":!services/api/dashboard/package-lock.json")
    listed = subprocess.run(
        ["git", "-C", ROOT, "grep", "-lF", f'"{version}"', "--", *places],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode > 1:
        pytest.skip(f"this is no checkout of a repository: {listed.stderr.strip()}")
    assert listed.stdout.split() == ["shared/socratic_bench/version.py"]


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_a_distribution_brings_licence_readme_authors_and_types(folder):
    project = pyproject(folder)["project"]
    assert project["license-files"] == ["LICENSE"]
    assert (ROOT / folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (ROOT / folder / project["readme"]).read_text().startswith("# ")
    assert [author["name"] for author in project["authors"]] == ["The Socratic Bench contributors"]
    assert project["classifiers"] == pyproject("shared")["project"]["classifiers"]
    assert (ROOT / folder / DISTRIBUTIONS[folder] / "py.typed").exists()


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_a_client_of_a_broker_a_database_or_a_cloud_and_pyarrow_are_extras(folder):
    needed = pyproject(folder)["project"]["dependencies"]
    assert [each for each in needed if any(client in each for client in CLIENTS)] == []


@pytest.mark.parametrize("file", ["compose.yaml", "sqs.yaml"])
@pytest.mark.parametrize("service", SERVICES)
def test_an_image_names_extras_that_its_distribution_has(service, file):
    named = compose(file)["services"][service]["build"]["args"]["EXTRAS"].split(",")
    assert set(named) <= pyproject(f"services/{service}")["project"]["optional-dependencies"].keys()


def test_every_extra_that_a_message_names_exists():
    extras = {
        pyproject(folder)["project"]["name"]: set(
            pyproject(folder)["project"].get("optional-dependencies", ())
        )
        for folder in DISTRIBUTIONS
    }
    named = {
        (name, extra)
        for folder, package in DISTRIBUTIONS.items()
        for file in (ROOT / folder / package).rglob("*.py")
        for name, words in re.findall(
            r"\b(socratic-ai-bench[a-z-]*)\[([a-z,]+)\]", file.read_text()
        )
        for extra in words.split(",")
    }
    assert {("socratic-ai-bench", "rabbitmq"), ("socratic-ai-bench", "bedrock")} <= named
    assert [pair for pair in named if pair[1] not in extras[pair[0]]] == []


def without(package, code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules[{package!r}] = None\n{code}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("service", ["runner", "judge", "curator"])
def test_a_service_without_its_extra_ends_with_one_sentence(service):
    started = f"import runpy; runpy.run_module('socratic_{service}', run_name='__main__')"
    done = without("prometheus_client", started)
    assert done.returncode == 2
    assert f"pip install 'socratic-ai-bench-{service}[rabbitmq]'" in done.stderr


def test_the_command_without_the_client_of_the_broker_names_the_extra(tmp_path):
    code = (
        "sys.argv = ['socratic-bench', 'dlq', 'list', '--broker', 'amqp://127.0.0.1/']\n"
        "from socratic_cli.cli import main; main()"
    )
    done = without("aio_pika", code)
    assert done.returncode == 2
    assert "pip install 'socratic-ai-bench[rabbitmq]'" in done.stderr


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("export spring --format parquet --out a.parquet", "pyarrow", "parquet"),
        ("figure spring ranking --out a.pdf", "matplotlib", "figures"),
    ],
)
def test_a_file_that_needs_an_extra_names_it_and_writes_nothing(tmp_path, words, package, extra):
    code = (
        f"import os; os.chdir({str(tmp_path)!r})\n"
        f"sys.argv = 'socratic-bench {words}'.split()\n"
        "from socratic_cli.cli import main; main()"
    )
    done = without(package, code)
    assert done.returncode == 2
    assert f"pip install 'socratic-ai-bench[{extra}]'" in done.stderr
    assert [*tmp_path.iterdir()] == []
