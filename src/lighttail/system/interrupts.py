"""Ctrl-C at moments at which it does no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def postponed_interrupts() -> Iterator[Callable[[], None]]:
    """Within this context Ctrl-C raises KeyboardInterrupt only where the yielded function is called.

    An interrupt between two steps of `concurrent.futures` leaves a lock that is never released, and closing
    the pool then waits for ever. The interrupt is raised at the end of the context at the latest. A second
    Ctrl-C is raised at once.
    """
    if (
        threading.current_thread() is not threading.main_thread()  # only the main thread receives signals
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # the user has a handler
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
