"""A PostgreSQL server of our own, as a private process that can be killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.servers.discovery import NotHere

PATIENCE = 60.0
"""Seconds within which a program of the server has done its work."""


class PostgreSQLProcess:
    """A server in a folder, on a port of its own. Its data outlives its process."""

    def __init__(self, folder: Path, *, standby_of: str | None = None) -> None:
        """With `standby_of`, it follows the server at that address until it is promoted.

        Raises NotHere where no server is installed, or it may not run as this user.
        """
        self._programs = _programs()
        self._folder = folder
        self._run_as = _server_user()
        self.give(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        if standby_of is None:
            access = ("--username=postgres", "--auth=trust", "--encoding=UTF8")
            self._run("initdb", *access, "--no-sync")
        else:
            copy = ("--dbname", standby_of, "--write-recovery-conf", "--checkpoint=fast")
            self._run("pg_basebackup", *copy, "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    def give(self, folder: Path) -> None:
        """Let the server have a folder."""
        if self._run_as:
            os.chown(folder, self._run_as["user"], self._run_as["group"])

    def start(self) -> None:
        """Start it, and wait until it is up. Raises NotHere."""
        # It need not outlive the machine, only its own process.
        settings = (
            f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= "
            "-c fsync=off"
        )
        log = str(self._folder / "log")
        self._run("pg_ctl", "start", "--wait", "--log", log, "--options", settings)

    def kill(self) -> None:
        """End it as a crash does: without a checkpoint, so that it recovers when it starts."""
        self._run("pg_ctl", "stop", "--wait", "--mode=immediate")

    def promote(self) -> None:
        """Have a standby be the primary from now on."""
        self._run("pg_ctl", "promote", "--wait")

    def _run(self, program: str, *arguments: str) -> None:
        try:
            subprocess.run(
                [self._programs / program, "-D", self._folder / "data", *arguments],
                cwd=self._folder,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # no pipe: the server would keep it open
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
                **self._run_as,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NotHere(f"{program} failed: {error}") from error


def _programs() -> Path:
    """The folder of the newest server's programs."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: float(path.parts[-3]),
        reverse=True,
    )
    if on_path := shutil.which("initdb"):
        installed.insert(0, Path(on_path).resolve())
    if not installed:
        raise NotHere("no initdb on the PATH or in /usr/lib/postgresql")
    return installed[0].parent


def _server_user() -> dict[str, Any]:
    """The user for the server, which refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise NotHere("it refuses to run as root, and there is no user postgres or nobody")
