"""`python -m socratic_api.static_site FOLDER`: the dashboard as files for any web server."""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from socratic_api.pages import DOCUMENT, ReadPage, read_pages, render

FRONT: Final = "index.html"
CONFIG: Final = "assets/config.js"
"""The file that names the API's address."""

_CHARSET: Final = '<meta charset="utf-8" />'
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'{api}; base-uri 'none'; form-action 'none'"
)


def site_files(*, api: str = "") -> dict[str, bytes]:
    """Return the files of the dashboard by their paths; none where no pages are built.

    `api` is the address of the API, such as `https://api.example.org`; empty where pages and API
    share one name. Each page holds its content security policy, since a bucket sends no header.
    """
    static = files("socratic_api") / "static"
    pages = read_pages(static)
    if not pages:
        return {}
    document = (static / DOCUMENT).read_text(encoding="utf-8")
    document = document.replace(_CHARSET, f"{_CHARSET}\n    {_policy(api)}", 1)
    site = {page.path.lstrip("/"): render(document, page, pages).encode() for page in pages}
    site[FRONT] = next(iter(site.values()))
    site |= {f"assets/{each.name}": each.read_bytes() for each in (static / "assets").iterdir()}
    for page in pages:
        site |= _files_of(page)
    if api:
        site |= {path: _of_the_api(site[path], api) for path in site if path.endswith(".html")}
        site[CONFIG] = f"export const api = {json.dumps(api.rstrip('/'))};\n".encode()
    return site


def _files_of(page: ReadPage) -> dict[str, bytes]:
    return {f"assets/{page.name}/{file.name}": file.read_bytes() for file in page.files}


def _of_the_api(page: bytes, api: str) -> bytes:
    """Return a page whose links to the API, which start at a root, lead to the API's address."""
    return page.replace(b'href="/', f'href="{escape(api.rstrip("/"))}/'.encode())


def _policy(api: str) -> str:
    policy = _POLICY.format(api=f" {api.rstrip('/')}/" if api else "")
    return f'<meta http-equiv="content-security-policy" content="{escape(policy)}" />'


def main() -> int:
    """Write the files; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m socratic_api.static_site",
        description="Write the dashboard as files for a bucket or a web server.",
    )
    parser.add_argument("folder", type=Path, help="the folder to write into")
    parser.add_argument(
        "--api",
        default="",
        type=_address,
        metavar="URL",
        help="the API's address, where it differs from the pages'",
    )
    given = parser.parse_args()
    site = site_files(api=given.api)
    if not site:
        sys.stderr.write("The pages are not built: run `make dashboard`, then try again.\n")
        return 1
    for path, content in site.items():
        file = given.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    sys.stderr.write(f"Wrote {len(site)} files to {given.folder}.\n")
    return 0


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text!r} is no address such as https://api.example.org")
    if set(text) & set(" ;,'\""):
        raise argparse.ArgumentTypeError(f"{text!r} holds a character that no address may hold")
    return text


if __name__ == "__main__":
    sys.exit(main())
