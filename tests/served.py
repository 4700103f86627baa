"""Servers for the tests: one in this process, and one of its own process that is ended by signals. Their
limits of time are so long that a busy machine keeps them, unless a test is about a limit."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from limited import PATIENT, places

from lighttail.live import Office
from lighttail.live.journal import Journal
from lighttail.live.memory import MemoryJournal
from lighttail.server import build_app
from lighttail.server.keys import Keys

JSON = {"Content-Type": "application/json"}
FIRST = {"name": "one", "policy": "ts:0.5", "arms": ["A", "B"], "seed": 3}
FIELDS = {"field", "value", "allowed", "message"}
LIMITED = Path(__file__).with_name("limited.py")
FOREVER = 600.0  # seconds after which a test gives up


class Client:
    """Calls a server in this process, whose event loop runs in a thread of its own."""

    def __init__(self, app: Any, at: str) -> None:
        self.app, self._loop = app, asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        # The server must answer its own mistakes: an exception would reach nobody over a network.
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url=at)
        self._life = app.router.lifespan_context(app)
        self._wait(self._life.__aenter__())

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(FOREVER)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        found: httpx.Response = self._wait(self._client.request(method, path, **more))
        return found

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def close(self) -> None:
        self._wait(self._client.aclose())
        self._wait(self._life.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def client_of(
    journal: Journal | None = None, keys: Keys | None = None, clock: Any = time.time, at: str = "localhost"
) -> Iterator[Client]:
    """A client of a server in this process."""
    office = Office(MemoryJournal() if journal is None else journal, clock)
    with pytest.MonkeyPatch.context() as patched:
        for place in places(PATIENT):
            patched.setattr(*place)
        client = Client(build_app(office, keys), f"http://{at}")
        try:
            yield client
        finally:
            client.close()
            office.close()


def refusal(answer: Any, status: int, field: str | None = None) -> dict[str, Any]:
    """The four fields of a refusal, which must have this status."""
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == FIELDS
    assert error["message"]
    if field is not None:
        assert error["field"] == field, error
    return error


def heard(link: socket.socket, enough: Callable[[bytes], bool] = lambda found: False) -> bytes:
    """What comes until it is enough, or the other side closes the connection."""
    found = b""
    with suppress(ConnectionError):
        while not enough(found) and (more := link.recv(65536)):
            found += more
    return found


def is_whole(found: bytes) -> bool:
    """Whether an answer has come with all of its body."""
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    return length is not None and len(body) >= int(length[1])


@contextmanager
def kept_port() -> Iterator[int]:
    """A port where nobody listens, and that nobody gets by chance: only a server that asks for it."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]


class Server:
    """A server in a process of its own. limits: its limits of time, besides those of `limited.PATIENT`; None
    for the command as people start it."""

    def __init__(
        self,
        *options: str,
        store: str | Path = "memory",
        port: int = 0,
        limits: dict[str, float] | None = PATIENT,
    ) -> None:
        words = [sys.executable, "-m", "lighttail.cli"]
        if limits is not None:
            words = [sys.executable, "-P", str(LIMITED), json.dumps(PATIENT | limits)]
        words += ["serve", "--store", str(store), "--port", str(port)]
        self.process = subprocess.Popen(
            [*words, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        assert self.process.stdout is not None
        self.said: list[str] = []
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if "/docs" in line:
                break
        self.port = (
            int(self.said[0].partition("http://")[2].split()[0].rpartition(":")[2]) if self.said else 0
        )

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """The status, the value and the headers of an answer."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=FOREVER)
        sent = None if body is None else json.dumps(body)
        link.request(method, path, sent, (JSON if method == "POST" else {}) | (headers or {}))
        answer = link.getresponse()
        text = answer.read().decode()
        kind = answer.headers.get("content-type", "")
        link.close()
        found = json.loads(text) if kind == "application/json" else text
        return answer.status, found, {name.lower(): value for name, value in answer.headers.items()}

    def post(self, path: str, body: Any = None) -> Any:
        """The value of an answer, which must be a good one."""
        status, found, _ = self.call("POST", f"/v1/experiments{path}", {} if body is None else body)
        assert status in (200, 201), found
        return found

    def raw(self, *parts: bytes, pause: float = 0.0, ended: bool = True) -> bytes:
        """What comes back until the server closes the connection. ended: close our side of it when all is
        sent; otherwise when one whole answer has come, because the server answers no request that is not
        complete when the client has closed its side."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=FOREVER) as link:
            with suppress(OSError):  # the server has closed the connection; what it has said is still there
                for part in parts:
                    link.sendall(part)
                    time.sleep(pause)
            found = b"" if ended else heard(link, is_whole)
            with suppress(OSError):
                link.shutdown(socket.SHUT_WR)
            return found + heard(link)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; the exit status, and what was said on the standard error."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=FOREVER)
        return self.process.returncode, said


@contextmanager
def served(*options: str, **named: Any) -> Iterator[Server]:
    """A server that is killed at the end, if it is still there."""
    server = Server(*options, **named)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()
