"""Running the server: the address, the signals that end it, and what is said on the screen."""

from __future__ import annotations

import errno
import gc
import importlib.util
import ipaddress
import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from lighttail.checks import refuse, whole
from lighttail.live import Office, open_journal
from lighttail.server.app import made_app
from lighttail.server.keys import Keys
from lighttail.server.metrics import Meter
from lighttail.server.watch import Webhook

Say = Callable[[str], Any]
BACKLOG = 2048  # connections that wait to be taken
LONGEST_GOODBYE = 30  # seconds in which accepted requests are finished
LAST_WORDS = 2  # seconds in which connections are closed after that
SWITCH = 0.0005  # seconds after which a thread that has work gets the processor
YOUNG = 10_000  # new objects after which Python searches for garbage: more than the requests of a commit make
KEEP_ALIVE = 65  # seconds that an idle connection is kept


def run_server(store: str, host: str, port: int, keys: Any, say: Say, webhook: Any = None) -> None:
    """Serve until SIGTERM or Ctrl-C; then finish what was accepted, and return."""
    port = whole("port", port, 0, most=65535)
    guarded = None if keys is None else Keys(keys)
    if guarded is None and not is_loopback(host):
        more = "; `lighttail keys add NAME --role manage --keys FILE` makes a key"
        raise refuse("host", host, "a loopback address such as 127.0.0.1 without --keys", more=more)
    hook = None if webhook is None else Webhook(webhook)
    with listening(host, port) as door:
        office = Office(open_journal(store))
        try:
            at = f"http://{_written(host)}:{door.getsockname()[1]}"
            server = server_of(made_app(office, guarded, [_written(host)], hook))
            with _ended_by_signals(server), quick_switches():
                for line in greeting(at, store, guarded is not None):
                    say(line)
                server.run(sockets=[door])
        finally:
            office.close()
            if hook is not None:
                hook.close()


class PatientServer(uvicorn.Server):
    """A server that answers until it ends: after the first signal it finishes what it has accepted, and
    refuses everything else with 503, on new connections, too. A second signal ends it at once."""

    def __init__(self, config: uvicorn.Config, meter: Meter) -> None:
        super().__init__(config)
        self.meter = meter
        self._since: float | None = None  # when the first signal came

    def handle_exit(self, sig: int, frame: Any) -> None:
        if self._since is not None:
            super().handle_exit(sig, frame)
            return
        self._since = time.monotonic()
        self.meter.ending = True

    async def on_tick(self, counter: int) -> bool:
        if self._since is not None:
            late = time.monotonic() > self._since + LONGEST_GOODBYE
            self.should_exit = self.should_exit or late or self.meter.inside == 0
        return await super().on_tick(counter)


@contextmanager
def quick_switches() -> Iterator[None]:
    """Let threads take turns more often than every 5 ms, as Python does by default: the thread that writes
    to the disk has little to do between two waits, and a commit should not wait for the other threads. What
    was made so far is kept out of the search for garbage, which stops all threads, and the search comes less
    often: with 700 new objects, as in Python by default, several times per commit."""
    before, often = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH)
    gc.set_threshold(YOUNG, *often[1:])
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*often)
        sys.setswitchinterval(before)


def server_of(app: Any) -> uvicorn.Server:
    tools = importlib.util.find_spec("httptools") is not None
    http: Any = "lighttail.server.protocol:PatientProtocol" if tools else "h11"
    config = uvicorn.Config(
        app,
        http=http,
        ws="none",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=LAST_WORDS,
    )
    return PatientServer(config, app.state.meter)


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the server, and not the process: uvicorn sends a signal again when it has
    ended, which would give another exit status than 0."""

    def end(*_: Any) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _written(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at which connections wait from now on."""
    try:
        *kind, _, at = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not host:
            raise OSError
    except (OSError, UnicodeError):
        raise refuse("host", host, "a name or an address of this machine") from None
    with socket.socket(*kind) as door:
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(at)
            door.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                more = "; --port 0 takes any free one"
                raise refuse("port", port, "a free port", found=f"{port} is in use", more=more) from None
            if error.errno == errno.EACCES:
                raise refuse("port", port, "a port that this user may open, such as 8710") from None
            raise refuse("host", host, "an address of this machine") from None
        yield door


def greeting(at: str, store: str, keys: bool) -> list[str]:
    """What is said when the server begins: where it is, and three lines to try."""
    shown = "a PostgreSQL database" if "://" in store else store
    sent = "-H 'Content-Type: application/json'" + (' -H "Authorization: Bearer $KEY"' if keys else "")

    def line(path: str, body: Any) -> str:
        return f"  curl {at}/v1/experiments{path} {sent} -d '{json.dumps(body)}'"

    begin = {"name": "first", "policy": "ucb:anytime:0.1", "arms": ["A", "B"]}
    return [
        f"lighttail serves the experiments of {shown} at {at} (Ctrl-C ends it).",
        "Begin an experiment, ask for an arm, and tell its reward:",
        line("", begin),
        line("/first/ask", {"key": "visit 1"}),
        line("/first/tell", {"rewards": [{"id": "1", "reward": 1}]}),
        "The 0.1 of the policy is kappa, in units of the reward: 0.1 suits rewards of 0 or 1.",
        f"The dashboard: {at}/",
        f"All routes: {at}/docs",
    ]
