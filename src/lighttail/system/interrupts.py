"""Ctrl-C where it does no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def postponed_interrupts() -> Iterator[Callable[[], None]]:
    """Within, Ctrl-C raises KeyboardInterrupt where the function that is handed out is called, not anywhere.

    An interrupt that falls between two steps of `concurrent.futures` leaves a lock behind that nobody opens
    again, and closing the pool then waits for ever. At the latest it is raised at the end. A second Ctrl-C
    does not wait.
    """
    if (
        threading.current_thread() is not threading.main_thread()  # which alone is interrupted
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # someone else sees to it
    ):
        yield lambda: None
        return
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def ask() -> None:
        if pressed:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, press)
    try:
        yield ask
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ask()
