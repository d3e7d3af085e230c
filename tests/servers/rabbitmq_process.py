"""A RabbitMQ server of our own, as a private process that can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from uuid import uuid4

from tests.servers.discovery import NotHere
from tests.waiting import PATIENCE

_FOLDER = "SOCRATIC_TEST_RABBITMQ_FOLDER"
"""The variable with a folder of a server's programs, for another version than the installed one."""

_FOLDERS = ("/usr/lib/rabbitmq/bin", "/opt/homebrew/sbin", "/usr/local/sbin")


class RabbitMQProcess:
    """A server in a folder, on a port of its own. Its data outlives its process."""

    def __init__(self, folder: Path) -> None:
        """Raises NotHere where no server is installed."""
        self._program = _program()
        self._folder = folder
        self._port = _free_port()
        self._node = f"socratic-{uuid4().hex[:8]}@localhost"
        self._distribution_port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}/"

    def start(self) -> None:
        """Start it; returns at once. Raises NotHere."""
        configuration = self._folder / "rabbitmq.conf"
        configuration.write_text(
            f"listeners.tcp.local = 127.0.0.1:{self._port}\n"
            f"distribution.listener.interface = 127.0.0.1\n"
            f"disk_free_limit.absolute = 50MB\n"
        )
        plugins = self._folder / "enabled_plugins"
        plugins.write_text("[].")
        environment = {
            **os.environ,
            "HOME": str(self._folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_CONFIG_FILE": str(configuration),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
        }
        try:
            self._process = subprocess.Popen(
                [self._program],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise NotHere(f"{self._program} failed: {error}") from error

    def evaluate(self, code: str) -> str:
        """Have the server evaluate Erlang code, and return the result. Blocks."""
        return self.control("eval", code)

    def control(self, *words: str) -> str:
        """Have `rabbitmqctl` carry out a command, and return its output. Blocks."""
        return subprocess.run(
            [self._program.with_name("rabbitmqctl"), "-n", self._node, *words],
            env={**os.environ, "HOME": str(self._folder), "ERL_EPMD_ADDRESS": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        ).stdout

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def discard(self) -> None:
        """End it, and lose all that it kept, as with the disk."""
        self.kill()
        shutil.rmtree(self._folder / "data")

    def stop(self) -> None:
        """Have it shut down."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.killpg(process.pid, how)
        try:
            process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=10)


def _program() -> Path:
    # Debian's rabbitmq-server on the PATH changes to a user of its own; what it calls does not.
    for folder in filter(None, (os.environ.get(_FOLDER), *_FOLDERS)):
        if (program := Path(folder) / "rabbitmq-server").exists():
            return program
    if on_path := shutil.which("rabbitmq-server"):
        return Path(on_path)
    raise NotHere("no rabbitmq-server is installed")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
