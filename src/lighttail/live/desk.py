"""The desk of an experiment: it collects the requests that wait, plays them, writes their events in one
commit, and only then answers them.

One thread per experiment and process plays, so that requests are played one after another. The commit costs
one wait for the disk, however many requests share it. If the journal allows it, a second thread writes while
the first one plays the next requests. A request is answered only when its events, and all events before them,
are on disk. Both threads end when nobody has asked for a while."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty

from lighttail.checks import BadInput
from lighttail.live.book import Book
from lighttail.live.errors import CONFLICT, UNAVAILABLE, Damaged, Refused, status_of, unavailable
from lighttail.live.gathering import Gathering
from lighttail.live.journal import NO_DIGEST, Finder, Hint, Journal, Snapshot, Turn, event_of
from lighttail.live.play import MOST_CLOSED, Round, keys_of
from lighttail.live.requests import Look, Request, Ticket, Verbs, finish
from lighttail.live.worker import IDLE, Timers, Worker
from lighttail.live.writer import Group, Past, Writer

Clock = Callable[[], float]
MOST_WAITING = 20_000  # requests that wait; the next one is refused with 503
MOST_TOGETHER = 1_000  # requests per commit
SNAPSHOT_EVERY = 10_000  # events
LONGEST_WAIT = 60.0  # seconds until the desk looks at its clock again
FIRST_PAUSE = 1.0  # seconds from a failure until the desk tries again by itself, doubled every time
NOBODY = Group("", lambda group: None, 0, NO_DIGEST)  # before the book is there


class Desk(Verbs):
    """The experiment `name` of a journal, for any number of threads.

    clock: the time in seconds; if it is set back, the time of events stands still until it has caught up.
    writer, timers: those of the office; without a writer, the desk writes in its own thread. commits,
    written: how often this desk has written, and how many events.
    """

    def __init__(
        self,
        journal: Journal,
        name: str,
        clock: Clock = time.time,
        writer: Writer | None = None,
        timers: Timers | None = None,
    ) -> None:
        self.journal, self.name, self.clock = journal, name, clock
        self._writer, self._timers = writer if journal.ahead else None, timers or Timers()
        self._worker: Worker[list[Ticket] | Group | None] = Worker(f"desk of {name}", self._work)
        self._queue, self._gate = self._worker.queue, self._worker.lock
        self._closed = self._ending = False
        self.waiting = 0  # how many requests wait for their turn
        self._book: Book | None = None
        self._saved = 0  # the event of the last snapshot
        self.commits = self.written = 0
        self._again: float | None = None  # when to try again after a failure; None if there was none
        self._pause = FIRST_PAUSE
        self._gathering, self._here = Gathering(), 0
        self._group = NOBODY  # what was played and is not being written yet
        self._flying: Group | None = None  # what is being written
        self._finder: Finder | None = None

    # What callers use, besides the verbs

    def submit(self, request: Request) -> Ticket:
        """Let a request wait for its turn."""
        ticket = Ticket(request)
        self.submit_all([ticket])
        return ticket

    def submit_all(self, tickets: list[Ticket]) -> None:
        """Let requests wait for their turn: all of them, or none and a refusal (503)."""
        with self._gate:
            if self._closed:
                raise unavailable("the server is closing; send the request again later", "server")
            if self.waiting >= MOST_WAITING:
                raise unavailable("too many requests are waiting; send the request again later", "server")
            self._worker.put(tickets)
            self.waiting += len(tickets)

    def close(self) -> None:
        """Finish what was accepted, refuse the rest with 503, and keep a snapshot."""
        with self._gate:
            if not self._closed:
                self._closed = True
                with suppress(BadInput):  # no thread can be started; there was none, and no work
                    self._worker.put(None)
        self._worker.join()

    # The desk's thread

    def _work(self) -> None:
        while not self._ending:
            tickets: list[Ticket] = []
            if len(self._group.tickets) >= MOST_TOGETHER:
                self._await_landing()
            patience = self._patience()
            come = self._collect(tickets, min(patience, IDLE))
            if not come and patience > IDLE and self._flying is None and self._left(patience):
                return
            if self._flying is None and not self._ending:
                self._here = len(tickets)
                self._gathering.wait(self._present)
                self._collect(tickets)
            if self._writer is None:
                self._serve(tickets)
                self._keep_snapshot(self._often())
            else:
                self._play_ahead(tickets)
        self._land_all()
        self._keep_snapshot(1)
        self._worker.left()

    def _left(self, patience: float) -> bool:
        """Leave, with a timer if need be. False if something came, or if there can be no timer."""
        try:
            if patience < math.inf:
                self._timers.set(patience - IDLE, self._wake)
        except BadInput:
            return False
        return self._worker.left()

    def _wake(self) -> None:
        """In the thread of the timers: let the desk look at the clock. A thread of the desk may be about to
        leave, and stays if something comes."""
        with self._gate:
            if not self._closed and (self._worker.thread is not None or self._due()):
                try:
                    self._worker.put([Ticket(Look("tick"))])
                    self.waiting += 1
                except BadInput:  # no thread can be started
                    self._timers.set(FIRST_PAUSE, self._wake)
            elif not self._closed and (patience := self._patience()) < math.inf:
                self._timers.set(patience, self._wake)

    def _collect(self, tickets: list[Ticket], patience: float = 0.0) -> bool:
        """Add the requests that wait; if there is nothing to do, wait for a request, or for the end of a
        commit, for `patience` seconds. False if nothing came."""
        come: list[Ticket] | Group | bool | None = False
        before = len(tickets)
        with suppress(Empty):
            while len(tickets) + len(self._group.tickets) < MOST_TOGETHER and not self._ending:
                come = self._queue.get(timeout=patience) if patience > 0.0 else self._queue.get_nowait()
                patience = 0.0
                if come is None:
                    self._ending = True
                elif isinstance(come, list):
                    tickets += come
                elif come is self._flying:
                    self._land(come)
        if len(tickets) > before:
            with self._gate:
                self.waiting -= len(tickets) - before
        return come is not False

    def _present(self) -> int:
        """How many requests could share the next commit."""
        return self._here + len(self._group.tickets) + self.waiting

    def _patience(self) -> float:
        """The seconds until there may be something to do although nobody asks."""
        if self._flying is not None:
            return math.inf
        if self._group.tickets or self._group.rows:
            return 0.0
        wait = self._until_due()
        return wait if wait == math.inf else min(LONGEST_WAIT, max(0.01, wait))

    # One commit after another

    def _serve(self, tickets: list[Ticket]) -> None:
        """Play requests and write their events; answer them when the events are on disk, and not before."""
        begun = time.monotonic()
        try:
            while (tickets or self._due()) and not self._turn(tickets):
                pass
            if self._book is not None:
                self._again = None
        except (BadInput, Damaged) as error:  # from the journal
            self._fail(tickets, error)
        except Exception as error:  # a mistake of ours: it must hit no request but the one that met it
            if len(tickets) > 1:
                self._one_by_one(tickets)
                return
            self._fail(tickets, Refused(f"the server made a mistake: {error!r}", field="server", status=500))
        self._gathering.committed(self.waiting + len(tickets), time.monotonic() - begun, len(tickets))
        finish(tickets)

    def _one_by_one(self, tickets: list[Ticket]) -> None:
        """Serve each request in a commit of its own, from a book that is made anew."""
        self._book, self._group = None, NOBODY
        for ticket in tickets:
            self._serve([ticket])
        self._forget()

    def _fail(self, tickets: list[Ticket], error: BaseException) -> None:
        """Refuse requests, and forget the book."""
        self._forget()
        if isinstance(error, Damaged):
            error = unavailable(f"the journal of {self.name} is damaged: {error}")
        elif isinstance(error, BadInput) and status_of(error) == CONFLICT:
            error = unavailable("another desk has written to the journal; send the request again")
        for ticket in tickets:
            ticket.answer, ticket.error = None, error

    def _forget(self) -> None:
        """Forget the book, which may be ahead of the journal; it is made again from the journal. The desk
        tries this by itself, because a window may end although nobody asks."""
        self._book = None
        now = time.monotonic()
        if self._again is None or now >= self._again:
            self._pause = FIRST_PAUSE if self._again is None else min(2.0 * self._pause, LONGEST_WAIT)
            self._again = now + self._pause

    def _turn(self, tickets: list[Ticket]) -> bool:
        """Play requests in one turn. False if so many windows are over that their trials alone fill a
        commit."""
        if self._book is None:  # not in the turn, which holds one of a few connections
            self._book, self._saved = loaded(self.journal, self.name)
        keys = keys_of([ticket.request for ticket in tickets])
        with self.journal.turn(self.name, Hint(self._book.seq, keys)) as turn:
            book = current(self._book, turn)
            round = Round(book, Past(turn), self.clock(), turn.digest)
            played = round.close_due() < MOST_CLOSED
            if played:
                if tickets and self.journal.shared:  # more have come while another server had its turn
                    self._collect(tickets)
                round.look_up([ticket.request for ticket in tickets])
                self._play(round, tickets)
            turn.append_rows(turn.last, turn.digest, round.rows)
        if round.rows:
            self.commits, self.written = self.commits + 1, self.written + len(round.rows)
        return played

    def _play(self, round: Round, tickets: list[Ticket]) -> None:
        """Play requests. A request that is refused leaves the book as it was; if the journal cannot be read
        (503), a request may be half played, so that the whole round is void."""
        for ticket in tickets:
            try:
                ticket.answer, ticket.error = round.play(ticket.request), None
            except BadInput as error:
                if status_of(error) == UNAVAILABLE:
                    raise
                ticket.error = error

    # Playing while the events before are being written

    def _play_ahead(self, tickets: list[Ticket]) -> None:
        """Play requests on top of all that was played, and let their group be written if none is being
        written."""
        try:
            if tickets or self._due():
                self._add(self._at_the_end(), tickets)
        except (BadInput, Damaged) as error:  # from the journal: nothing of this round is in the group
            self._fail(tickets, error)
            finish(tickets)
        except Exception:  # a mistake of ours; the book may have half of a request
            self._await_landing()
            self._one_by_one([*self._group.tickets, *tickets])
        if self._flying is None:
            self._send()

    def _at_the_end(self) -> Book:
        """The book after the last event that was played."""
        if self._book is None:
            self._land_all()
            book, self._saved = loaded(self.journal, self.name)
            with self.journal.turn(self.name) as turn:
                self._book = current(book, turn)
                self._group = Group(self.name, self._landed, turn.last, turn.digest)
            self._keep_snapshot(self._often())  # what took long to add up is not added up again
            self._finder = self.journal.finder(self.name)
        return self._book

    def _add(self, book: Book, tickets: list[Ticket]) -> None:
        """Play requests, and add them and their events to the group."""
        assert self._finder is not None
        now = self.clock()
        while True:
            groups = (self._group,) if self._flying is None else (self._flying, self._group)
            round = Round(book, Past(self._finder, groups), now, self._group.end)
            if round.close_due() < MOST_CLOSED:
                break
            self._group.add(round.rows)
            self._land_all()
            if self._book is not book:  # a commit has failed, and what was played is void
                raise unavailable("the journal could not be written; send the request again")
        try:
            round.look_up([ticket.request for ticket in tickets])
        except BadInput as error:  # nothing can be looked up, and nothing is played
            for ticket in tickets:
                ticket.error = error
        else:
            self._play(round, tickets)
        self._group.add(round.rows)
        self._group.keys |= round.keys
        self._group.tickets += tickets

    def _send(self) -> None:
        """Let the group be written; if it has no events, its answers rest on events that are."""
        group = self._group
        if group.rows:
            with suppress(Exception):  # a snapshot only saves time
                group.snapshot = self._snapshot(self._often())
            self._group, self._flying = group.next(), group
            assert self._writer is not None
            try:
                self._writer.send(group)
            except BadInput as error:  # the writer has no thread
                group.error = error
                self._land(group)
        else:
            tickets, group.tickets = group.tickets, []
            self._again = self._again if self._book is None else None  # the journal was read
            finish(tickets)

    def _landed(self, group: Group) -> None:
        """In the writer's thread: a group is on disk, or its commit has failed."""
        group.waiting = self.waiting
        self._queue.put(group)

    def _land(self, group: Group) -> None:
        """Take note of a group that is on disk. If it is not, all that was played since is void, too."""
        self._flying = None
        if group.error is None:
            self._again = self._again if self._book is None else None
            self.commits, self.written = self.commits + 1, self.written + len(group.rows)
            callers = group.waiting + len(group.tickets) + len(self._group.tickets)
            self._gathering.committed(callers, group.took, len(group.rows))
            return
        tickets = [*group.tickets, *self._group.tickets]
        if isinstance(group.error, BadInput):
            self._group = NOBODY
            self._fail(tickets, group.error)
            finish(tickets)
        else:
            self._one_by_one(tickets)

    def _await_landing(self) -> None:
        """Wait until nothing is being written."""
        if self._flying is not None:
            self._flying.done.wait()
            self._land(self._flying)

    def _land_all(self) -> None:
        """Wait until all that was played is on disk."""
        self._await_landing()
        self._send()
        self._await_landing()

    # The book and its snapshots

    def _until_due(self) -> float:
        """The seconds until a window is over, or may be: after a failure nobody knows before the next try."""
        if self._again is not None:
            return self._again - time.monotonic()
        book = self._book
        if book is None or book.settings.window is None or book.ledger.oldest is None:
            return math.inf
        return book.ledger.oldest + book.settings.window - max(book.time, self.clock())

    def _due(self) -> bool:
        return self._until_due() <= 0.0

    def _keep_snapshot(self, least: int) -> None:
        """Keep a snapshot after `least` events. It only saves time, so that a failure may stop nothing."""
        with suppress(Exception):
            if (snapshot := self._snapshot(least)) is not None:
                self.journal.keep(self.name, snapshot)

    def _snapshot(self, least: int) -> Snapshot | None:
        """A snapshot if `least` events have come since the last one. Its events must be on disk first."""
        book = self._book
        if book is None or book.seq - self._saved < least:
            return None
        self._saved = book.seq
        return Snapshot(book.seq, json.dumps(book.to_plain()))

    def _often(self) -> int:
        """After how many events a snapshot is due: the more trials are open, the longer it is to write."""
        return max(SNAPSHOT_EVERY, 0 if self._book is None else len(self._book.ledger) // 4)


def loaded(journal: Journal, name: str) -> tuple[Book, int]:
    """The book of the last snapshot, or of the first event if no snapshot can be used; and the event of that
    snapshot."""
    snapshot = journal.snapshot(name)
    with suppress(BadInput, Damaged, LookupError, TypeError, ValueError):
        if snapshot is not None and (book := Book.restored(json.loads(snapshot.text))) is not None:
            return book, book.seq
    return Book(event_of(journal.lines(name, 0, 1)[0][0])), 0


def current(book: Book, turn: Turn) -> Book:
    """The book after the last event, with what other servers appended or what a snapshot does not have."""
    for event in turn.events(book.seq) if book.seq != turn.last else ():
        book.enter(event, Past(turn).of_trial)
    return book
