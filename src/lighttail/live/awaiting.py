"""A desk for coroutines: thousands wait in one thread, and one wake-up per commit answers them all."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from lighttail.live.desk import Desk
from lighttail.live.requests import Request, Ticket


class AsyncDesk:
    """The requests of a desk as coroutines of one event loop. `desk` has the rest."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._loop = asyncio.get_running_loop()
        self._then = self._finished  # one object, by which the desk knows the tickets that belong together
        self._new: list[Ticket] = []  # what came in this round of the loop

    def answer(self, request: Request) -> asyncio.Future[Any]:
        """What will be the answer to a request, on disk, or its refusal as an exception. Await it."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._new:
            self._loop.call_soon(self._submit)
        self._new.append(Ticket(request, self._then, future, quiet=True))
        return future

    def _submit(self) -> None:
        """Hand over all requests of a round of the loop at once, so that the desk is woken once."""
        tickets, self._new = self._new, []
        try:
            self.desk.submit_all(tickets)
        except Exception as error:  # whatever it is: no coroutine may wait for ever
            for ticket in tickets:
                ticket.error = error
            _answer(tickets)

    def _finished(self, tickets: list[Ticket]) -> None:
        """In the desk's thread: wake the loop once for all answers of a commit."""
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(_answer, tickets)


def _answer(tickets: list[Ticket]) -> None:
    """In the loop: answer the coroutines that wait."""
    for ticket in tickets:
        future = ticket.holder
        if future.done():  # the caller has gone away
            continue
        if ticket.error is not None:
            future.set_exception(ticket.error)
        else:
            future.set_result(ticket.answer)
