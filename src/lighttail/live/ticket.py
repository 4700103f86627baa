"""Tickets: requests that wait for their answers."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from lighttail.live.errors import unavailable
from lighttail.live.requests import Request

Then = Callable[[list["Ticket"]], None]


class Ticket:
    """A request that waits for its answer. then: called in a thread of the desk, once per commit, with all
    tickets that are done and have this `then`. holder: whatever the caller wants to find again. quiet: nobody
    calls `result`, because `then` says when there is an answer."""

    __slots__ = ("_done", "answer", "error", "holder", "request", "then")

    def __init__(
        self, request: Request, then: Then | None = None, holder: Any = None, quiet: bool = False
    ) -> None:
        self.request, self.then, self.holder = request, then, holder
        self.answer: Any = None
        self.error: BaseException | None = None
        self._done: Any = None
        if not quiet:
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


def finish(tickets: Iterable[Ticket]) -> None:
    """Wake those who wait for these tickets, whose answers are on disk or whose errors are final."""
    called: dict[Then, list[Ticket]] = {}
    for ticket in tickets:
        if ticket._done is not None:
            ticket._done.release()
        if (then := ticket.then) is not None:
            if then in called:
                called[then].append(ticket)
            else:
                called[then] = [ticket]
    for then, done in called.items():
        with suppress(Exception):  # the caller's mistake must not end the desk
            then(done)
