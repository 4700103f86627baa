"""What a dashboard keeps between two looks: the histories of journals, and the newest forecasts."""

from __future__ import annotations

import asyncio
import time
from threading import Lock
from typing import Any, NamedTuple

from lighttail.checks import BadInput
from lighttail.dashboard import History
from lighttail.dashboard.view import risk_view
from lighttail.dashboard.words import View
from lighttail.live.errors import UNAVAILABLE, status_of
from lighttail.live.journal import PAGE, Reader, event_of

AT_MOST = 0.3  # seconds per look for events that were not read yet
MOST_KNOWN = 200  # histories, questions, views and panels, each
LEAST_PAUSE = 2.0  # seconds between two forecasts of the same question
PAUSE = 3.0  # times as long as the last forecast took
LONGEST_PAUSE = 20.0  # seconds between two forecasts, at most, unless one takes longer
OLDEST = 60.0  # seconds: trials become older than the window, although no event says so


def keep(values: dict[Any, Any], key: Any, value: Any) -> None:
    """Keep a value as the newest one, and forget the oldest one if there are too many."""
    values.pop(key, None)
    values[key] = value
    if len(values) > MOST_KNOWN:
        del values[next(iter(values))]


class Histories:
    """The history of every experiment that somebody looks at. Each event is read once, by a reader that
    cannot write, and a look takes a moment however long the journal is: the next look reads the rest."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._known: dict[str, tuple[History, Lock]] = {}
        self._lock = Lock()

    def look(self, name: str, at_most: float = AT_MOST) -> View:
        """The history up to now, or as far as it could be read in `at_most` seconds."""
        with self._lock:
            history, lock = known = self._known.get(name) or (History(), Lock())
            keep(self._known, name, known)
        if not lock.acquire(blocking=False):  # somebody reads: wait, and be content with what was read
            with lock:
                return history.to_plain()
        try:
            until = time.monotonic() + at_most
            while lines := self.reader.lines(name, history.seq, PAGE):
                for body, _ in lines:
                    history.take(event_of(body))
                if len(lines) < PAGE or time.monotonic() > until:
                    break
            return history.to_plain()
        finally:
            lock.release()


class Asked(NamedTuple):
    """A question about the end of an experiment."""

    name: str
    loss: float
    horizon: int


class _Answer(NamedTuple):
    """The newest answer to a question, and when it came. passing: whether there is no forecast for a reason
    that may be over soon, such as many others who ask."""

    risk: View
    ended: float
    took: float
    passing: bool


class Outlooks:
    """The newest forecast for each question, made again in the background while somebody looks and the
    experiment moves on. ask: answers a question."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        self._answers: dict[Asked, _Answer] = {}
        self._running: dict[Asked, asyncio.Task[None]] = {}

    async def look(self, asked: Asked, seq: int, patience: float = 0.0) -> View:
        """The newest answer, which is not to be changed. patience: seconds to wait for the first one."""
        newest = self._answers.get(asked)
        if asked not in self._running and self._due(newest, seq):
            self._running[asked] = asyncio.create_task(self._make(asked, seq))
        if newest is None and patience > 0.0 and (task := self._running.get(asked)) is not None:
            await asyncio.wait([task], timeout=patience)
            newest = self._answers.get(asked)
        return risk_view(asked.loss, asked.horizon, waiting=True) if newest is None else newest.risk

    def _due(self, newest: _Answer | None, seq: int) -> bool:
        if newest is None:
            return True
        pause = max(LEAST_PAUSE, min(PAUSE * newest.took, max(LONGEST_PAUSE, newest.took)))
        age = time.monotonic() - newest.ended
        return age > pause and (newest.risk["at"] != seq or newest.passing or age > OLDEST)

    async def _make(self, asked: Asked, seq: int) -> None:
        begun = time.monotonic()
        risk, passing = risk_view(asked.loss, asked.horizon, at=seq), False
        try:
            risk["forecast"] = await self._ask(asked.name, loss=asked.loss, horizon=asked.horizon)
        except BadInput as error:
            risk["why"] = f"There is no forecast: {error.sentence}."
            passing = status_of(error) == UNAVAILABLE
        except Exception as error:
            risk["why"] = f"There is no forecast: the server made a mistake ({type(error).__name__})."
            passing = True
        finally:
            self._running.pop(asked, None)
        ended = time.monotonic()
        keep(self._answers, asked, _Answer(risk, ended, ended - begun, passing))

    def close(self) -> None:
        """End the forecasts that nobody will see."""
        for task in self._running.values():
            task.cancel()
