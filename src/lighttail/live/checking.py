"""Checks a journal: numbers without gaps, digests, and a replay that makes the same choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lighttail.checks import BadInput
from lighttail.live.book import Damaged, replay
from lighttail.live.journal import NO_DIGEST, Event, Journal, digest_after, event_of


class Checked(NamedTuple):
    """A journal that is whole: its events and trials, and how often a replay chose another arm."""

    events: int
    trials: int
    astray: int


def checked_events(journal: Journal, name: str) -> Iterator[Event]:
    """All events of an experiment. Raises Damaged at the first line that is not what was written."""
    seq, digest = 0, NO_DIGEST
    while lines := journal.lines(name, seq):
        for body, kept in lines:
            seq, digest = seq + 1, digest_after(digest, body)
            event = event_of(body)
            if kept != digest or event.get("seq") != seq:
                raise Damaged(f"event {seq} of {name} was changed, or an event before it is missing")
            yield event


def check_journal(journal: Journal, name: str) -> Checked:
    """Check the journal of an experiment. Raises Damaged with a sentence that names the first wrong event."""
    try:
        book = replay(checked_events(journal, name))
    except (BadInput, LookupError, TypeError, ValueError) as error:
        if isinstance(error, BadInput) and error.field == "name":
            raise
        raise Damaged(f"the events of {name} do not fit together: {_said(error)}") from None
    return Checked(book.seq, book.last, book.astray)


def _said(error: Exception) -> str:
    """What is wrong, in words: a refusal's own sentence, or the kind of an error that has none."""
    return " ".join(map(str, error.args)) or type(error).__name__
