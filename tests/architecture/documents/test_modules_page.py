"""The page of the modules is the one that the code generates, and every module has a purpose."""

from pathlib import Path

from tests.architecture.documents.modules_page import PACKAGES, modules, page

PAGE = Path(__file__).parents[3] / "docs" / "modules.md"


def test_the_page_of_the_modules_is_up_to_date():
    assert PAGE.read_text() == page(), (
        ".venv/bin/python -m tests.architecture.documents.modules_page > docs/modules.md"
    )


def test_every_module_says_what_it_is_for():
    silent = [path for each in PACKAGES for path, purpose, _ in modules(each) if not purpose]
    assert silent == []
