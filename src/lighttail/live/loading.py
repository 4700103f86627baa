"""The book of a journal: from its last snapshot, and the events since."""

from __future__ import annotations

import json
from contextlib import suppress

from lighttail.checks import BadInput
from lighttail.live.book import Book
from lighttail.live.errors import Damaged
from lighttail.live.journal import Event, Reader, Turn, event_of


def loaded(journal: Reader, name: str) -> tuple[Book, int]:
    """The book of the last snapshot, or of the first event if no snapshot can be used; and the event of that
    snapshot."""
    kept = journal.snapshot(name)
    with suppress(BadInput, Damaged, LookupError, TypeError, ValueError):
        book = None if kept is None else Book.restored(json.loads(kept.text))
        if book is not None:
            return book, book.seq
    return Book(event_of(journal.lines(name, 0, 1)[0][0])), 0


def current(book: Book, turn: Turn) -> Book:
    """The book after the last event, with what other servers appended or what a snapshot does not have."""

    def story(id: int) -> list[Event]:
        return [event_of(body) for body in turn.bodies_of(id)]

    for event in turn.events(book.seq) if book.seq != turn.last else ():
        book.enter(event, story)
    return book
