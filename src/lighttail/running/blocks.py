"""Blocks of paths: how one is played, and the task that plays some of them in a worker of an executor.

Everything here runs wherever a worker is: in a thread, in another process, on another machine.
"""

from __future__ import annotations

import hashlib
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
from typing import Any, Literal, NamedTuple

import numpy as np

from lighttail.checks import refuse
from lighttail.course import STRAIGHT, Course
from lighttail.outcomes.law import Law, layout_of
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.random.streams import block_generator
from lighttail.records import Record
from lighttail.running.methods import Played

POLL = 0.2  # seconds between two looks at whether anyone still wants the result
PROBE_PATHS = 2
PROBE_PULLS = 64  # beyond one an arm
Play = Callable[[int, Record, Any], None]
Keep = Literal["paths", "law"]


class Part(NamedTuple):
    """What a task sends back: the outcomes of some blocks, their processor time, and who played them.

    record: reward and pulls of their paths. law: what it sends where that is kept, in place of a record.
    """

    record: Record | None
    seconds: float
    worker: tuple[str, int, int]
    law: Law | None = None


@dataclass(frozen=True)
class Job:
    """One simulation, as its workers see it.

    size: paths a block. probe: the first outcomes that the caller got. keep: "paths" or "law".
    flag: a file of the caller's, empty until nobody wants the results any more; a worker on another machine
    does not see it.
    """

    policy: Policy
    problem: Problem
    horizon: int
    paths: int
    seed: int
    method: Played
    size: int
    probe: bytes
    keep: Keep
    flag: str
    course: Course = STRAIGHT


def block_player(
    policy: Policy, problem: Problem, horizon: int, seed: int, method: Played, course: Course = STRAIGHT
) -> Play:
    """play(block, record, stop) fills in the paths of one block; no paths: only gets ready.

    A block's random numbers depend on the seed and the block's number alone.
    """
    from lighttail.kernels import kernel_for, late_kernel_for, skip_kernel_for, stream  # imports numba
    from lighttail.kernels.errors import check_arms, compilable, parts_of

    author = parts_of(policy, problem)
    params, world = policy.params(course.known_horizon(horizon), problem.size), problem.world()
    more: tuple[Any, ...] = ()
    with compilable(*author):
        kernel: Any
        if course.late:
            rule = policy.rule()
            kernel = late_kernel_for(policy, problem, course.delay)
            more = course.arguments(horizon, problem.size, rule.notes, rule.memo)
        else:
            kernel = (skip_kernel_for if method == "skip" else kernel_for)(policy, problem)

    def play(block: int, record: Record, stop: Any) -> None:
        generator = block_generator(seed, block)
        with compilable(*author), within_arrays(policy):
            kernel(stream(generator), params, world, horizon, record.reward, record.table, stop, *more)
        check_arms(policy, stop)

    return play


@contextmanager
def within_arrays(policy: Policy) -> Iterator[None]:
    """A sentence in place of the error of a rule that left its arrays in compiled code."""
    try:
        yield
    except IndexError:
        place = f"choose and learn of {type(policy).__name__}"
        raise refuse(place, None, "within their arrays", verb="stay", found="did not") from None


def probe_of(
    policy: Policy, problem: Problem, horizon: int, method: Played, course: Course = STRAIGHT
) -> bytes:
    """The first pulls of two paths to the bit, and the fingerprint: a worker with other formulas, versions
    or mathematical functions gets others, and is found out before its results are mixed with anyone's."""
    begun = 0 if course.start is None else course.start.rounds
    short, record = min(horizon, begun + PROBE_PULLS + problem.opening), problem.room(PROBE_PATHS)
    block_player(policy, problem, short, 0, method, course)(0, record, np.zeros(1, dtype=np.int64))
    return record.tobytes() + fingerprint(policy, problem, horizon)


def fingerprint(policy: Policy, problem: Problem, horizon: int) -> bytes:
    """The numbers that the kernels are handed, and the bonus all the way to the horizon, as text."""
    numbers: list[Any] = [policy.params(horizon, problem.size)]
    for part in problem.numbers:
        numbers.append(hashlib.sha256(part.tobytes()).hexdigest() if isinstance(part, np.ndarray) else part)
    bonus: Any = getattr(policy, "bonus", None)
    if hasattr(bonus, "sample"):
        numbers += bonus.sample(horizon, problem.size)
    return repr(numbers).encode()


def play_blocks(job: bytes, first: int, until: int, attempt: int) -> Part:
    """The task: blocks first to until - 1 of a pickled `Job`.

    attempt: sets a second try apart from the first for an executor that remembers what it was asked.
    """
    todo, play = _ready(job)
    begin, end = first * todo.size, min(todo.paths, until * todo.size)
    law = Law.empty(layout_of(todo.problem, todo.horizon)) if todo.keep == "law" else None
    record = todo.problem.room(todo.size if law else end - begin)
    start = time.thread_time()
    with _watched(todo.flag) as stop:
        for block in range(first, until):
            skipped = block * todo.size if law else begin
            rows = slice(block * todo.size - skipped, min(end, (block + 1) * todo.size) - skipped)
            play(block, record.rows(rows), stop)
            if stop[0]:
                raise RuntimeError("nobody wants these blocks any more")
            if law:
                law.add(record.rows(rows))
    seconds = time.thread_time() - start
    return Part(None if law else record, seconds, worker_name(), law)


_lock = threading.Lock()


def _ready(job: bytes) -> tuple[Job, Play]:
    with _lock:  # threads of one worker that begin together compile once
        return _opened(job)


@lru_cache(maxsize=2)
def _opened(job: bytes) -> tuple[Job, Play]:
    """A job and its kernel, loaded once in a worker."""
    todo: Job = pickle.loads(job)
    probe = probe_of(todo.policy, todo.problem, todo.horizon, todo.method, todo.course)
    if probe != todo.probe:
        raise RuntimeError(
            "this worker does not play as the caller does: "
            "its lighttail, its formulas or its mathematical functions are others"
        )
    return todo, block_player(todo.policy, todo.problem, todo.horizon, todo.seed, todo.method, todo.course)


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
