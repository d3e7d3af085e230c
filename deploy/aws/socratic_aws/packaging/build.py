"""Builds the layer and the package of each function.

    python -m socratic_aws.packaging.build --architecture arm64 --into build/aws

The folder gets a zip file for each, and `packages.json`, which the stacks read. The runtime is that
of the Python that builds, which compiles for no other one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""

_REGULAR_FILE: Final = 0o100644 << 16


def write_zip(folder: Path, archive: Path) -> int:
    """Write the files below `folder` to `archive`; returns their bytes when unzipped."""
    unzipped = 0
    with zipfile.ZipFile(archive, "w") as written:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _TIME)
            entry.external_attr = _REGULAR_FILE
            content = file.read_bytes()
            written.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
            unzipped += len(content)
    return unzipped


RUNTIMES: Final = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that AWS runs and that this project supports."""


class Architecture(StrEnum):
    """A processor, by the name that AWS gives it."""

    ARM = "arm64"
    X86 = "x86_64"


@dataclass(frozen=True, slots=True)
class PackageTarget:
    """What a package is built for."""

    architecture: Architecture
    python: str
    """The version with its minor number alone, such as 3.12."""

    @classmethod
    def of_this_python(cls, architecture: Architecture) -> PackageTarget:
        """Return the target that this interpreter can compile for. Raises SystemExit."""
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        if python not in RUNTIMES:
            sys.exit(f"AWS has no runtime of Python {python}; build with one of {RUNTIMES}.")
        return cls(architecture, python)

    def platforms(self) -> tuple[str, ...]:
        """Return the platforms of wheels that run there, in pip's words."""
        machine = "aarch64" if self.architecture is Architecture.ARM else "x86_64"
        return (
            f"manylinux2014_{machine}",
            f"manylinux_2_17_{machine}",
            f"manylinux_2_28_{machine}",
        )


AWS_SERVICES: Final = (
    "bedrock-runtime",
    "dynamodb",
    "s3",
    "secretsmanager",
    "sns",
    "sqs",
    "ssm",
    "sts",
)
"""The services whose descriptions botocore keeps; those of all services have 27 MB."""

_NOT_USED: Final = ("examples-1.json", "RECORD", "*.pyi", "*.pyx", "*.pxd", "*.c", "*.h")


def needs_of(root: Path, distribution: str, *extras: str) -> set[str]:
    """Return the libraries that a distribution of ours needs with these extras."""
    project = tomllib.loads((root / distribution / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    found = set()
    for need in (*project["dependencies"], *(each for extra in extras for each in optional[extra])):
        if core := re.fullmatch(r"socratic-ai-bench-core\[([^]]+)\](==.*)?", need):
            found |= needs_of(root, "shared", *core[1].split(","))
        else:
            found.add(need)
    return found


def install(needs: Sequence[str], lock: Path, target: PackageTarget, folder: Path) -> None:
    """Install wheels of the lock file into `folder`, those that the needs lead to.

    pip checks hashes for a whole lock file alone: it fetches all wheels, then installs from them,
    where no setting of this machine names other wheels. Raises CalledProcessError.
    """
    with tempfile.TemporaryDirectory(prefix="socratic-wheels-") as wheels:
        _pip("download", target, "--require-hashes", "--no-deps", "--dest", wheels, "-r", lock)
        source = ("--isolated", "--no-index", "--find-links", wheels)
        into = ("--no-compile", "--target", folder)
        _pip("install", target, *source, *into, *needs, PIP_CONFIG_FILE=os.devnull)
    shutil.rmtree(folder / "bin", ignore_errors=True)


def _pip(command: str, target: PackageTarget, *words: str | Path, **variables: str) -> None:
    platforms = [word for each in target.platforms() for word in ("--platform", each)]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", command, "--quiet"),
            *("--only-binary", ":all:", "--implementation", "cp"),
            *("--python-version", target.python, *platforms, *words),
        ],
        env={**os.environ, **variables},
        check=True,
    )


def cut(folder: Path) -> None:
    """Remove what no function reads: tests, sources of extensions, descriptions of services."""
    for pattern in _NOT_USED:
        for file in folder.rglob(pattern):
            file.unlink()
    for tests in [*folder.glob("*/tests"), *folder.glob("*/test")]:
        shutil.rmtree(tests)
    descriptions = folder / "botocore" / "data"
    for service in descriptions.iterdir():
        if service.is_dir() and service.name not in AWS_SERVICES:
            shutil.rmtree(service)
    _cut_endpoints(descriptions / "endpoints.json")


def _cut_endpoints(file: Path) -> None:
    """Keep the endpoints of the services of AWS_SERVICES: every first client parses the file."""
    endpoints = json.loads(file.read_text())
    for partition in endpoints["partitions"]:
        kept = set(AWS_SERVICES) & partition["services"].keys()
        partition["services"] = {name: partition["services"][name] for name in sorted(kept)}
    file.write_text(json.dumps(endpoints, separators=(",", ":")))


def compile_all(folder: Path, installed_at: str) -> None:
    """Write the bytecode of all modules below `folder`, whose path in a function is `installed_at`.

    A function cannot write it, and compiling at a cold start doubles its time. Fixed seed and
    order give the same bytes each time; the bytecode is not compared with its source, since the
    times of files in a package say nothing. Raises CalledProcessError.
    """
    subprocess.run(
        [
            *(sys.executable, "-m", "compileall", "-q", "-j", "1"),
            *("--invalidation-mode", "unchecked-hash", "-s", folder, "-p", installed_at, folder),
        ],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
    )


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


def build(target: PackageTarget, into: Path) -> Mapping[str, Package]:
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


def _layer(target: PackageTarget, into: Path) -> Package:
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
    packages = build(PackageTarget.of_this_python(given.architecture), given.into)
    for name, package in packages.items():
        sizes = f"{_megabytes(package.zipped):>9} zipped {_megabytes(package.unzipped):>9} unzipped"
        sys.stdout.write(f"{name:8} {sizes}  {package.sha256[:12]}\n")
    sys.stdout.write(f"release  {release_of(packages)}\n")


if __name__ == "__main__":
    main()
