"""A real ZooKeeper for tests: one server on loopback, which can be killed, paused, and started again on its data."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.hadoop import toolchain

TICK_MS = 100
"""Sessions may be as short as 2 ticks, and expire at a tick."""
START_S = 60
CONFIGURATION = """\
tickTime={tick}
dataDir={data}
clientPortAddress=127.0.0.1
clientPort={port}
maxSessionTimeout=60000
admin.enableServer=false
4lw.commands.whitelist=ruok
maxClientCnxns=0
"""


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


class ZooKeeperServer:
    """A server with its data in `directory`. `start` returns once it answers."""

    def __init__(self, jars: Path, directory: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._jars = jars
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        text = CONFIGURATION.format(tick=TICK_MS, data=directory / "data", port=self.port)
        (directory / "zoo.cfg").write_text(text)

    def start(self) -> None:
        """Start, on the data of an earlier start if there was one."""
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = toolchain.command(f"{self._jars}/*", main, self._directory / "zoo.cfg", flags=("-Xmx128m",))
        with (self._directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while not self._is_ok():
            assert self._process.poll() is None, (self._directory / "server.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "ZooKeeper does not answer"
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it, as by a crash; killing twice is a no-op."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop the process until `resume`: connections stay, and nothing is answered."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def _is_ok(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"
        return False
