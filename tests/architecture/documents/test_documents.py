"""The documents list every command, setting, metric and address that the code has."""

import re
from pathlib import Path

import click
import pytest
from starlette.routing import Route

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench import score
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Limits, Manifest, Parameters, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import FailureKind
from socratic_bench.providers.built_in import (
    AnthropicOptions,
    BedrockOptions,
    LocalOptions,
    OpenAIOptions,
    ReferenceOptions,
)
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import Profile
from socratic_cli.cli import socratic_bench
from socratic_runner.conversations.call_outcomes import BUSY, PASSING, UNUSABLE

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
DOCS = ROOT / "docs"
COMMANDS = (DOCS / "commands.md").read_text()

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]

LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#]+)")
CODE = re.compile(r"`([\w.*-]+(?:/[\w.*-]+)*(?:/|\.(?:py|md|toml|txt|sh|yaml)))`")
NEW = re.compile(r"`[^`]+`,? new\b")
"""A file that somebody who follows a how-to makes: `path` new."""
REPOSITORY_PATH = re.compile(r"(?<![\w./-])((?:services|shared|deploy|tests|\.ci)/[\w./*-]*[\w/*])")


def commands() -> list[tuple[str, click.Command | None]]:
    context = click.Context(socratic_bench)
    names = socratic_bench.list_commands(context)
    return [(name, socratic_bench.get_command(context, name)) for name in names]


def is_named(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


@pytest.mark.parametrize(("name", "command"), commands())
def test_the_page_of_commands_names_every_command_with_its_options(name, command):
    lines = [line for line in COMMANDS.splitlines() if is_named(f"socratic-bench {name}", line)]
    assert lines
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert is_named(max(option.opts, key=len), "\n".join(lines))


def test_a_newcomer_reads_the_readme_in_some_minutes():
    assert len(README.split()) <= 1500


def test_the_contributors_page_names_every_make_target_that_has_a_description():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets
    assert [target for target in targets if not is_named(f"make {target}", page)] == []


OPTIONS = [OpenAIOptions, AnthropicOptions, BedrockOptions, LocalOptions, ReferenceOptions]


@pytest.mark.parametrize(
    "model", [Manifest, TutorModel, Limits, Parameters, Price, Scenario, *OPTIONS]
)
def test_the_page_of_the_configuration_names_every_field(model):
    page = (DOCS / "configuration.md").read_text()
    assert [name for name in model.model_fields if f"`{name}`" not in page] == []


def test_the_page_of_the_api_names_every_address_and_no_other(tmp_path):
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/empty.db")
    app = build_app(store, ApiSettings())
    described = {
        f"{method} {route.path}"
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    listed = re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert set(listed) == described


@pytest.mark.parametrize("status", Status)
def test_the_glossary_explains_every_status(status):
    assert f"- `{status}`: " in (ROOT / "GLOSSARY.md").read_text()


def test_the_page_of_models_has_every_class_of_failure_in_the_row_of_its_consequences():
    table = (DOCS / "models.md").read_text().partition("\n## Failures\n")[2].partition("\n- ")[0]
    rows = [set(re.findall(r"`(\w+)`", line)) for line in table.splitlines()]
    others = set(FailureKind) - PASSING - UNUSABLE
    assert [row for row in rows if row] == [set(BUSY), set(PASSING - BUSY), others, set(UNUSABLE)]


def test_each_place_of_the_architecture_page_defines_the_name_beside_it():
    section = (DOCS / "architecture.md").read_text().partition("\n## Where is …?\n")[2]
    rows = [line for line in section.splitlines() if "? | `" in line]
    places = re.findall(r"\| `([^`]+)` \| `(?:\w+\.)?(\w+)` \|$", section, re.MULTILINE)
    assert len(places) == len(rows) > 0
    defined = r"^(?:\s*(?:async )?(?:def|class) )?{}\b"
    lost = [
        (path, name)
        for path, name in places
        if not re.search(defined.format(name), (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert lost == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_document_names_a_file_or_folder_that_is_not_there(document):
    text = NEW.sub("", document.read_text())
    linked = {path for path in LINK.findall(text) if not (document.parent / path).exists()}
    named = {path for pattern in (CODE, REPOSITORY_PATH) for path in pattern.findall(text)}
    assert linked == set()
    assert sorted(path for path in named if not list(ROOT.glob(path))) == []


def test_the_list_of_how_tos_names_each_one():
    folder = DOCS / "how-to"
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text())
    assert sorted([*listed, "README.md"]) == sorted(path.name for path in folder.glob("*.md"))


def test_the_profile_that_weighs_a_dimension_does_as_its_how_to_says():
    text = (DOCS / "how-to" / "weight-a-dimension.md").read_text()
    [snippet] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, type[Profile]] = {}
    exec(snippet, names)
    profile = names["AskingV1"]()
    told = "You should rest."  # verbosity 1 (no tokens counted), the others 0
    weighed = score(told, output_tokens=0, dimension="ethical", profile=profile, raw=False)
    plain = score(told, output_tokens=0, dimension="student", profile=profile, raw=False)
    assert (weighed.overall, plain.overall) == (1 / 4, 1 / 3)
