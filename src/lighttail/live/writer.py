"""The writer of a desk: a thread that brings events to the disk while the desk plays the next requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from lighttail.live.journal import Event, Journal, Kept, Row, rows_of
from lighttail.live.ticket import Ticket, finish


class Group:
    """Requests that were played one after another, and their events, which are written in one commit.

    after, digest: the number of the last event before them, and the digest of all lines up to it. keys: the
    trials of each key that was looked up or used. error: why the commit failed; None if it did not. took: the
    seconds of the commit. waiting: the requests that waited when it ended."""

    __slots__ = (
        "_stories",
        "after",
        "digest",
        "error",
        "events",
        "kept",
        "keys",
        "rows",
        "tickets",
        "took",
        "waiting",
    )

    def __init__(self, after: int, digest: bytes) -> None:
        self.after, self.digest = after, digest
        self.tickets: list[Ticket] = []
        self.events: list[Event] = []
        self.rows: list[Row] = []
        self.keys: dict[str, list[Event]] = {}
        self.kept: Kept | None = None
        self.error: Exception | None = None
        self.took, self.waiting = 0.0, 0
        self._stories: dict[str, list[Event]] | None = None

    def add(self, events: list[Event]) -> None:
        """Append events, and make their rows."""
        if events:
            self.rows += rows_of(events, self.rows[-1].digest if self.rows else self.digest)
            self.events += events
            self._stories = None

    def next(self) -> Group:
        """The group whose events follow."""
        return Group(self.after + len(self.rows), self.rows[-1].digest if self.rows else self.digest)

    def story(self, trial: int) -> list[Event]:
        """The events of a trial. They are sorted when somebody asks first, which is seldom."""
        if self._stories is None:
            self._stories = {}
            for event in self.events:
                if "id" in event:
                    self._stories.setdefault(event["id"], []).append(event)
        return self._stories.get(str(trial), [])


class Writer:
    """A thread that writes groups, one after another, and answers their tickets.

    landed: called in that thread when a group is on disk, or its commit has failed; a group that failed is
    answered by whoever is called."""

    def __init__(self, journal: Journal, name: str, landed: Callable[[Group], None]) -> None:
        self.journal, self.name, self._landed = journal, name, landed
        self._inbox: SimpleQueue[Group | None] = SimpleQueue()
        self.idle = threading.Event()  # whether nothing is being written
        self._thread = threading.Thread(target=self._work, name=f"writer of {name}", daemon=True)
        self._thread.start()

    def send(self, group: Group) -> None:
        """Let a group be written."""
        self.idle.clear()
        self._inbox.put(group)

    def end(self) -> None:
        """Wait until all is written, and end."""
        self._inbox.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (group := self._inbox.get()) is not None:
            begun = time.monotonic()
            try:
                with self.journal.turn(self.name) as turn:
                    turn.append_rows(group.after, group.digest, group.rows)
            except Exception as error:
                group.error = error
            group.took = time.monotonic() - begun
            self._landed(group)
            self.idle.set()
            if group.error is None:
                finish(group.tickets)
                if group.kept is not None:
                    with suppress(Exception):  # a snapshot only saves time
                        self.journal.keep(self.name, group.kept)
