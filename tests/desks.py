"""Desks for the tests: an office on a journal, a clock that is set by hand, and comparisons of books."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from lighttail.live import Desk, Journal, Office
from lighttail.live.book import Book, entered_all
from lighttail.live.journal import Event, event_of
from lighttail.live.memory import MemoryJournal

UCB = "ucb:anytime:0.3"


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def replay(events: Iterable[Event]) -> Book:
    """The book of a whole journal, or of any beginning of one."""
    *_, book = entered_all(events)
    return book


@contextmanager
def desk_of(
    journal: Journal | None = None, clock: Any = None, policy: str = UCB, **more: Any
) -> Iterator[Desk]:
    """A desk of an experiment "one" with arms A, B and C, which ends with the block."""
    kept = MemoryJournal() if journal is None else journal
    office = Office(kept, clock or Clock())
    given: dict[str, Any] = {"arms": ["A", "B", "C"], "seed": 3, "horizon": 500, **more}
    try:
        yield office.create("one", policy, **given)[0]
    finally:
        for desk in office._desks.values():
            desk.close()
        if journal is None:
            kept.close()


def events_of(journal: Journal, name: str = "one") -> list[Event]:
    found: list[Event] = []
    while lines := journal.lines(name, len(found)):
        found += [event_of(body) for body, _ in lines]
    return found


def text_of(book: Book) -> str:
    """All that a book knows, to the bit."""
    return json.dumps(book.to_plain(), sort_keys=True)


def book_of(desk: Desk) -> str:
    """All that a desk knows, its random numbers included."""
    desk.tick()
    assert desk._book is not None
    return text_of(desk._book)


def replayed(journal: Journal, name: str = "one") -> str:
    """All that the journal adds up to."""
    return text_of(replay(events_of(journal, name)))
