"""Threads that are there while there is work: thousands of experiments need no thousands of threads. A worker
works on a queue, and timers wake desks when a window may be over."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Generic, TypeVar

from lighttail.checks import BadInput
from lighttail.live.errors import unavailable

IDLE = 0.5  # seconds without work after which a thread ends
Item = TypeVar("Item")
Wake = Callable[[], None]


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises Refused (503) if the system has no room for one more thread."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        why = f"the server cannot start a thread at this moment ({error})"
        raise unavailable(f"{why}; send the request again later", "server") from None


class Worker(Generic[Item]):
    """A queue, and a thread that works on it. The thread is started by whoever puts something into the queue,
    and ends when `left` says that it may.

    work: runs in the thread, takes from `queue`, and returns after `left` was true."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.queue: SimpleQueue[Item] = SimpleQueue()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None
        self._name, self._work = name, work

    def put(self, item: Item) -> None:
        """Give the thread something to do. The caller holds `lock`. Raises Refused (503), and puts nothing
        into the queue, if there is no thread and none can be started."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                start(self.thread)
            except BadInput:
                self.thread = None
                raise
        self.queue.put(item)

    def _run(self) -> None:
        try:
            self._work()
        finally:  # a mistake must not leave the queue without a thread for ever
            with self.lock:
                if self.thread is threading.current_thread():
                    self.thread = None

    def left(self) -> bool:
        """In the thread: leave unless something came. After True the thread must end at once."""
        with self.lock:
            if self.queue.empty():
                self.thread = None
                return True
            return False

    def join(self) -> None:
        """Wait until the thread has ended."""
        thread = self.thread
        if thread is not None:
            thread.join()


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
