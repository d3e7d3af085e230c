"""Builds the layer and the package of each function.

    python -m socratic_aws.packaging.build --architecture arm64 --into build/aws

The folder gets a zip file for each, and `packages.json`, which the stacks read. The runtime is that
of the Python that builds, which compiles for no other one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from socratic_aws.packaging.archive import write_zip
from socratic_aws.packaging.libraries import compile_all, cut, install, needs_of
from socratic_aws.packaging.targets import Architecture, Target

ROOT: Final = Path(__file__).parents[4]
LOCK: Final = ROOT / "constraints.txt"
LAYER: Final = "layer"
SERVICES: Final = ("runner", "judge", "curator", "api")

LAYER_AT: Final = "/opt/python"
FUNCTION_AT: Final = "/var/task"

MOST_ZIPPED: Final = 20_000_000
"""Bytes; AWS takes 50 MB of a package that is uploaded as a whole."""

MOST_UNZIPPED: Final = 80_000_000
"""Bytes of a function with its layer; AWS takes 250 MB."""


@dataclass(frozen=True, slots=True)
class Package:
    """One zip file."""

    file: str
    sha256: str
    zipped: int
    unzipped: int


def build(target: Target, into: Path) -> Mapping[str, Package]:
    """Build all packages into the folder; returns them by name.

    Raises SystemExit if one is too large.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    packages = {LAYER: _layer(target, into)}
    for service in SERVICES:
        packages[service] = _function(service, into)
    _check_sizes(packages)
    listed = {
        "release": release_of(packages),
        "runtime": f"python{target.python}",
        "architecture": target.architecture,
        "packages": {name: asdict(package) for name, package in packages.items()},
    }
    (into / "packages.json").write_text(json.dumps(listed, indent=2) + "\n")
    return packages


def release_of(packages: Mapping[str, Package]) -> str:
    """Return the name of what these packages deploy: equal names are equal bytes."""
    version: dict[str, str] = {}
    exec((ROOT / "shared/socratic_bench/version.py").read_text(), version)  # noqa: S102 - our own
    digests = "".join(packages[name].sha256 for name in sorted(packages))
    return f"{version['__version__']}-{hashlib.sha256(digests.encode()).hexdigest()[:10]}"


def _layer(target: Target, into: Path) -> Package:
    with tempfile.TemporaryDirectory(prefix="socratic-layer-") as temporary:
        folder = Path(temporary)
        python = folder / "python"
        needs = {each for name in SERVICES for each in needs_of(ROOT, f"services/{name}", "aws")}
        install(sorted(needs), LOCK, target, python)
        cut(python)
        _copy(ROOT / "shared" / "socratic_bench", python)
        # The contract suites need pytest.
        shutil.rmtree(python / "socratic_bench" / "testing")
        compile_all(python, LAYER_AT)
        return _packed(folder, into / f"{LAYER}.zip")


def _function(service: str, into: Path) -> Package:
    with tempfile.TemporaryDirectory(prefix=f"socratic-{service}-") as temporary:
        folder = Path(temporary)
        _copy(ROOT / "services" / service / f"socratic_{service}", folder)
        compile_all(folder, FUNCTION_AT)
        return _packed(folder, into / f"{service}.zip")


def _copy(package: Path, into: Path) -> None:
    left_out = shutil.ignore_patterns("__pycache__", "*.map", "py.typed", ".*")
    shutil.copytree(package, into / package.name, ignore=left_out)


def _packed(folder: Path, archive: Path) -> Package:
    unzipped = write_zip(folder, archive)
    content = archive.read_bytes()
    return Package(archive.name, hashlib.sha256(content).hexdigest(), len(content), unzipped)


def _check_sizes(packages: Mapping[str, Package]) -> None:
    layer = packages[LAYER]
    for name, package in packages.items():
        unzipped = package.unzipped + (0 if package is layer else layer.unzipped)
        if package.zipped > MOST_ZIPPED or unzipped > MOST_UNZIPPED:
            sys.exit(
                f"The package {name} is too large: {_megabytes(package.zipped)} zipped, "
                f"{_megabytes(unzipped)} unzipped with its layer; at most "
                f"{_megabytes(MOST_ZIPPED)} and {_megabytes(MOST_UNZIPPED)} start fast enough."
            )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the packages, and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--architecture", type=Architecture, choices=list(Architecture), default=Architecture.ARM
    )
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "aws")
    given = parser.parse_args(arguments)
    packages = build(Target.of_this_python(given.architecture), given.into)
    for name, package in packages.items():
        sizes = f"{_megabytes(package.zipped):>9} zipped {_megabytes(package.unzipped):>9} unzipped"
        sys.stdout.write(f"{name:8} {sizes}  {package.sha256[:12]}\n")
    sys.stdout.write(f"release  {release_of(packages)}\n")


if __name__ == "__main__":
    main()
