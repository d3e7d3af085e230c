"""A container engine with Compose: one that answers, or a private one of an installed dockerd.

A private engine keeps everything in a temporary folder, publishes on loopback alone and changes no
rule of the firewall: its containers reach each other and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.discovery import NotHere

START_SECONDS = 60.0
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Engine:
    """An engine that answers, and how its programs reach it."""

    environment: dict[str, str]
    is_private: bool
    """Whether its images belong to the tests: then only they see new ones."""

    def run(self, *words: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


@contextmanager
def engine(folder: Path) -> Iterator[Engine]:
    """An engine for the tests; Compose's plug-in is linked into `folder` where Docker has none.

    Raises NotHere with the reason.
    """
    if shutil.which("docker") is None:
        raise NotHere("there is no docker command")
    found = Engine(dict(os.environ), is_private=False)
    if found.run("version", seconds=30).returncode == 0:
        yield _with_compose(found, folder)
        return
    with _private_engine() as started:
        yield _with_compose(started, folder)


@contextmanager
def _private_engine() -> Iterator[Engine]:
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None or sys.platform != "linux" or os.geteuid() != 0:
        raise NotHere("no engine answers, and only root on Linux can start an installed dockerd")
    # Short, as the path of a socket has to be; not in memory, as temporary folders of tests may be.
    home = Path(tempfile.mkdtemp(prefix="sb-engine-", dir="/var/tmp"))
    socket = home / "engine.sock"
    words = [
        program,
        *("--host", f"unix://{socket}", "--pidfile", str(home / "pid")),
        *("--data-root", str(home / "data"), "--exec-root", str(home / "exec")),
        *("--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip", "127.0.0.1"),
    ]
    log = home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)
    try:
        started = Engine({**os.environ, "DOCKER_HOST": f"unix://{socket}"}, is_private=True)
        _wait_until_it_answers(started, process, log)
        yield started
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        subprocess.run(["umount", home / "exec/netns/default"], capture_output=True, check=False)
        shutil.rmtree(home, ignore_errors=True)


def _wait_until_it_answers(engine: Engine, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while engine.run("version").returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise NotHere(f"dockerd did not start: {log.read_text()[-500:]}")
        time.sleep(0.1)


def _with_compose(engine: Engine, folder: Path) -> Engine:
    if engine.run("compose", "version").returncode == 0:
        return engine
    program = Path(sys.executable).parent / "docker-compose"
    if not program.exists():
        raise NotHere("docker has no Compose, and docker-compose is not installed beside Python")
    plugins = folder / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-compose").symlink_to(program)
    return Engine({**engine.environment, "DOCKER_CONFIG": str(folder)}, engine.is_private)
