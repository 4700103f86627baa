"""The writer of a journal: a thread that brings events to the disk while desks play the next requests, which
find the events in the journal and on the way to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty

from lighttail.live.journal import Event, Finder, Journal, Row, Snapshot, check_numbers, event_of
from lighttail.live.requests import Ticket, finish
from lighttail.live.worker import IDLE, Worker

MOST_GROUPS = 64  # per commit


class Group:
    """Requests that were played one after another, and their events, which are written in one commit.

    name: the experiment. landed: called when the group is on disk, or its commit has failed; `done` is then
    set. after, digest: the number of the last event before them, and the digest of all lines up to it. keys:
    the lines of the asks of each key that was found or used. error: why the commit failed; None if it did
    not. took: the seconds of the commit. waiting: the requests that waited when it ended."""

    def __init__(self, name: str, landed: Callable[[Group], None], after: int, digest: bytes) -> None:
        self.name, self.landed, self.after, self.digest = name, landed, after, digest
        self.done = threading.Event()
        self.tickets: list[Ticket] = []
        self.rows: list[Row] = []
        self.keys: dict[str, list[str]] = {}
        self.snapshot: Snapshot | None = None
        self.error: Exception | None = None
        self.took, self.waiting = 0.0, 0
        self.stories = Stories(self.rows)

    def add(self, rows: list[Row]) -> None:
        """Append the rows of events. Raises ValueError if they do not follow the events before."""
        check_numbers(rows, self.after + len(self.rows))
        self.rows += rows

    @property
    def end(self) -> bytes:
        """The digest of all lines up to the last one."""
        return self.rows[-1].digest if self.rows else self.digest

    def next(self) -> Group:
        """The group whose events follow."""
        return Group(self.name, self.landed, self.after + len(self.rows), self.end)


class Stories:
    """The events of each trial in rows to which others are appended. The rows are sorted when somebody asks,
    which is seldom."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows, self._sorted = rows, 0
        self._lines: dict[int, list[str]] = {}

    def of(self, trial: int) -> list[Event]:
        """The events of a trial, in their order."""
        for row in self._rows[self._sorted :]:
            if row.trial is not None:
                self._lines.setdefault(row.trial, []).append(row.body)
        self._sorted = len(self._rows)
        return [event_of(body) for body in self._lines.get(trial, [])]


class Past:
    """What the events so far say about keys, units and trials, for one round of play.

    groups: events that follow those of the journal and may reach it at any moment, so that they may be found
    in both places; the number of an event says that it is the same."""

    def __init__(self, journal: Finder, groups: tuple[Group, ...] = ()) -> None:
        self._journal, self._groups = journal, groups

    def with_keys(self, keys: set[str]) -> dict[str, list[str]]:
        """The lines of the asks that came with each of these keys, in their order; most keys are new and
        have none."""
        found: dict[str, list[str]] = {}
        for body in self._journal.bodies_with(list(keys)):
            found.setdefault(event_of(body)["key"], []).append(body)
        for group in self._groups:
            for key in keys & group.keys.keys():
                found[key] = group.keys[key]  # the asks of a key are never in two groups
        return found

    def of_units(self, units: list[str], after: int) -> list[Event]:
        """The first ask after event `after` that decided the arm of each of these units."""
        found = {event["unit"]: event for event in map(event_of, self._journal.bodies_of_units(units, after))}
        wanted = set(units) - found.keys() if self._groups else ()
        for group in self._groups:
            for row in group.rows if wanted else ():
                unit = row.unit
                if unit in wanted and unit not in found and row.seq > after:
                    found[unit] = event_of(row.body)
        return list(found.values())

    def of_trial(self, id: int) -> list[Event]:
        """All events of a trial, in their order."""
        found = [event_of(body) for body in self._journal.bodies_of(id)]
        last = found[-1]["seq"] if found else 0
        for group in self._groups:
            found += [event for event in group.stories.of(id) if event["seq"] > last]
        return found


class Writer:
    """Writes groups of all experiments of a journal and answers their tickets, in a thread of its own. Groups
    that wait together share a commit, whatever experiment they belong to."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._worker: Worker[Group] = Worker("writer", self._work)

    def send(self, group: Group) -> None:
        """Let a group be written; its `landed` is called in the writer's thread when it is on disk, or its
        commit has failed. A group that failed is answered by whoever is called."""
        with self._worker.lock:
            self._worker.put(group)

    def end(self) -> None:
        """Wait until all is written."""
        self._worker.join()

    def _work(self) -> None:
        queue = self._worker.queue
        while True:
            try:
                groups = [queue.get(timeout=IDLE)]
            except Empty:
                if self._worker.left():
                    return
                continue
            with suppress(Empty):
                while len(groups) < MOST_GROUPS:
                    groups.append(queue.get_nowait())
            self._write(groups)

    def _write(self, groups: list[Group]) -> None:
        begun = time.monotonic()
        try:
            self.journal.write([(one.name, one.after, one.digest, one.rows) for one in groups])
        except Exception as error:
            if len(groups) > 1:  # one of them must not hit the others
                for one in groups:
                    self._write([one])
                return
            groups[0].error = error
        for group in groups:
            group.took = time.monotonic() - begun
            group.landed(group)
            group.done.set()
            if group.error is None:
                finish(group.tickets)
        for group in groups:
            if group.error is None and group.snapshot is not None:
                with suppress(Exception):  # a snapshot only saves time
                    self.journal.keep(group.name, group.snapshot)
