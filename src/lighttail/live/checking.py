"""Checks a journal: numbers without gaps, digests, and a replay that adds up to what servers knew."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import NamedTuple

from lighttail.checks import BadInput
from lighttail.live.book import FORMAT, Book, entered_all
from lighttail.live.errors import Damaged
from lighttail.live.journal import NO_DIGEST, Event, Reader, Snapshot, digest_after, event_of, row_of


class Checked(NamedTuple):
    """A journal that is whole: its events, trials and open trials, and how often a replay chose another arm.

    astray: above 0 if this machine computes other bits than the one that played; the journal is followed.
    """

    events: int
    trials: int
    open: int
    astray: int


class Changed(Damaged):
    """Something is not as it was written: the sentence names the experiment and the event."""


def checked_events(journal: Reader, name: str) -> Iterator[Event]:
    """The events of an experiment up to the last one at this moment. Raises Changed at the first line that is
    not what was written."""
    (last, end), seq, digest = journal.head(name), 0, NO_DIGEST
    while seq < last and (rows := journal.rows(name, seq)):
        for row in rows[: last - seq]:
            seq, digest = seq + 1, digest_after(digest, row.body)
            if row.digest != digest or row.seq != seq:
                raise Changed(f"event {seq} of {name} was changed, or an event before it is missing")
            event = event_of(row.body)
            if row_of(event, row.body, digest) != row:
                raise Changed(f"event {seq} of {name} cannot be found by its trial, key and unit")
            yield event
    if seq < last:
        raise Changed(f"event {seq + 1} of {name} is missing: there were {last} events")
    if digest != end:
        raise Changed(f"event {last} of {name} is not the one that was noted as the last")


def check_journal(journal: Reader, name: str) -> Checked:
    """Check the journal of an experiment. Raises Damaged with a sentence that names the first wrong event."""
    snapshot = journal.snapshot(name)
    book: Book | None = None
    try:
        for book in entered_all(checked_events(journal, name)):
            if snapshot is not None and snapshot.seq == book.seq:
                _check_snapshot(name, book, snapshot)
    except Changed:
        raise
    except (Damaged, BadInput, LookupError, TypeError, ValueError) as error:
        if isinstance(error, BadInput) and error.field in ("name", "journal"):  # not there, or not now
            raise
        after = f"event {book.seq + 1 if book else 1} of {name} does not fit the events before it"
        why = " ".join(map(str, error.args)) or type(error).__name__  # an error of Python may have no words
        raise Damaged(f"{after}: {why}") from None
    if book is None:
        raise Damaged(f"event 1 of {name} is missing: there is no event")
    return Checked(book.seq, book.last, len(book.ledger), book.astray)


def _check_snapshot(name: str, book: Book, snapshot: Snapshot) -> None:
    """Raise Changed if a snapshot is not what the events add up to. One of another version is ignored, as a
    desk ignores it."""
    plain = json.loads(snapshot.text)
    mine = isinstance(plain, dict) and (plain.get("format"), plain.get("order")) == (FORMAT, sys.byteorder)
    if mine and plain != json.loads(json.dumps(book.to_plain())):
        raise Changed(f"the snapshot after event {snapshot.seq} of {name} is not what the events add up to")
