"""The progress of a simulation: a bar on a terminal, one line that is written anew in a notebook, and now and
then a further line if the output goes to a file or a pipe."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Report = Callable[[int, int], None]  # takes (done, total)
ReportPart = Callable[..., None]  # takes (part, done), where `done` counts all parts, and a new total if any
PATIENCE = 0.8  # seconds: a kernel from the cache loads faster than this
FIRST, EVERY = 10.0, 30.0  # in a file or a pipe: seconds before the first line, and between two lines
ANEW = 0.5  # in a notebook: seconds before the line is written, and between two states of the line


def reporter(progress: bool | Report, label: str, total: int) -> AbstractContextManager[Report]:
    """A function that takes (done, total): the user's, the one of a display, or one that does nothing."""
    if callable(progress):
        return nullcontext(progress)
    return _labelled(label, total) if progress else nullcontext(lambda done, total: None)


@contextmanager
def _labelled(label: str, total: int) -> Iterator[Report]:
    with display(total) as update:
        update(label, 0)
        yield lambda done, total: update(label, done)


@contextmanager
def parts_reporter(
    progress: bool | ReportPart, total: int, unit: str = "paths"
) -> Iterator[ReportPart | None]:
    """`reporter` for work in several parts. None if there is nothing to call.

    The function that is given also takes a total that has grown, which is shown and not told to `progress`.
    """
    if callable(progress):
        yield lambda part, done, total=0: progress(part, done)
    elif progress:
        with display(total, unit) as update:
            yield update
    else:
        yield None


def display(total: int, unit: str = "paths") -> AbstractContextManager[ReportPart]:
    """What suits the place to which stderr goes. The function in it takes (label, done) and, if more work has
    become known, the new total. Done work is never shown as more than the total."""
    if sys.stderr.isatty():
        return bar(total, unit)
    return written_anew(total, unit) if in_notebook() else now_and_then(total, unit)


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process. IPython on a terminal has no kernel."""
    found = sys.modules.get("IPython")
    return found is not None and hasattr(found.get_ipython(), "kernel")


@contextmanager
def written_anew(total: int, unit: str, clock: Callable[[], float] = time.monotonic) -> Iterator[ReportPart]:
    """One line on stderr that is written over the last one. Short work writes nothing."""
    due, state, width = clock() + ANEW, "", 0

    def write() -> None:
        nonlocal width
        print("\r" + state.ljust(width), end="", file=sys.stderr, flush=True)
        width = len(state)

    def update(label: str, done: int, known: int = 0) -> None:
        nonlocal due, state, total
        total = max(total, known, done)
        state = _state(label, done, total, unit)
        if (now := clock()) >= due:
            due = now + ANEW
            write()

    try:
        yield update
    finally:
        if width:
            write()
            print(file=sys.stderr)


@contextmanager
def now_and_then(total: int, unit: str, clock: Callable[[], float] = time.monotonic) -> Iterator[ReportPart]:
    """For logs: a line on stderr after FIRST seconds and every EVERY seconds, and none for short work."""
    begun = clock()
    due = begun + FIRST

    def update(label: str, done: int, known: int = 0) -> None:
        nonlocal due, total
        total = max(total, known, done)
        if (now := clock()) >= due:
            due = now + EVERY
            text = f"lighttail: {_state(label, done, total, unit)} after {now - begun:.0f} s"
            print(text, file=sys.stderr, flush=True)

    yield update


def _state(label: str, done: int, total: int, unit: str) -> str:
    return f"{label}: {done:,.0f} of {total:,.0f} {unit}"


@contextmanager
def bar(total: int, unit: str) -> Iterator[ReportPart]:
    """A progress bar on stderr, which disappears at the end. The yielded function is that of `display`."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=total)

        def update(label: str, done: int, known: int = 0) -> None:
            nonlocal total
            total = max(total, known, done)
            display.update(task, description=label, completed=done, total=total)

        yield update


def compiling(label: str, progress: bool | Report) -> AbstractContextManager[None]:
    """Print that a kernel is being compiled if this takes longer than loading it from the cache."""
    return noted(f"compiling {label} (first run only)", progress)


def noted(text: str, progress: bool | Report) -> AbstractContextManager[None]:
    """If there is any progress to show, print `text` on stderr once the work within this context takes longer
    than PATIENCE, or than FIRST if stderr is a file or a pipe."""
    return _after_a_while(text) if callable(progress) or progress else nullcontext()


@contextmanager
def _after_a_while(text: str) -> Iterator[None]:
    patience = PATIENCE if sys.stderr.isatty() or in_notebook() else FIRST
    note = threading.Timer(patience, print, (f"lighttail: {text}",), {"file": sys.stderr, "flush": True})
    note.daemon = True
    note.start()
    try:
        yield
    finally:
        note.cancel()
