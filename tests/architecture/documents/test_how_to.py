"""The how-tos: each lists exactly the files that one touches, and the files are there."""

import re
from pathlib import Path

import pytest

from socratic_bench import score
from socratic_bench.scoring.profile import Profile

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "how-to"
HOW_TOS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")

FILES = re.compile(r"^## Files\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BULLET = re.compile(r"^- `([^`]+)`(,? new\b)?", re.MULTILINE)


def files_of(how_to: Path) -> list[tuple[str, bool]]:
    """The listed files in their order, each with whether it is marked `new`."""
    section = FILES.search(how_to.read_text())
    assert section, f"{how_to.name} has no heading '## Files'"
    return [(path, bool(new)) for path, new in BULLET.findall(section[1])]


@pytest.mark.parametrize("how_to", HOW_TOS, ids=lambda path: path.stem)
def test_a_how_to_lists_files_that_exist(how_to):
    files = files_of(how_to)
    assert files
    assert [path for path, new in files if not new and not (ROOT / path).exists()] == []


@pytest.mark.parametrize("how_to", HOW_TOS, ids=lambda path: path.stem)
def test_a_new_file_is_not_there_yet_but_its_folder_or_the_one_above_is(how_to):
    files = files_of(how_to)
    new = [path for path, is_new in files if is_new]
    homes = [(ROOT / path).parent for path in new]
    assert [home for home in homes if not (home.is_dir() or home.parent.is_dir())] == []
    assert [path for path in new if (ROOT / path).exists()] == []


@pytest.mark.parametrize("how_to", HOW_TOS, ids=lambda path: path.stem)
def test_every_bullet_of_the_files_begins_with_a_path(how_to):
    section = FILES.search(how_to.read_text())
    assert section
    bullets = [line for line in section[1].splitlines() if line.startswith("- ")]
    assert len(bullets) == len(files_of(how_to))


def test_the_list_of_how_tos_names_each_one():
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == [path.name for path in HOW_TOS]


def test_the_profile_that_weighs_a_dimension_does_as_its_how_to_says():
    text = (FOLDER / "weight-a-dimension.md").read_text()
    [snippet] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, type[Profile]] = {}
    exec(snippet, names)
    profile = names["AskingV1"]()
    told = "You should rest."  # verbosity 1 (no tokens counted), the others 0
    weighed = score(told, output_tokens=0, dimension="ethical", profile=profile)
    plain = score(told, output_tokens=0, dimension="student", profile=profile)
    assert (weighed.overall, plain.overall) == (1 / 4, 1 / 3)
