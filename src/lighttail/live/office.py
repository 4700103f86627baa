"""The office: all experiments of a journal, each with its desk."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

from lighttail.checks import EXACT, BadInput, refuse, whole
from lighttail.live.book import Book
from lighttail.live.desk import Clock, Desk
from lighttail.live.errors import conflict, unavailable, unknown
from lighttail.live.journal import Event, Journal, Reader, event_of
from lighttail.live.memory import MemoryJournal
from lighttail.live.requests import Look, Ticket, shown_label
from lighttail.live.worker import Timers
from lighttail.live.writer import Writer
from lighttail.online.base import check_names
from lighttail.reading.words import names_own

NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
ADDRESSES = ("postgresql://", "postgres://")
MOST_AWAKE, LONGEST_LOOK = 16, 5.0  # desks that look at their journals at once, and seconds for one of them
COMPARED = ("policy", "arms", "dim", "horizon", "settings")


def open_journal(store: str) -> Journal:
    """The journal that a text names: `postgresql://...`, `memory`, or the path of a SQLite file."""
    if store.startswith(ADDRESSES):
        from lighttail.live.postgres import PostgresJournal

        return PostgresJournal(store)
    if store == "memory":
        return MemoryJournal()
    from lighttail.live.sqlite import SqliteJournal

    return SqliteJournal(store)


def open_reader(store: str) -> Reader:
    """The journal that a text names, read-only, also while servers write to it."""
    if store.startswith(ADDRESSES):
        from lighttail.live.postgres import PostgresReader

        return PostgresReader(store)
    if store == "memory":
        raise refuse("store", store, "a file or postgresql://...", found="ends with its process")
    from lighttail.live.sqlite import SqliteReader

    return SqliteReader(store)


class Office:
    """All experiments of a journal.

    >>> office = Office(MemoryJournal())
    >>> desk, made = office.create("checkout", policy="ucb:anytime:0.1", arms=["A", "B"], seed=1)
    >>> (trial,) = desk.ask(key="visitor 1")
    >>> trial.id, trial.arm, desk.tell([(trial.id, 1.0)])
    (1, 'B', Told(counted=1, repeated=0, late=0))
    >>> office.close()
    """

    def __init__(self, journal: Journal, clock: Clock = time.time) -> None:
        self.journal, self.clock = journal, clock
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._writer, self._timers = Writer(journal) if journal.ahead else None, Timers()

    def create(
        self,
        name: Any,
        policy: Any,
        arms: Any = None,
        horizon: Any = None,
        seed: Any = None,
        settings: Any = None,
        dim: Any = None,
    ) -> tuple[Desk, bool]:
        """The desk of an experiment, and whether it is new. Raises Refused (409) if the name belongs to
        another.

        policy: in words, as on the command line; a shipped policy, because no code of a file may run here.
        arms: names; with a linear policy `dim` instead. seed: drawn if it is not given, and kept in the
        journal."""
        event = self._first_event(name, policy, arms, dim, horizon, seed, settings)
        made = self.journal.create(event["name"], event)
        if not made:
            self._check_same(event, seed is not None)
        return self.desk(event["name"]), made

    def _first_event(
        self, name: Any, policy: Any, arms: Any, dim: Any, horizon: Any, seed: Any, settings: Any
    ) -> Event:
        if not isinstance(policy, str) or names_own(policy):
            raise refuse("policy", policy, "the words of a policy of lighttail, such as 'ucb:anytime:0.1'")
        first: Event = {"seq": 1, "time": float(self.clock()), "kind": "create"}
        first |= {"name": check_name(name), "policy": policy}
        if arms is not None:
            given = check_names("arms", arms, 2, "a list of at least two names")
            labels = first["arms"] = [shown_label("arms", label) for label in given]
            if len(set(map(str, labels))) < len(labels):
                raise refuse("arms", labels, "names that differ as text, because names in JSON are text")
        if dim is not None:
            first["dim"] = whole("dim", dim, 1)
        first["horizon"] = None if horizon is None else whole("horizon", horizon, 1, most=EXACT)
        first["seed"] = secrets.randbits(52) if seed is None else whole("seed", seed, 0, most=EXACT)
        first["settings"] = {} if settings is None else settings
        book = Book(first)  # refuses whatever is wrong, before anything is written
        first["settings"] = book.settings.plain
        try:
            book.settings.check_new(first["horizon"])
        except BadInput:
            if first["name"] not in self.journal.names():  # one that was begun before they were checked stays
                raise
        return first

    def _check_same(self, event: Event, seeded: bool) -> None:
        """Raise Refused if the experiment that has this name is not the one that was to be made."""
        before = event_of(self.journal.lines(event["name"], 0, 1)[0][0])
        for field in (*COMPARED, "seed") if seeded else COMPARED:
            if before.get(field) != event.get(field):
                allowed = f"{before.get(field)!r}, as before in the experiment {event['name']!r}"
                raise conflict(field, event.get(field), allowed)

    def names(self) -> list[str]:
        """The names of all experiments, in the order of their creation."""
        return self.journal.names()

    def desk(self, name: Any) -> Desk:
        """The desk of an experiment. Raises Refused (404) if there is none."""
        check_known(name)
        if name not in self._desks and name not in self.journal.names():  # no lock while a database is asked
            raise unknown(name)
        with self._lock:
            if self._closed:
                raise unavailable("the server is closing; send the request again later", "server")
            if name not in self._desks:
                self._desks[name] = Desk(self.journal, name, self.clock, self._writer, self._timers)
            return self._desks[name]

    def wake(self) -> None:
        """Open every desk and let it look at its journal, so that windows end although nobody asks. Call it
        when a server begins and, if servers share the journal, now and then: another server may have begun an
        experiment, or asked trials, and ended since. A few desks look at once, because each needs a thread
        and reads its journal."""
        waiting: deque[Ticket] = deque()
        for name in self.names():
            with suppress(BadInput):  # the desk is full, and looks soon enough
                waiting.append(self.desk(name).submit(Look("tick")))
                if len(waiting) == MOST_AWAKE:
                    waiting.popleft().result(LONGEST_LOOK)

    def close(self) -> None:
        """Finish what was accepted, refuse the rest, and close the journal."""
        with self._lock:
            self._closed = True
            desks = list(self._desks.values())
        self._timers.clear()
        for desk in desks:
            desk.close()
        if self._writer is not None:
            self._writer.end()
        self.journal.close()


def check_known(name: Any) -> None:
    """Raise Refused (404) if no experiment can have this name, before a database is asked, which may not even
    be able to read it."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise unknown(name)


def check_name(name: Any) -> str:
    """The name of an experiment, which can stand in a path and on a page as it is."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in (".", ".."):
        raise refuse("name", name, "1 to 100 letters, digits, '.', '_' or '-', and not '.' or '..'")
    return name
