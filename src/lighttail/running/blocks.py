"""Blocks of paths: how a block is played, and the task that plays some blocks in a worker of an executor.

Everything here runs wherever a worker is: in a thread, in another process, or on another machine.
"""

from __future__ import annotations

import hashlib
import math
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
from lighttail.outcomes.law import Law
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.random.streams import block_generator
from lighttail.records import Record
from lighttail.running.kept import Keep, PlayBlock, kept_as

Method = Literal["auto", "step", "skip"]
Played = Literal["step", "skip"]  # pull by pull, or many pulls at once with the same law
BLOCK_PULLS = 1 << 19  # pulls per block, about: a millisecond or more of work
SKIP_PATHS = 64  # paths per block that skips ahead, where the cost of a path hardly depends on the horizon
PROBE_PATHS = 2
PROBE_PULLS = 64  # pulls per probe path, besides one per arm
POLL = 0.2  # seconds between two checks whether anyone still wants the result


class Part(NamedTuple):
    """The result of a task: what is kept of its paths, their processor time, and the worker."""

    content: Record | Law
    seconds: float
    worker: tuple[str, int, int]


@dataclass(frozen=True)
class Job:
    """One simulation, after every check and every choice.

    per_block: paths per block. keep: "paths" or "law". For workers: `probe` has the first outcomes of the
    caller, and `flag` is a file of the caller, which is empty until nobody wants the results any more. A
    worker on another machine does not see this file.
    """

    policy: Policy
    problem: Problem
    horizon: int
    paths: int
    seed: int
    method: Played
    per_block: int
    keep: Keep = "paths"
    course: Course = STRAIGHT
    probe: bytes = b""
    flag: str = ""

    @property
    def blocks(self) -> int:
        return math.ceil(self.paths / self.per_block)

    def rows(self, first: int, until: int) -> slice:
        """The paths of blocks first to until - 1."""
        return slice(first * self.per_block, min(self.paths, until * self.per_block))


def block_paths(horizon: int, method: str = "step", dear: int = 1) -> int:
    """Paths per block. The meaning of a seed depends on this number, so only what is played decides it.

    dear: the cost of a pull of the problem, in pulls of a bandit with arms.
    """
    if method == "skip":
        return SKIP_PATHS
    return max(1, min(4096, BLOCK_PULLS // (dear * horizon)))


def block_player(job: Job) -> PlayBlock:
    """The function play_block(block, record, stop), which fills in the paths of one block.

    Its kernel is compiled here, or loaded from the cache. The random numbers of a block depend only on the
    seed and on the number of the block.
    """
    from lighttail.kernels import kernel_for, late_kernel_for, skip_kernel_for, stream  # imports numba
    from lighttail.kernels.errors import check_arms

    policy, problem, horizon, seed, course = job.policy, job.problem, job.horizon, job.seed, job.course
    dim, world = problem.dim, problem.world()
    params = policy.params(course.known_horizon(horizon), dim)
    more: tuple[Any, ...] = ()
    kernel: Any
    with in_sentences(policy, problem):
        if course.straight:
            kernel = (skip_kernel_for if job.method == "skip" else kernel_for)(policy, problem)
        else:
            rule = policy.rule()
            kernel = late_kernel_for(policy, problem)
            more = course.arguments(horizon, dim, rule.notes, rule.memo)

    def play_block(block: int, record: Record, stop: Any) -> None:
        generator = block_generator(seed, block)  # must live as long as the kernel draws from it
        with in_sentences(policy, problem):
            kernel(stream(generator), params, world, horizon, record.reward, record.table, stop, *more)
        if stop[0]:
            check_arms(policy, stop)

    play_block(0, problem.room(0), np.zeros(1, dtype=np.int64))
    return play_block


@contextmanager
def in_sentences(policy: Policy, problem: Problem) -> Iterator[None]:
    """Turn an error of compiled code that an author's class caused into one sentence."""
    try:
        with compiled_in_sentences(policy, problem):
            yield
    except IndexError:
        members = f"the members of {policy} and of the noise"
        raise refuse(members, None, "within their arrays", verb="stay", found="did not") from None


@contextmanager
def compiled_in_sentences(policy: Policy, problem: Problem) -> Iterator[None]:
    """Turn an error of numba into one sentence. numba is not imported before there is an error."""
    try:
        yield
    except Exception:
        from lighttail.kernels.errors import compilable, parts_of

        with compilable(*parts_of(policy, problem)):
            raise


def probe_of(
    policy: Policy, problem: Problem, horizon: int, method: Played, course: Course = STRAIGHT
) -> bytes:
    """The bits of the first pulls of two paths, and the fingerprint. A worker with other formulas, versions
    or mathematical functions has another probe, and is found before its results are mixed with others."""
    begun = 0 if course.start is None else course.start.rounds
    opening = 0 if problem.linear else problem.dim  # every arm is pulled once, whatever the policy learns
    short, record = min(horizon, begun + PROBE_PULLS + opening), problem.room(PROBE_PATHS)
    job = Job(policy, problem, short, PROBE_PATHS, 0, method, PROBE_PATHS, course=course)
    block_player(job)(0, record, np.zeros(1, dtype=np.int64))
    return record.tobytes() + fingerprint(policy, problem, horizon)


def fingerprint(policy: Policy, problem: Problem, horizon: int) -> bytes:
    """The numbers that the kernels receive, and samples of the bonus up to the horizon, as text."""
    numbers: list[Any] = [policy.params(horizon, problem.dim)]
    for part in () if problem.linear else problem.world():  # the actions may fill a file
        numbers.append(hashlib.sha256(part.tobytes()).hexdigest() if isinstance(part, np.ndarray) else part)
    bonus: Any = getattr(policy, "bonus", None)
    if hasattr(bonus, "sample"):
        numbers += bonus.sample(horizon, problem.dim)
    return repr(numbers).encode()


def play_blocks(job: bytes, first: int, until: int, attempt: int) -> Part:
    """The task: play the blocks first to until - 1 of a pickled `Job`.

    attempt: makes a second try another call, for an executor that remembers the results of calls.
    """
    with _lock:  # threads of one worker that begin together compile once
        todo, play_block = _opened(job)
    rows = todo.rows(first, until)
    kept = kept_as(todo.keep, todo.problem, todo.horizon, rows.stop - rows.start, first=rows.start)
    start = time.thread_time()
    with _watched(todo.flag) as stop:
        for block in range(first, until):
            kept.fill(play_block, todo.per_block, stop, block, todo.rows(block, block + 1).stop)
            if stop[0]:
                raise RuntimeError("nobody wants these blocks any more")
    return Part(kept.content(), time.thread_time() - start, worker_name())


_lock = threading.Lock()


@lru_cache(maxsize=2)
def _opened(job: bytes) -> tuple[Job, PlayBlock]:
    """A job and its kernel, loaded once per worker."""
    todo: Job = pickle.loads(job)
    if probe_of(todo.policy, todo.problem, todo.horizon, todo.method, todo.course) != todo.probe:
        raise RuntimeError(
            "this worker does not play as the caller does: "
            "its lighttail, its formulas or its mathematical functions differ from the caller's"
        )
    return todo, block_player(todo)


def worker_name() -> tuple[str, int, int]:
    """The worker: its machine, its process and its thread."""
    return platform.node(), os.getpid(), threading.get_ident()


@contextmanager
def _watched(flag: str) -> Iterator[Any]:
    """The kernels' stop flag, set when nobody wants the result any more: an executor cannot end a call."""
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
    except OSError:  # the worker is on another machine, or the caller has all results
        return False


def _released() -> Callable[[], bool]:
    """A function: whether a Dask worker was told to forget the task of this thread; False elsewhere."""
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
