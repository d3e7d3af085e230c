"""The base images of the project: those of the engine, of a registry, or stand-ins made here.

Stand-ins are made in a private engine alone, since they take the names of published images. They
are Debian's packages on a system that debootstrap makes from the mirror of this machine's apt.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from tests.containers.engine import Engine
from tests.servers.discovery import NotHere

ROOT = Path(__file__).parents[2]
IMAGES = Path(__file__).parent / "images"
DEBIAN = "localhost/socratic-bench-debian"
PULL_SECONDS = 300
MAKE_SECONDS = 600


def provide_base_images(engine: Engine) -> None:
    """Make sure that the engine has every base image. Raises NotHere with the reason."""
    absent = [image for image in base_images() if engine.run("image", "inspect", image).returncode]
    missing = [image for image in absent if not _pulled(engine, image)]
    if not missing:
        return
    if not engine.is_private:
        raise NotHere(f"the engine has no image {missing[0]} and cannot pull it")
    _make_debian(engine)
    for image in missing:
        _make(engine, image)


def base_images() -> list[str]:
    """Return the images of the servers that always start, and those that the services build on."""
    services = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"]
    servers = {
        service["image"]
        for service in services.values()
        if "build" not in service and "profiles" not in service
    }
    dockerfile = (ROOT / "services/Dockerfile").read_text()
    return sorted(servers | set(re.findall(r"^FROM (\S+:\S+)", dockerfile, re.MULTILINE)))


def _pulled(engine: Engine, image: str) -> bool:
    try:
        return engine.run("pull", "--quiet", image, seconds=PULL_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _make_debian(engine: Engine) -> None:
    program = shutil.which("debootstrap", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        raise NotHere("no registry answers, and there is no debootstrap to make stand-ins with")
    mirror, release = _mirror()
    with TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder) / "root"
        _done([program, "--variant=minbase", release, str(root), mirror])
        packed = Path(folder) / "root.tar"
        _done(["tar", "--create", "--file", str(packed), "--directory", str(root), "."])
        _checked(engine, "import", str(packed), DEBIAN)


def _mirror() -> tuple[str, str]:
    """Where this machine's apt gets its packages from, and the release."""
    try:
        release = re.search(
            r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE
        )
        listed = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotHere(f"no registry answers, and apt names no mirror: {error}") from error
    for line in listed.splitlines():
        match line.split():
            case [mirror, name, "main"] if release is not None and name == release[1]:
                return mirror, name
    raise NotHere("no registry answers, and apt names no mirror of this machine's release")


def _make(engine: Engine, image: str) -> None:
    name = image.partition(":")[0]
    assert (IMAGES / f"{name}.Dockerfile").exists(), f"nothing here makes a stand-in of {image}"
    with TemporaryDirectory(dir="/var/tmp") as folder:
        context = Path(folder) / "context"
        shutil.copytree(IMAGES, context)
        if name == "python":
            _download_wheels(context / "wheels")
        dockerfile = str(context / f"{name}.Dockerfile")
        _checked(
            engine, "build", "--network=host", "--file", dockerfile, "--tag", image, str(context)
        )


def _download_wheels(folder: Path) -> None:
    # For Debian's Python: its version is the oldest that the project supports.
    chosen = ["--require-hashes", "--only-binary=:all:", "--python-version=3.11"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # The emulator pins versions of its own.
    for lock in ("constraints.txt", "deploy/emulator/requirements.txt"):
        _done([*pip, "download", *chosen, "--requirement", str(ROOT / lock), "--dest", str(folder)])


def _done(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=MAKE_SECONDS, check=False)
    if done.returncode:
        raise NotHere(f"{Path(words[0]).name} failed: {(done.stdout + done.stderr)[-500:]}")


def _checked(engine: Engine, *words: str) -> None:
    done = engine.run(*words, seconds=MAKE_SECONDS)
    if done.returncode:
        raise NotHere(f"docker {words[0]} failed: {(done.stdout + done.stderr)[-500:]}")
