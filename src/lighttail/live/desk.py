"""The desk of an experiment: it collects the requests that wait, plays them, writes their events in one
commit, and only then answers them.

One thread per experiment and process does all of this, so that requests are played one after another. The
commit costs one wait for the disk, however many requests share it."""

from __future__ import annotations

import json
import threading
import time
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from lighttail.checks import BadInput
from lighttail.live.book import Book
from lighttail.live.errors import Damaged, Refused, unavailable
from lighttail.live.journal import Event, Journal, Kept, Turn, event_of
from lighttail.live.play import MOST_CLOSED, Round
from lighttail.live.requests import (
    Change,
    Look,
    Request,
    Served,
    Told,
    arm_change,
    ask_for,
    settings_change,
    tell_of,
)

Clock = Callable[[], float]
Then = Callable[[list["Ticket"]], None]
MOST_WAITING = 20_000  # requests that wait; the next one is refused with 503
MOST_TOGETHER = 1_000  # requests per commit
SNAPSHOT_EVERY = 10_000  # events
LONGEST_WAIT = 60.0  # seconds until the desk looks at its clock again
FIRST_PAUSE = 1.0  # seconds from a failure until the desk tries again by itself, doubled every time
GATHERING = 0.5  # how long to wait for callers that were just answered, as a share of the last commit
LONGEST_GATHERING = 0.01  # seconds
STEP = 0.0002  # seconds between two looks at who has come


class Ticket:
    """A request that waits for its answer. holder: whatever the caller wants to find again."""

    __slots__ = ("_done", "answer", "error", "holder", "request", "then")

    def __init__(self, request: Request, then: Then | None = None, holder: Any = None) -> None:
        self.request, self.then, self.holder = request, then, holder
        self.answer: Any = None
        self.error: BaseException | None = None
        self._done = allocate_lock()
        self._done.acquire()

    def result(self, timeout: float | None = None) -> Any:
        """The answer, which is on disk, or the refusal as an exception. After `timeout` seconds: Refused
        (503); it is then not known whether the request counts, and it may be sent again with the same key or
        ids."""
        if not self._done.acquire(timeout=-1 if timeout is None else timeout):
            raise unavailable("the answer did not come in time; send the request again", "timeout")
        self._done.release()
        if self.error is not None:
            raise self.error
        return self.answer

    def _finish(self) -> None:
        self._done.release()


class Desk:
    """The experiment `name` of a journal, for any number of threads.

    clock: the time in seconds; if it is set back, the time of events stands still until it has caught up.
    commits, written: how often this desk has written, and how many events.
    """

    def __init__(self, journal: Journal, name: str, clock: Clock = time.time) -> None:
        self.journal, self.name, self.clock = journal, name, clock
        self._queue: SimpleQueue[Ticket | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = self._ending = False
        self._book: Book | None = None
        self._kept = 0  # the event of the last snapshot
        self.commits = self.written = 0
        self._again: float | None = None  # when to try again after a failure; None if there was none
        self._pause = FIRST_PAUSE
        self._expected, self._until = 0, 0.0  # how many callers may come back at once, and until when
        self._thread = threading.Thread(target=self._work, name=f"desk of {name}", daemon=True)
        self._thread.start()

    # What callers use

    def submit(self, request: Request, then: Then | None = None, holder: Any = None) -> Ticket:
        """Let a request wait for its turn.

        then: called in the desk's thread, once per commit, with all tickets that are done and have this
        `then`."""
        ticket = Ticket(request, then, holder)
        with self._gate:
            if self._closed:
                raise unavailable("the server is closing; send the request again later", "server")
            if self._queue.qsize() >= MOST_WAITING:
                raise unavailable("too many requests are waiting; send the request again later", "server")
            self._queue.put(ticket)
        return ticket

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return self._queue.qsize()

    def ask(
        self,
        count: Any = None,
        key: Any = None,
        unit: Any = None,
        actions: Any = None,
        labels: Any = None,
        about: Any = None,
    ) -> list[Served]:
        """The next trials, on disk. The same key again gives the same trials. about: a small object that is
        kept in the journal with each of them (`Experiment.ask`)."""
        asked: list[Served] = self.submit(ask_for(count, key, unit, actions, labels, about)).result()
        return asked

    def tell(self, rewards: Any) -> Told:
        """Count rewards, given as pairs of an id and a reward: all of them, or none and a refusal."""
        told: Told = self.submit(tell_of(rewards)).result()
        return told

    def pause(self) -> bool:
        """Serve the fall-back arm from now on; False if the experiment is paused already."""
        return bool(self.submit(Change("pause", {})).result())

    def resume(self) -> bool:
        """Let the policy choose again; False if the experiment is not paused."""
        return bool(self.submit(Change("resume", {})).result())

    def stop(self) -> bool:
        """Ask no more, for good; rewards still count. False if the experiment is stopped already."""
        return bool(self.submit(Change("stop", {})).result())

    def set(self, settings: Any) -> bool:
        """Have these settings from now on, in place of all that there were; False if they are the same."""
        return bool(self.submit(settings_change(settings)).result())

    def add(self, arm: Any) -> bool:
        """Let one more arm join; False if there is such an arm already."""
        return bool(self.submit(arm_change("add", arm)).result())

    def retire(self, arm: Any) -> bool:
        """Never choose this arm again, for good; its rewards still count. False if it was retired before."""
        return bool(self.submit(arm_change("retire", arm)).result())

    def alarm(self, **fields: Any) -> bool:
        """Write an alarm into the journal."""
        return bool(self.submit(Change("alarm", fields)).result())

    def summary(self) -> dict[str, Any]:
        """The experiment in numbers."""
        found: dict[str, Any] = self.submit(Look("summary")).result()
        return found

    def state(self) -> str:
        """What the policy knows, as `Experiment.from_json` reads it."""
        return str(self.submit(Look("state")).result())

    def tick(self) -> None:
        """Close the trials whose window is over."""
        self.submit(Look("tick")).result()

    def close(self) -> None:
        """Finish what was accepted, refuse the rest with 503, and keep a snapshot."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    # The desk's thread

    def _work(self) -> None:
        while not self._ending:
            tickets: list[Ticket] = []
            self._collect(tickets, self._patience())
            self._gather(tickets)
            begun = time.monotonic()
            self._serve(tickets)
            self._until += min(GATHERING * (self._until - begun), LONGEST_GATHERING)
            self._keep_snapshot(self._often())
        self._keep_snapshot(1)

    def _collect(self, tickets: list[Ticket], patience: float = 0.0) -> None:
        """Add the requests that wait; if none does, wait for one for `patience` seconds."""
        with suppress(Empty):
            while len(tickets) < MOST_TOGETHER and not self._ending:
                first = patience > 0.0 and not tickets
                ticket = self._queue.get(timeout=patience) if first else self._queue.get_nowait()
                if ticket is None:
                    self._ending = True
                else:
                    tickets.append(ticket)

    def _gather(self, tickets: list[Ticket]) -> None:
        """Wait a moment for callers that were answered by the last commit and are likely to ask again: the
        more of them share the next commit, the fewer commits everybody waits for. Two callers, for example,
        would otherwise take turns, and each of them would wait for the commits of both."""
        while 0 < len(tickets) + self._queue.qsize() < self._expected and not self._ending:
            left = self._until - time.monotonic()
            if left <= 0.0:
                break
            time.sleep(min(left, STEP))
        self._collect(tickets)

    def _patience(self) -> float:
        if self._again is not None:
            return max(0.01, self._again - time.monotonic())
        book = self._book
        oldest = None if book is None else book.ledger.oldest
        if book is None or oldest is None or book.settings.window is None:
            return LONGEST_WAIT
        return min(LONGEST_WAIT, max(0.01, oldest + book.settings.window - max(book.time, self.clock())))

    def _serve(self, tickets: list[Ticket]) -> None:
        """Play requests and write their events; answer them when the events are on disk, and not before."""
        try:
            while (tickets or self._due()) and not self._turn(tickets):
                pass
            if self._book is not None:
                self._again = None
        except BadInput as error:  # from the journal
            self._fail(tickets, error)
        except Damaged as error:
            self._fail(tickets, unavailable(f"the journal of {self.name} is damaged: {error}"))
        except Exception as error:  # a mistake of ours: it must hit no request but the one that met it
            self._book = None
            if len(tickets) > 1:
                for ticket in tickets:
                    self._serve([ticket])
                return
            self._fail(tickets, Refused(f"the server made a mistake: {error!r}", field="server", status=500))
        self._expected, self._until = self._queue.qsize() + len(tickets), time.monotonic()
        called: dict[Then, list[Ticket]] = {}
        for ticket in tickets:
            ticket._finish()
            if ticket.then is not None:
                called.setdefault(ticket.then, []).append(ticket)
        for then, done in called.items():
            with suppress(Exception):  # the caller's mistake must not end the desk
                then(done)

    def _fail(self, tickets: list[Ticket], error: BaseException) -> None:
        """Forget the book, which may be ahead of the journal; it is made again from the journal. The desk
        tries this by itself, because a window may end although nobody asks."""
        self._book = None
        now = time.monotonic()
        if self._again is None or now >= self._again:
            self._pause = FIRST_PAUSE if self._again is None else min(2.0 * self._pause, LONGEST_WAIT)
            self._again = now + self._pause
        for ticket in tickets:
            ticket.answer, ticket.error = None, error

    def _turn(self, tickets: list[Ticket]) -> bool:
        """Play requests in one turn. False if so many windows are over that their trials alone fill a
        commit."""
        if self._book is None:  # not in the turn, which holds one of a few connections
            self._book, self._kept = self._loaded()
        with self.journal.turn(self.name) as turn:
            book = self._current(self._book, turn)
            round = Round(book, turn, self.clock())
            played = round.close_due() < MOST_CLOSED
            if played:
                if tickets and self.journal.shared:  # more have come while another server had its turn
                    self._collect(tickets)
                round.look_up([ticket.request for ticket in tickets])
                for ticket in tickets:
                    try:
                        ticket.answer, ticket.error = round.play(ticket.request), None
                    except BadInput as error:
                        ticket.error = error
            turn.append(turn.last, round.events)
        if round.events:
            self.commits, self.written = self.commits + 1, self.written + len(round.events)
        return played

    def _due(self) -> bool:
        """Whether a window is over, or may be: after a failure nobody knows before the next try."""
        if self._again is not None:
            return time.monotonic() >= self._again
        book = self._book
        if book is None or book.settings.window is None or book.ledger.oldest is None:
            return False
        return max(book.time, self.clock()) >= book.ledger.oldest + book.settings.window

    def _current(self, book: Book, turn: Turn) -> Book:
        """The book after the last event, with what other servers appended or what a snapshot does not
        have."""

        def story(id: int) -> list[Event]:
            return [event_of(body) for body in turn.bodies_of(id)]

        for event in turn.events(book.seq) if book.seq != turn.last else ():
            book.enter(event, story)
        return book

    def _loaded(self) -> tuple[Book, int]:
        """The book of the last snapshot, or of the first event if no snapshot can be used."""
        kept = self.journal.snapshot(self.name)
        with suppress(BadInput, Damaged, LookupError, TypeError, ValueError):
            book = None if kept is None else Book.restored(json.loads(kept.text))
            if book is not None:
                return book, book.seq
        return Book(event_of(self.journal.lines(self.name, 0, 1)[0][0])), 0

    def _keep_snapshot(self, least: int) -> None:
        """Keep a snapshot after `least` events. It only saves time, so that a failure may stop nothing."""
        book = self._book
        if book is None or book.seq - self._kept < least:
            return
        self._kept = book.seq
        with suppress(Exception):
            self.journal.keep(self.name, Kept(book.seq, json.dumps(book.to_plain())))

    def _often(self) -> int:
        """After how many events a snapshot is due: the more trials are open, the longer it is to write."""
        return max(SNAPSHOT_EVERY, 0 if self._book is None else len(self._book.ledger) // 4)
