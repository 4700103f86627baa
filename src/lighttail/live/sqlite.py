"""The journal in one SQLite file: the default.

One connection writes and checkpoints, and a lock file refuses a second server: SQLite before 3.51.3 can
damage a file whose write-ahead log two connections write at one moment. Readers open the file read-only and
never stop the writer. `synchronous=FULL` brings every commit to the disk before it returns."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any

from lighttail.checks import file_path, refuse, shown
from lighttail.live.errors import Damaged, conflict, unavailable, unknown
from lighttail.live.journal import (
    NO_DIGEST,
    Batch,
    Event,
    Finder,
    Hint,
    Journal,
    Row,
    Snapshot,
    TableReader,
    Turn,
    text_digest,
)
from lighttail.system.files import lock_alone

FORMAT = 1
APPLICATION = 0x6C747461  # "ltta", which marks the file as a journal of lighttail
TABLES = """
CREATE TABLE IF NOT EXISTS experiments (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    experiment INTEGER NOT NULL REFERENCES experiments, seq INTEGER NOT NULL, trial INTEGER, key TEXT,
    unit TEXT, body TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (experiment, seq)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS events_trial ON events (experiment, trial) WHERE trial IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_key ON events (experiment, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_unit ON events (experiment, unit) WHERE unit IS NOT NULL;
CREATE TABLE IF NOT EXISTS snapshots (
    experiment INTEGER PRIMARY KEY REFERENCES experiments, seq INTEGER NOT NULL, text TEXT NOT NULL,
    digest BLOB NOT NULL);
"""


def _insert(rows: int) -> str:
    """The statement that inserts so many rows of one experiment, whose number is the first value. With
    numbered values (?1, ?2) SQLite would take five times as long to prepare the statement of 256 rows."""
    return f"INSERT INTO events SELECT ?, * FROM (VALUES {', '.join(['(?, ?, ?, ?, ?, ?)'] * rows)})"


# Statements that insert many rows at once. Python hands the processor to another thread at every step of
# SQLite and must wait to get it back, so that one row per step would take longer while callers are busy. Up
# to 256 rows take at most two steps, by few enough statements that Python keeps all of them prepared.
INSERTS = [(rows, _insert(rows)) for rows in (*range(256, 0, -16), *range(15, 0, -1))]
MARKS = ("application_id", "user_version")
# However many values there are, one statement is prepared. No value has a NUL or half of a surrogate pair,
# which JSON in SQLite cannot give back (`lighttail.live.requests.text_of`).
LISTED = "(SELECT value FROM json_each(?))"
Look = Callable[[str, tuple[Any, ...]], Iterable[tuple[Any, ...]]]


def _text(raw: bytes) -> str:
    """The text of a reader, also if its bytes were damaged: the digest says so in better words."""
    return raw.decode("utf-8", "replace")


def _check_json() -> None:
    try:
        with closing(sqlite3.connect(":memory:")) as link:
            link.execute("SELECT value FROM json_each('[]')")
    except sqlite3.OperationalError:
        found = f"is of SQLite {sqlite3.sqlite_version} without them"
        raise refuse("store", "sqlite", "of an SQLite with its JSON functions", found=found) from None


class _SqliteFinder(Finder):
    """Finds the events of an experiment. look: carries out a statement with its values."""

    def __init__(self, look: Look, number: int) -> None:
        self.look, self.number = look, number

    def _found(self, where: str, *values: Any, by: str = "") -> list[str]:
        """The lines that fulfil a condition. by: the index; without the name SQLite would read all events."""
        index = f" INDEXED BY events_{by}" if by else ""
        query = f"SELECT body FROM events{index} WHERE experiment = ? AND {where}"
        return [body for (body,) in self.look(query, (self.number, *values))]

    def bodies_with(self, keys: list[str]) -> list[str]:
        return self._found(f"key IN {LISTED} ORDER BY seq", json.dumps(keys), by="key")

    def bodies_of_units(self, units: list[str], after: int = 0) -> list[str]:
        which = f"WHERE experiment = ? AND seq > ? AND unit IN {LISTED}"
        first = f"SELECT MIN(seq) FROM events INDEXED BY events_unit {which} GROUP BY unit"
        return self._found(f"seq IN ({first})", self.number, int(after), json.dumps(units))

    def bodies_of(self, trial: int) -> list[str]:
        return self._found("trial = ? ORDER BY seq", trial, by="trial")


class _SqliteTurn(_SqliteFinder, Turn):
    def __init__(self, link: sqlite3.Connection, number: int, last: int, digest: bytes) -> None:
        super().__init__(link.execute, number)
        self.link, self.last, self.digest = link, last, digest

    def bodies(self, after: int, most: int) -> list[str]:
        return self._found("seq > ? ORDER BY seq LIMIT ?", after, most)

    def _write(self, rows: list[Row]) -> None:
        if not self.link.in_transaction:
            self.link.execute("BEGIN IMMEDIATE")
        written(self.link, self.number, self.last, self.digest, rows)


def written(link: sqlite3.Connection, number: int, last: int, digest: bytes, rows: list[Row]) -> None:
    """Write rows in the transaction that has begun. Raises Refused (409) if event `last`, after which the
    digest was `digest`, is not the last one of the experiment. Every statement hands the processor to other
    threads, so that there are few of them."""
    move = "UPDATE experiments SET seq = ?, digest = ? WHERE number = ? AND seq = ? AND digest = ?"
    if link.execute(move, (rows[-1].seq, rows[-1].digest, number, last, digest)).rowcount != 1:
        raise conflict("expected", last, "the number of the last event", found="is not")
    first = 0
    for count, statement in INSERTS:
        while len(rows) - first >= count:
            values = chain.from_iterable(rows[first : first + count])
            link.execute(statement, (number, *values))
            first += count


class SqliteReader(TableReader):
    """The journal in a SQLite file, read-only: also while a server writes to it, and without its lock."""

    def __init__(self, path: Any) -> None:
        self.path = Path(os.path.realpath(file_path("store", path)))
        if not self.path.is_file():
            found = f"{shown(str(self.path))} is no file"
            raise refuse("store", str(self.path), "a journal of lighttail", found=found)
        try:
            with closing(self._reading()) as link:
                self._check_marks(link)
        except sqlite3.Error as error:
            raise refuse("store", str(self.path), "a journal of lighttail", more=f": {error}") from None

    def _check_marks(self, link: sqlite3.Connection) -> None:
        known, version = (link.execute(f"PRAGMA {mark}").fetchone()[0] for mark in MARKS)
        if known != APPLICATION:
            raise refuse("store", str(self.path), "a journal of lighttail or a file that does not exist")
        if version != FORMAT:
            raise refuse("store", str(self.path), f"of format {FORMAT}", found=f"is of format {version}")

    def _reading(self) -> sqlite3.Connection:
        address = f"{self.path.as_uri()}?mode=ro"
        link = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        link.text_factory = _text
        return link

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            why = f"the journal cannot be written or read at this moment ({error})"
            raise unavailable(f"{why}; send the request again") from None

    def _read(self, query: str, *values: Any) -> list[Any]:
        """What a reader finds, on a connection of its own that cannot write."""
        with self._mapped(), closing(self._reading()) as link:
            return link.execute(query, values).fetchall()

    def check(self) -> None:
        try:
            with closing(self._reading()) as link:
                found = [said for (said,) in link.execute("PRAGMA integrity_check(1)")]
        except sqlite3.DatabaseError as error:
            found = [str(error)]
        if found != ["ok"]:
            raise Damaged(f"SQLite finds a fault with {self.path}: {' '.join(found[0].split())}")

    def close(self) -> None:
        """Nothing is to be ended: every read has a connection of its own."""


class SqliteJournal(SqliteReader, Journal):
    """A journal in a SQLite file, which is made if there is none."""

    ahead = True

    def __init__(self, path: Any) -> None:
        self.path = Path(os.path.realpath(file_path("store", path)))
        _check_json()
        self._lock, self._look_lock = RLock(), RLock()
        self._numbers: dict[str, int] = {}
        self._held = _locked(self.path)
        try:
            self._link = self._connected()
            self._look = self._reading()
            self._look.text_factory = str
        except BaseException:
            self._held.close()
            raise

    def _connected(self) -> sqlite3.Connection:
        try:
            link = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            (tables,) = link.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            if tables:
                self._check_marks(link)
            link.execute("PRAGMA journal_mode = WAL")
            link.execute("PRAGMA synchronous = FULL")
            marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT};"
            link.executescript(f"BEGIN; {TABLES} {marks} COMMIT;")  # all or nothing, also if it is killed
        except sqlite3.Error as error:
            fit = "a file that can be written and is a journal of lighttail or new"
            raise refuse("store", str(self.path), fit, more=f": {error}") from None
        return link

    def create(self, name: str, event: Event) -> bool:
        query = """INSERT INTO experiments (name, seq, digest) VALUES (?, 0, ?)
            ON CONFLICT (name) DO NOTHING"""
        with self._committed():
            self._link.execute("BEGIN IMMEDIATE")
            made = self._link.execute(query, (name, NO_DIGEST))
            if made.rowcount == 0:
                return False
            _SqliteTurn(self._link, int(made.lastrowid or 0), 0, NO_DIGEST).append(0, [event])
            return True

    @contextmanager
    def turn(self, name: str, hint: Hint | None = None) -> Iterator[Turn]:
        with self._committed():
            yield self._turn_of(name)

    def write(self, batches: list[Batch]) -> None:
        with self._committed():
            self._link.execute("BEGIN IMMEDIATE")
            for name, expected, digest, rows in batches:
                written(self._link, self._number_of(name), expected, digest, rows)

    def _number_of(self, name: str) -> int:
        """The number of an experiment, which stays the same for good."""
        if name not in self._numbers:
            self._numbers[name] = self._turn_of(name).number
        return self._numbers[name]

    @contextmanager
    def _committed(self) -> Iterator[None]:
        """Commit what the block writes, or nothing of it if the block raises."""
        with self._lock, self._mapped():
            try:
                yield
                if self._link.in_transaction:
                    self._link.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._link.in_transaction:
                        self._link.execute("ROLLBACK")
                raise

    def _turn_of(self, name: str) -> _SqliteTurn:
        query = "SELECT number, seq, digest FROM experiments WHERE name = ?"
        found = self._link.execute(query, (name,)).fetchone()
        if found is None:
            raise unknown(name)
        return _SqliteTurn(self._link, *found)

    def finder(self, name: str) -> Finder:
        with self._lock, self._mapped():
            number = self._number_of(name)
        return _SqliteFinder(self._looked, number)

    def _looked(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """What is found on the connection that cannot write, which all desks share."""
        with self._look_lock, self._mapped():
            return self._look.execute(query, values).fetchall()

    def keep(self, name: str, snapshot: Snapshot) -> None:
        query = """INSERT OR REPLACE INTO snapshots
            SELECT number, ?, ?, ? FROM experiments WHERE name = ?"""
        with self._lock, self._mapped():
            self._link.execute(query, (snapshot.seq, snapshot.text, text_digest(snapshot.text), name))

    def close(self) -> None:
        with self._lock, self._look_lock:
            self._look.close()  # first: whoever closes last puts the log into the file
            self._link.close()
            self._held.close()


def _locked(path: Path) -> Any:
    """The open lock file of a journal. The system lets go of the lock when the process ends, however it
    ends."""
    try:
        held = path.with_name(f"{path.name}.lock").open("a")
    except OSError as error:
        why = f": {error.strerror}"
        raise refuse("store", str(path), "a file in a folder that can be written", more=why) from None
    try:
        lock_alone(held)
    except OSError:
        held.close()
        fit = "a file that no other server uses"
        more = "; several servers can share a PostgreSQL database: --store postgresql://..."
        raise refuse("store", str(path), fit, found="is in use", more=more) from None
    return held
