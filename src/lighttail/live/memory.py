"""A journal in memory, for tests and for trying things out: it ends with the process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from lighttail.live.errors import unknown
from lighttail.live.journal import NO_DIGEST, PAGE, Event, Hint, Journal, Row, Snapshot, Turn, rows_of


class _Pages:
    """The rows of one experiment, and where each key, unit and trial is found in them."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.places: dict[tuple[str, Any], list[int]] = defaultdict(list)
        self.snapshot: Snapshot | None = None
        self.lock = RLock()

    def add(self, rows: list[Row]) -> None:
        for place, row in enumerate(rows, len(self.rows)):
            for column in ("trial", "key", "unit"):
                if (value := getattr(row, column)) is not None:
                    self.places[column, value].append(place)
        self.rows.extend(rows)

    def rows_with(self, column: str, value: Any) -> list[Row]:
        return [self.rows[place] for place in self.places.get((column, value), [])]


class _MemoryTurn(Turn):
    def __init__(self, pages: _Pages) -> None:
        self.pages, self.written = pages, list[Row]()
        self.last = len(pages.rows)
        self.digest = pages.rows[-1].digest if pages.rows else NO_DIGEST

    def bodies(self, after: int, most: int) -> list[str]:
        return [row.body for row in self.pages.rows[after : after + most]]

    def bodies_with(self, keys: list[str]) -> list[str]:
        rows = [row for key in set(keys) for row in self.pages.rows_with("key", key)]
        return [row.body for row in sorted(rows)]

    def bodies_of_units(self, units: list[str], after: int = 0) -> list[str]:
        asks = ([row for row in self.pages.rows_with("unit", unit) if row.seq > after] for unit in set(units))
        return [later[0].body for later in asks if later]

    def bodies_of(self, trial: int) -> list[str]:
        return [row.body for row in self.pages.rows_with("trial", trial)]

    def _write(self, rows: list[Row]) -> None:
        self.written.extend(rows)


class MemoryJournal(Journal):
    """A journal in the memory of this process."""

    def __init__(self) -> None:
        self._pages: dict[str, _Pages] = {}
        self._lock = RLock()

    def create(self, name: str, event: Event) -> bool:
        with self._lock:
            if name in self._pages:
                return False
            pages = _Pages()
            pages.add(rows_of([event], NO_DIGEST))
            self._pages[name] = pages
            return True

    def names(self) -> list[str]:
        with self._lock:
            return list(self._pages)

    def _of(self, name: str) -> _Pages:
        with self._lock:
            if name not in self._pages:
                raise unknown(name)
            return self._pages[name]

    @contextmanager
    def turn(self, name: str, hint: Hint | None = None) -> Iterator[Turn]:
        pages = self._of(name)
        with pages.lock:
            turn = _MemoryTurn(pages)
            yield turn
            pages.add(turn.written)

    def head(self, name: str) -> tuple[int, bytes]:
        last = self._of(name).rows[-1]
        return last.seq, last.digest

    def rows(self, name: str, after: int = 0, most: int = PAGE) -> list[Row]:
        return self._of(name).rows[after : after + most]

    def stories(self, name: str, first: int, last: int) -> list[Row]:
        pages = self._of(name)
        with pages.lock:
            return [row for trial in range(first, last + 1) for row in pages.rows_with("trial", trial)]

    def snapshot(self, name: str) -> Snapshot | None:
        return self._of(name).snapshot

    def keep(self, name: str, snapshot: Snapshot) -> None:
        self._of(name).snapshot = snapshot

    def close(self) -> None:
        """Nothing is to be ended."""
