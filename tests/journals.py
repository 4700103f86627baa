"""Journals for the tests: one of each kind, a real PostgreSQL in a temporary folder, and one that fails on
demand."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from databases import started

from lighttail.live.errors import unavailable
from lighttail.live.journal import Batch, Finder, Hint, Journal, Turn
from lighttail.live.memory import MemoryJournal, _MemoryTurn
from lighttail.live.postgres import PostgresJournal
from lighttail.live.sqlite import SqliteJournal

KINDS = ("memory", "sqlite", "postgres")
Opener = Callable[[], Journal]
_schemas = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the tests do."""
    from lighttail.live import postgres as module

    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short, because the path of a socket may not be long
    server = started(folder)
    with pytest.MonkeyPatch.context() as patched:  # a busy machine may stop a process for a while
        patched.setitem(module.PATIENCE, "connect_timeout", 600)
        patched.setattr(PostgresJournal, "session", module.SESSION.replace("0s", "00s"))
        yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def new_schema(address: str) -> str:
    """The address of an empty part of a database."""
    import psycopg

    name = f"tests_{os.getpid()}_{next(_schemas)}"
    with psycopg.connect(address) as link:
        link.execute(f"CREATE SCHEMA {name}")
    return f"{address}&options=-csearch_path%3D{name}"


@pytest.fixture(params=KINDS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """A function that opens the same journal again, as another server would; one kind after the other."""
    if request.param == "memory":
        only = MemoryJournal()
        return lambda: only
    if request.param == "sqlite":
        return lambda: SqliteJournal(tmp_path / "journal.db")
    address = new_schema(request.getfixturevalue("postgres"))
    return lambda: PostgresJournal(address)


@pytest.fixture
def journal(opener: Opener) -> Iterator[Journal]:
    made = opener()
    yield made
    made.close()


class FailingJournal(MemoryJournal):
    """A journal in memory whose commits fail while `broken` is true, as on a full disk."""

    broken = False

    @contextmanager
    def turn(self, name: str, hint: Hint | None = None) -> Iterator[Turn]:
        pages = self._of(name)
        with super().turn(name, hint) as turn:
            yield turn
            if self.broken and getattr(turn, "written", None):
                raise unavailable("the disk is full")
        assert pages is self._of(name)

    def keep(self, name: str, snapshot: Any) -> None:
        if self.broken:
            raise unavailable("the disk is full")
        super().keep(name, snapshot)


class _Locked(Finder):
    """Finds events in memory while a writer adds to them."""

    def __init__(self, pages: Any) -> None:
        self.pages = pages

    def _found(self, call: Callable[[Any], list[str]]) -> list[str]:
        with self.pages.look:
            return call(_MemoryTurn(self.pages))

    def bodies_with(self, keys: list[str]) -> list[str]:
        return self._found(lambda turn: turn.bodies_with(keys))

    def bodies_of_units(self, units: list[str], after: int = 0) -> list[str]:
        return self._found(lambda turn: turn.bodies_of_units(units, after))

    def bodies_of(self, trial: int) -> list[str]:
        return self._found(lambda turn: turn.bodies_of(trial))


class AheadJournal(MemoryJournal):
    """A journal in memory on which desks play ahead. A commit waits for `gate`, and fails if `fails` says
    so."""

    ahead = True

    def __init__(self, fails: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self.gate, self.begun, self.fails = threading.Event(), threading.Event(), fails
        self.gate.set()
        self.commits: list[int] = []  # the events of each commit that was tried

    def write(self, batches: list[Batch]) -> None:
        self.begun.set()
        self.gate.wait()
        self.commits.append(sum(len(rows) for *_, rows in batches))
        if self.fails():
            raise unavailable("the disk is full")
        for name, expected, digest, rows in batches:
            pages = self._of(name)
            with pages.look, self.turn(name) as turn:
                turn.append_rows(expected, digest, rows)

    def _of(self, name: str) -> Any:
        pages = super()._of(name)
        if not hasattr(pages, "look"):
            pages.look = threading.RLock()  # type: ignore[attr-defined]
        return pages

    def finder(self, name: str) -> Finder:
        return _Locked(self._of(name))
