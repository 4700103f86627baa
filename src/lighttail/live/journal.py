"""The journal: an append-only list of events per experiment, which is the only truth.

An event is a dictionary of JSON values with `seq` (from 1 without gaps), `time` and `kind`. A journal keeps
it as a line of JSON, next to the digest of all lines so far, so that a line that was changed or lost is
noticed. A backend stores rows and finds them again; it does not look into events."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any, NamedTuple

from lighttail.live.errors import CONFLICT, Refused, unknown

Event = dict[str, Any]
NO_DIGEST = b"\0" * 16  # the digest before the first event
BINDING = ("policy", "floor")  # the asks that decide the arm of a unit
encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # ASCII: also halves of characters
_quoted = json.encoder.encode_basestring_ascii
PLAIN_ASK = ("seq", "time", "kind", "id", "arm", "by")  # the fields of most asks, often with a key
KEYED_ASK = (*PLAIN_ASK, "key")
PLAIN_REWARD = ("seq", "time", "kind", "id", "reward")
_new = tuple.__new__  # faster than calling `Row`
PAGE = 5_000  # events per read of a long journal


class Row(NamedTuple):
    """An event as a backend keeps it: its number, what it is found by, its line and the digest so far."""

    seq: int
    trial: int | None
    key: str | None
    unit: str | None
    body: str
    digest: bytes


Batch = tuple[str, int, bytes, list[Row]]  # an experiment, and what `Turn.append_rows` takes


class Hint(NamedTuple):
    """What the caller of a turn will ask for: the events after event `after`, and the asks with these keys.
    A database may send them with the turn, which saves the way there and back; the answers are the same
    without a hint."""

    after: int
    keys: set[str]


class Snapshot(NamedTuple):
    """A snapshot: the state after event `seq` as text, from which a replay may begin."""

    seq: int
    text: str


def line_of(event: Event) -> str:
    """The line of an event. The most frequent forms are written directly, which takes a third of the time.

    >>> line_of({"seq": 2, "time": 1.5, "kind": "tell", "id": "1", "reward": 0.1})
    '{"seq":2,"time":1.5,"kind":"tell","id":"1","reward":0.1}'
    """
    names = tuple(event)
    if names == PLAIN_REWARD:
        return reward_line(event["seq"], repr(event["time"]), event["kind"], event["id"], event["reward"])
    if names in (PLAIN_ASK, KEYED_ASK):
        fields = (event["id"], event["arm"], event["by"], event.get("key"))
        return ask_line(event["seq"], repr(event["time"]), *fields)
    return encode(event)


def reward_line(seq: int, time: str, kind: str, id: int | str, reward: float) -> str:
    """The line of a reward. time: as it is written."""
    return f'{{"seq":{seq},"time":{time},"kind":"{kind}","id":"{id}","reward":{reward!r}}}'


def ask_line(seq: int, time: str, id: int | str, arm: str | int, by: str, key: str | None) -> str:
    """The line of an ask without a unit and notes. time: as it is written."""
    name = _quoted(arm) if type(arm) is str else arm
    head = f'{{"seq":{seq},"time":{time},"kind":"ask","id":"{id}","arm":{name},"by":"{by}"'
    return f"{head}}}" if key is None else f'{head},"key":{_quoted(key)}}}'


def digest_after(before: bytes, body: str) -> bytes:
    """The digest of all lines up to this one, from the digest before it."""
    return blake2b(body.encode(), key=before, digest_size=16).digest()


def row_of(event: Event, body: str, digest: bytes) -> Row:
    """The row of an event. `key` and `unit` are those of asks; a unit is found by the ask that decided its
    arm."""
    find = event.get
    trial = find("id")
    unit = find("unit") if find("by") in BINDING else None
    number = None if trial is None else int(trial)
    return _new(Row, (event["seq"], number, find("key"), unit, body, digest))


def as_row(event: Event, digest: bytes) -> Row:
    """The row of an event that follows the lines with this digest."""
    body = line_of(event)
    return row_of(event, body, digest_after(digest, body))


def rows_of(events: Iterable[Event], digest: bytes) -> list[Row]:
    """The rows of events that follow the lines with this digest."""
    rows: list[Row] = []
    for event in events:
        rows.append(as_row(event, rows[-1].digest if rows else digest))
    return rows


def event_of(body: str) -> Event:
    """The event of a line."""
    return json.loads(body)  # type: ignore[no-any-return]


def check_numbers(rows: list[Row], after: int) -> None:
    """Raise ValueError unless the events of these rows are numbered from `after` + 1 without gaps."""
    if [row.seq for row in rows] != list(range(after + 1, after + 1 + len(rows))):
        raise ValueError("events must be numbered without gaps")


class Finder(ABC):
    """Finds the events of one experiment by their keys, units and trials."""

    @abstractmethod
    def bodies_with(self, keys: list[str]) -> list[str]:
        """The lines of the asks that came with these keys, in their order."""

    @abstractmethod
    def bodies_of_units(self, units: list[str], after: int = 0) -> list[str]:
        """The line of the first ask after event `after` that decided the arm of each of these units."""

    @abstractmethod
    def bodies_of(self, trial: int) -> list[str]:
        """The lines of all events of a trial, in their order."""


class Turn(Finder):
    """The right to append to one experiment, from `Journal.turn` until the end of its `with` block.

    last: the number of the last event. digest: the digest of all lines up to this event.
    """

    last: int
    digest: bytes

    @abstractmethod
    def bodies(self, after: int, most: int) -> list[str]:
        """The lines of at most so many events after event `after`, in their order."""

    @abstractmethod
    def _write(self, rows: list[Row]) -> None:
        """Keep these rows, all or none, at the end of the `with` block."""

    def append(self, expected: int, events: list[Event]) -> None:
        """Append events, all or none, on disk at the end of the `with` block.

        expected: the number of the event after which they were made. Raises Refused (409) if there are
        others."""
        self.append_rows(expected, self.digest, rows_of(events, self.digest))

    def append_rows(self, expected: int, digest: bytes, rows: list[Row]) -> None:
        """Append the rows of events that were made after event `expected`, when the digest was `digest`.
        Raises Refused (409) if there are others."""
        if (expected, digest) != (self.last, self.digest):
            allowed = f"{self.last}, the number of the last event"
            raise Refused(field="expected", value=expected, allowed=allowed, status=CONFLICT)
        check_numbers(rows, expected)
        if rows:
            self._write(rows)
            self.last, self.digest = rows[-1].seq, rows[-1].digest

    def events(self, after: int) -> Iterator[Event]:
        """The events after event `after`, in their order."""
        full = True
        while full:
            bodies = self.bodies(after, PAGE)
            yield from map(event_of, bodies)
            after, full = after + len(bodies), len(bodies) == PAGE


class Reader(ABC):
    """What everybody may read of a journal. No turn is needed, and no writer waits for a reader."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all experiments, in the order of their creation."""

    @abstractmethod
    def head(self, name: str) -> tuple[int, bytes]:
        """The number of the last event, and the digest of all lines up to it, as they were noted beside the
        events. Raises Refused (404) if there is no such experiment."""

    @abstractmethod
    def rows(self, name: str, after: int = 0, most: int = PAGE) -> list[Row]:
        """At most so many events after event `after`, as they are kept. Raises Refused (404) if there is no
        such experiment."""

    @abstractmethod
    def stories(self, name: str, first: int, last: int) -> list[Row]:
        """The events of the trials `first` to `last`, trial by trial, those of a trial in their order."""

    @abstractmethod
    def snapshot(self, name: str) -> Snapshot | None:
        """The snapshot of an experiment, or None if there is none that is whole."""

    @abstractmethod
    def close(self) -> None:
        """End all connections. Nothing is lost without it."""

    def lines(self, name: str, after: int = 0, most: int = PAGE) -> list[tuple[str, bytes]]:
        """The lines and digests of at most so many events after event `after`."""
        return [(row.body, row.digest) for row in self.rows(name, after, most)]

    def check(self) -> None:
        """Raise Damaged if what keeps the journal finds a fault with itself."""
        return


class Journal(Reader):
    """Where the events of all experiments are kept.

    shared: whether other processes may append to the same experiments. ahead: whether a desk may play
    requests while the events before them are being written; nobody else may append meanwhile.
    """

    shared: bool = False
    ahead: bool = False

    @abstractmethod
    def create(self, name: str, event: Event) -> bool:
        """Begin an experiment with its first event, on disk; False, and nothing happens, if the name is
        taken."""

    @abstractmethod
    def turn(self, name: str, hint: Hint | None = None) -> AbstractContextManager[Turn]:
        """The right to append to an experiment. No other turn of this experiment, in any process, overlaps
        with it. What was appended is on disk when the `with` block has ended, or nothing of it is and the
        block raises. Raises Refused (404) if there is no such experiment."""

    def write(self, batches: list[Batch]) -> None:
        """Append rows to one or more experiments, all or none if SQLite keeps them, on disk when it
        returns. Only if `ahead`."""
        for name, expected, digest, rows in batches:
            with self.turn(name) as turn:
                turn.append_rows(expected, digest, rows)

    def finder(self, name: str) -> Finder:
        """Finds events of an experiment that are on disk, also while a turn is taken; only if `ahead`."""
        raise NotImplementedError

    @abstractmethod
    def keep(self, name: str, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of an older one."""


class TableReader(Reader):
    """A reader of the tables experiments, events and snapshots of a database. prefix: of their names."""

    prefix = ""

    @abstractmethod
    def _read(self, query: str, *values: Any) -> list[Any]:
        """What a query finds, in which a `?` stands for each value."""

    def names(self) -> list[str]:
        return [name for (name,) in self._read(f"SELECT name FROM {self.prefix}experiments ORDER BY number")]

    def head(self, name: str) -> tuple[int, bytes]:
        query = f"SELECT seq, digest FROM {self.prefix}experiments WHERE name = ?"
        for seq, digest in self._read(query, name):
            return seq, digest
        raise unknown(name)

    def _rows(self, which: str, *values: Any) -> list[Row]:
        """The events `e` of an experiment that fulfil a condition. values: its name first."""
        query = f"""SELECT e.seq, trial, key, unit, body, e.digest FROM {self.prefix}events e
            JOIN {self.prefix}experiments ON experiment = number WHERE name = ? AND {which}"""
        return [Row(*row) for row in self._read(query, *values)]

    def rows(self, name: str, after: int = 0, most: int = PAGE) -> list[Row]:
        found = self._rows("e.seq > ? ORDER BY e.seq LIMIT ?", name, after, most)
        if not found:
            self.head(name)  # raises if there is no such experiment
        return found

    def stories(self, name: str, first: int, last: int) -> list[Row]:
        return self._rows("trial BETWEEN ? AND ? ORDER BY trial, e.seq", name, first, last)

    def snapshot(self, name: str) -> Snapshot | None:
        query = f"""SELECT s.seq, text, s.digest FROM {self.prefix}snapshots s
            JOIN {self.prefix}experiments ON experiment = number WHERE name = ?"""
        for seq, text, digest in self._read(query, name):
            if text_digest(text) == digest:
                return Snapshot(seq, text)
        return None


def text_digest(text: str) -> bytes:
    """The digest of a snapshot."""
    return blake2b(text.encode(), digest_size=16).digest()
