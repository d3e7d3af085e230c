"""Every distribution as a wheel, in an environment that has nothing else, as a user installs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import socratic_bench
from tests.built_pages import require_pages
from tests.servers.discovery import missing
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "shared",
    "services/runner",
    "services/judge",
    "services/curator",
    "services/api",
    "deploy/cli",
)
CONFIG = "models: [reference/socratic]\nrepeats: 1\n"
INSTALL_SECONDS = 240
CLIENTS = ("aio_pika", "asyncpg", "aiobotocore")

pytestmark = [
    pytest.mark.connected,
    pytest.mark.long,
    pytest.mark.xdist_group("wheels"),
]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The folder of wheels that SOCRATIC_TEST_WHEELS names, as a release has it, or built here."""
    if released := os.environ.get("SOCRATIC_TEST_WHEELS"):
        return Path(released).resolve()
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-index"]
    require_pages()
    sources = [str(ROOT / each) for each in FOLDERS]
    built = _run([*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), *sources])
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def environment(wheels, tmp_path_factory):
    """The programs of an environment with `pip install socratic-ai-bench` and nothing else."""
    programs = tmp_path_factory.mktemp("user") / "venv" / "bin"
    _run([sys.executable, "-m", "venv", "--without-pip", str(programs.parent)]).check_returncode()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    install = [*pip, "--python", str(programs / "python"), "install", "--no-compile"]
    name = f"socratic-ai-bench=={socratic_bench.__version__}"
    locked = ["--constraint", str(_pins(wheels))]
    done = _run([*install, "--quiet", "--find-links", str(wheels), *locked, name])
    if done.returncode:
        if re.search(r"No matching distribution|Could not find|onnection", done.stderr):
            missing(f"no package index has the dependencies: {done.stderr[-400:]}")
        pytest.fail(done.stderr)
    return programs


def _pins(folder: Path) -> Path:
    """The versions of the lock file, without the hashes that our own wheels would lack."""
    text = (ROOT / "constraints.txt").read_text()
    path = folder / "pins.txt"
    path.write_text("\n".join(re.findall(r"^[a-z0-9][^\s;]*==[^\s\\]+", text, re.MULTILINE)))
    return path


def _run(words, cwd=None):
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        words,
        cwd=cwd,
        env={**variables, "PYTHONWARNINGS": "error"} if cwd else variables,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )


def test_a_wheel_brings_version_licence_readme_and_types(wheels):
    built = sorted(wheels.glob("*.whl"))
    assert len(built) == len(FOLDERS)
    for wheel in built:
        with zipfile.ZipFile(wheel) as files:
            names = files.namelist()
            [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
            said = HeaderParser().parsestr(files.read(metadata).decode())
        assert said["Version"] == socratic_bench.__version__
        # pip upgrades what a pin asks for: the command must not meet an older library.
        for need in said.get_all("Requires-Dist"):
            if need.startswith("socratic-ai-bench") and "extra ==" not in need:
                assert need.endswith(f"=={socratic_bench.__version__}")
        assert (said["License-Expression"], said["License-File"]) == ("MIT", "LICENSE")
        assert said["Author"] == "The Socratic Bench contributors"
        assert "Typing :: Typed" in said.get_all("Classifier")
        assert said.get_payload().startswith("# ")
        assert any(name.endswith("/py.typed") for name in names)
        assert any(name.endswith("dist-info/licenses/LICENSE") for name in names)


def test_the_wheel_of_the_api_holds_the_pages_of_the_dashboard(wheels):
    [wheel] = wheels.glob("socratic_ai_bench_api-*.whl")
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    pages = {f"socratic_api/static/pages/{name}.html" for name in ("research", "methodology")}
    scripts = {f"socratic_api/static/assets/{name}.js" for name in ("research", "methodology")}
    assert {*pages, *scripts, "socratic_api/static/document.html"} <= names
    assert not [name for name in names if "dashboard/" in name]


def test_where_only_built_pages_can_be_had_a_wheel_of_the_api_needs_them(wheels, tmp_path):
    # So it is in the build of an image, which gets neither Node nor the sources.
    for folder in ("shared/socratic_bench", "services/api"):
        ignored = shutil.ignore_patterns("dashboard", "static", "__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path / "wheels")]
    words = [*pip, *options, str(tmp_path / "services/api")]
    without = _run(words)
    static = "services/api/socratic_api/static"
    shutil.copytree(ROOT / static, tmp_path / static)

    assert without.returncode
    assert "The dashboard's pages are not built: run `make dashboard` first." in without.stderr
    assert "Traceback" not in without.stderr
    assert _run(words).returncode == 0


def test_one_name_gives_the_command_the_library_a_run_and_a_score(environment, tmp_path):
    def typed(*words):
        done = _run([str(environment / words[0]), *words[1:]], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "run" in typed("socratic-bench", "--help")
    assert socratic_bench.__version__ in typed("socratic-bench", "--version")
    (tmp_path / "benchmark.yaml").write_text(CONFIG)
    result = json.loads(typed("socratic-bench", "run", "benchmark.yaml", "--json"))
    assert (result["done"], result["failed"]) == (15, 0)
    typed("socratic-bench", "report", "exp-")
    assert "</html>" in (tmp_path / "report.html").read_text()
    (tmp_path / "answer.txt").write_text("What might you consider?\n")
    assert "1.00" in typed("socratic-bench", "score", "answer.txt")
    code = "import socratic_bench; print(socratic_bench.score('Why?').overall)"
    assert float(typed("python", "-c", code)) > 0


def test_one_name_serves_the_dashboard_and_the_api(environment, tmp_path):
    (tmp_path / "benchmark.yaml").write_text(CONFIG)
    command = str(environment / "socratic-bench")
    done = _run([command, "run", "benchmark.yaml"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with subprocess.Popen(
        [command, "serve", "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as serving:
        try:
            said = ""
            while not (address := re.search(r"http://127\.0\.0\.1:\d+", said)):
                line = serving.stdout.readline()
                assert line, f"serve ended: {said}"
                said += line
            for path in ("/", "/research.html", "/methodology.html"):
                with urllib.request.urlopen(address[0] + path, timeout=PATIENCE) as answer:
                    assert "<html" in answer.read().decode()
            with urllib.request.urlopen(
                address[0] + "/api/model-comparison", timeout=PATIENCE
            ) as answer:
                [model] = json.load(answer)["models"]
            assert (model["model_id"], model["total_runs"]) == ("reference/socratic", 15)
        finally:
            serving.terminate()


def test_without_extras_no_client_is_installed_and_its_absence_is_one_sentence(
    environment, tmp_path
):
    code = f"from importlib.util import find_spec; print([n for n in {CLIENTS} if find_spec(n)])"
    assert _run([str(environment / "python"), "-c", code]).stdout.strip() == "[]"
    command = str(environment / "socratic-bench")
    for words, extra in (
        (("dlq", "list", "--broker", "amqp://127.0.0.1/"), "rabbitmq"),
        (("leaderboard", "--store", "postgresql://127.0.0.1/any"), "postgresql"),
    ):
        done = _run([command, *words], cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert f"pip install 'socratic-ai-bench[{extra}]'" in done.stderr


def test_the_root_of_the_repository_says_that_it_is_no_distribution(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-index"]
    done = _run([*pip, "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)])
    assert done.returncode
    said = done.stdout + done.stderr
    assert "pip install ./shared" in said
    assert "Traceback" not in said
