"""Who shares the next commit: whether to wait for callers that were just answered.

A commit takes a time F besides its rows, mostly the wait for the disk. Callers who come back within F should
share the next commit, which saves one commit."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

GATHERING = 1.0  # how long to wait for callers that were just answered, in F
LONGEST_GATHERING = 0.01  # seconds
STEPS, LEAST_STEP = 8, 0.00005  # how often to look at who has come, and seconds between two looks at least
PER_ROW = 6e-6  # seconds that a row adds to a commit, about
LEAST_FIXED = 0.25  # F as a share of a commit, at least
LAST_COMMITS = 8  # whose least F is taken, because a commit may have waited for a processor


class Gathering:
    """What the last commits say about the next one."""

    def __init__(self) -> None:
        self._expected, self._until = 0, 0.0  # how many callers may come at once, and until when
        self._fixed: deque[float] = deque(maxlen=LAST_COMMITS)

    def committed(self, callers: int, took: float, rows: int) -> None:
        """Note a commit, and how many callers wait or may come back after it."""
        self._expected = callers
        self._fixed.append(max(LEAST_FIXED * took, took - PER_ROW * rows))
        self._until = time.monotonic() + min(GATHERING * min(self._fixed), LONGEST_GATHERING)

    def wait(self, present: Callable[[], int]) -> None:
        """Wait a moment for callers that were answered by the last commit and are likely to ask again. Two
        callers, for example, would otherwise take turns, and each of them would wait for the commits of both.
        Nobody waits any longer when the rest, at the pace since the last look, come too slowly to be here in
        time: those who come back at once do so together, and the others have something else to do. present:
        how many are here."""
        here, now = present(), time.monotonic()
        while 0 < here < self._expected and now < self._until:
            before, looked = here, now
            time.sleep(max(LEAST_STEP, (self._until - now) / STEPS))
            here, now = present(), time.monotonic()
            if (self._expected - here) * (now - looked) > (here - before) * (self._until - now):
                break
