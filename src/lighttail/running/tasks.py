"""A task: some blocks of a simulation, played by a worker of an executor.

Everything here runs wherever a worker is: in a thread, in another process, on another machine.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lighttail.outcomes.law import Law
from lighttail.records import Record
from lighttail.running.blocks import Play, PlayBlock, block_player, probe_of
from lighttail.running.kept import kept_as

POLL = 0.2  # seconds between two looks at whether anyone still wants the result


class Part(NamedTuple):
    """What a task sends back: what is kept of its paths, their processor time, and who played them."""

    content: Record | Law
    seconds: float
    worker: tuple[str, int, int]


@dataclass(frozen=True)
class Job:
    """One simulation, as its workers see it. probe: the first outcomes that the caller got.

    flag: a file of the caller's, empty until nobody wants the results any more; a worker on another machine
    does not see it.
    """

    play: Play
    probe: bytes
    flag: str


def play_blocks(job: bytes, first: int, until: int, attempt: int) -> Part:
    """The task: blocks first to until - 1 of a pickled `Job`.

    attempt: sets a second try apart from the first for an executor that remembers what it was asked.
    """
    todo, play_block = _ready(job)
    play, rows = todo.play, todo.play.rows(first, until)
    kept = kept_as(play.keep, play.problem, play.horizon, rows.stop - rows.start, first=rows.start)
    start = time.thread_time()
    with _watched(todo.flag) as stop:
        for block in range(first, until):
            kept.fill(play_block, play.size, stop, block, play.rows(block, block + 1).stop)
            if stop[0]:
                raise RuntimeError("nobody wants these blocks any more")
    return Part(kept.content(), time.thread_time() - start, worker_name())


_lock = threading.Lock()


def _ready(job: bytes) -> tuple[Job, PlayBlock]:
    with _lock:  # threads of one worker that begin together compile once
        return _opened(job)


@lru_cache(maxsize=2)
def _opened(job: bytes) -> tuple[Job, PlayBlock]:
    """A job and its kernel, loaded once in a worker."""
    todo: Job = pickle.loads(job)
    play = todo.play
    if probe_of(play.policy, play.problem, play.horizon, play.method, play.course) != todo.probe:
        raise RuntimeError(
            "this worker does not play as the caller does: "
            "its lighttail, its formulas or its mathematical functions are others"
        )
    return todo, block_player(play)


def worker_name() -> tuple[str, int, int]:
    """Who plays here: the machine, the process and the thread."""
    return platform.node(), os.getpid(), threading.get_ident()


@contextmanager
def _watched(flag: str) -> Iterator[Any]:
    """The kernels' stop flag, set once nobody wants the result: executors cannot end a call by themselves."""
    stop, done, released = np.zeros(1, dtype=np.int64), threading.Event(), _released()

    def unwanted() -> bool:
        return _raised(flag) or released()

    if unwanted():
        stop[0] = 1
        yield stop
        return

    def watch() -> None:
        while not done.wait(POLL):
            if unwanted():
                stop[0] = 1
                return

    watcher = threading.Thread(target=watch, name="lighttail-watch", daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        done.set()
        watcher.join()


def _raised(flag: str) -> bool:
    try:
        return Path(flag).stat().st_size > 0
    except OSError:  # not on the caller's machine, or the caller has everything
        return False


def _released() -> Callable[[], bool]:
    """Whether a Dask worker was told to forget the task of this thread; elsewhere, never."""
    dask: Any = sys.modules.get("distributed.worker")
    try:
        worker, key = dask.get_worker(), dask.thread_state.key
        tasks = worker.state.tasks
    except (AttributeError, ValueError):
        return lambda: False

    def released() -> bool:
        task = tasks.get(key)
        return task is None or task.state == "cancelled"

    return released
