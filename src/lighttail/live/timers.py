"""Timers: one thread that wakes desks when a window may be over, so that no desk needs a thread to wait."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from lighttail.live.worker import start

Wake = Callable[[], None]


class Timers:
    """Calls functions at given times, one after another, in a thread that is there while a call is due."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Wake]] = []
        self._valid: dict[Wake, int] = {}  # the number of the last timer of each function
        self._changed = threading.Condition()
        self._numbers = count()
        self._running = False

    def set(self, seconds: float, wake: Wake) -> None:
        """Call `wake`, which must be short, after so many seconds, and not when it was to be called before.
        Raises Refused (503) if no thread can be started that would call it."""
        with self._changed:
            number = self._valid[wake] = next(self._numbers)
            heapq.heappush(self._due, (time.monotonic() + seconds, number, wake))
            if not self._running:
                start(threading.Thread(target=self._work, name="timers", daemon=True))
                self._running = True
            self._changed.notify()

    def clear(self) -> None:
        """Forget all calls."""
        with self._changed:
            self._due.clear()
            self._valid.clear()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._running = False
                    return
                left = self._due[0][0] - time.monotonic()
                if left > 0.0:
                    self._changed.wait(left)
                    continue
                _, number, wake = heapq.heappop(self._due)
                if self._valid.get(wake) != number:
                    continue
                del self._valid[wake]
            with suppress(Exception):  # a mistake of one desk must not end the timers of all
                wake()
