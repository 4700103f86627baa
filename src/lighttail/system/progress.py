"""The progress of a simulation: a bar on a terminal, and nothing if the output goes to a file or a pipe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Report = Callable[[int, int], None]  # takes (done, total)
ReportPart = Callable[[str, int], None]  # takes (part, done), where `done` counts all parts
PATIENCE = 0.8  # seconds: a kernel from the cache loads faster than this


def reporter(progress: bool | Report, label: str, total: int) -> AbstractContextManager[Report]:
    """A function that takes (done, total): the user's, the one of a bar, or one that does nothing."""
    if callable(progress):
        return nullcontext(progress)
    return (
        _labelled(label, total) if progress and sys.stderr.isatty() else nullcontext(lambda done, total: None)
    )


@contextmanager
def _labelled(label: str, total: int) -> Iterator[Report]:
    with bar(total) as update:
        update(label, 0)
        yield lambda done, total: update(label, done)


@contextmanager
def parts_reporter(
    progress: bool | ReportPart, total: int, unit: str = "paths"
) -> Iterator[ReportPart | None]:
    """`reporter` for work in several parts. None if there is nothing to call."""
    if callable(progress):
        yield progress
    elif progress and sys.stderr.isatty():
        with bar(total, unit) as update:
            yield update
    else:
        yield None


@contextmanager
def bar(total: int, unit: str = "paths") -> Iterator[ReportPart]:
    """A progress bar on stderr, which disappears at the end. The yielded function takes (label, done)."""
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
        yield lambda label, done: display.update(task, description=label, completed=done)


def compiling(label: str, shown: bool) -> AbstractContextManager[None]:
    """Print that a kernel is being compiled if this takes longer than loading it from the cache."""
    return noted(f"compiling {label} (first run only)", shown)


def noted(text: str, shown: bool) -> AbstractContextManager[None]:
    """Print `text` on stderr if the work within this context takes longer than PATIENCE."""
    return _after_a_while(text) if shown else nullcontext()


@contextmanager
def _after_a_while(text: str) -> Iterator[None]:
    note = threading.Timer(PATIENCE, print, (text,), {"file": sys.stderr, "flush": True})
    note.daemon = True
    note.start()
    try:
        yield
    finally:
        note.cancel()
