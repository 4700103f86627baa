"""A simulation on any `concurrent.futures.Executor`: threads, processes, a Dask cluster, MPI.

The caller cuts the blocks into tasks, keeps a few in flight for every worker that it has heard of, and puts
the results in their places as they come. docs/cluster.md says what happens when something goes wrong.
"""

from __future__ import annotations

import atexit
import math
import pickle
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lighttail.checks import refuse
from lighttail.course import Course
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.reading import own
from lighttail.running.blocks import POLL, Job, Keep, Part, play_blocks, probe_of
from lighttail.running.methods import Played
from lighttail.system.interrupts import postponed_interrupts

TASK_SECONDS = 0.1  # of play in a task, far more than handing it over costs
BYTES_A_SECOND = 20e6  # a larger message, such as a user's own contexts, is worth longer tasks
TRIES = 3
AHEAD = 4  # tasks in flight for every worker
FEWEST = 8  # in flight before any worker is known
Setting = tuple[Policy, Problem, int, int, Played, Course]
EXECUTOR = "a concurrent.futures.Executor, such as ProcessPoolExecutor() or a Dask client's get_executor()"


class BlocksFailed(RuntimeError):
    """Some blocks could not be played on the executor; the text says which, of what, and why."""


def check_executor(executor: Any, threads: Any) -> None:
    """Refuse what takes no tasks, and two ways to say where to run."""
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise refuse("executor", executor, EXECUTOR)
    if threads is not None:
        raise refuse("threads", threads, "left out where an executor is given, which has its own workers")


def check_travels(**parts: Any) -> None:
    """Refuse by name what cannot be sent to a worker."""
    for name, part in parts.items():
        try:
            pickled(part)
        except Exception as error:
            raise refuse(name, part, f"one that pickle can send to the workers ({error})") from None


def pickled(part: Any) -> bytes:
    """As bytes. A class of a user's file travels with the file; what else only this process could import
    travels by value where cloudpickle is installed."""
    with suppress(Exception):
        plain = own.pickled(part)
        if b"__main__" not in plain:
            return plain
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(part)
    return cloudpickle.dumps(part)  # type: ignore[no-any-return]


@dataclass
class Tasks:
    """The blocks that are still to be played, and what is known about the workers.

    The first tasks are single blocks, to see how long one takes. Shorter tasks at the end let all workers
    finish together. How the blocks are cut changes no bit.
    """

    blocks: int
    seconds: float  # that a task should take
    following: int = 0
    played: int = 0  # blocks, and the seconds that they took
    took: float = 0.0
    workers: set[tuple[str, int, int]] = field(default_factory=set)

    def next(self) -> tuple[int, int]:
        """The next task: its first block, and the one after its last."""
        fair = (self.blocks - self.following) / (2 * max(1, len(self.workers)))
        fitting = self.seconds * self.played / max(self.took, 1e-9)
        count = max(1, round(min(fitting, max(fair, fitting / 4))))
        first, self.following = self.following, min(self.blocks, self.following + count)
        return first, self.following

    def heard(self, part: Part, blocks: int) -> None:
        """Learn from a result."""
        self.workers.add(part.worker)
        self.played += blocks
        self.took += part.seconds

    @property
    def window(self) -> int:
        return max(FEWEST, AHEAD * len(self.workers))


def run_tasks(
    executor: Any,
    played: Setting,
    size: int,
    paths: int,
    keep: Keep,
    put: Callable[[slice, Part], None],
    report: Callable[[int, int], None],
) -> None:
    """Play all blocks, `size` paths each, on the executor; `put` takes in the paths of each task as it ends.

    played: policy, problem, horizon, seed, method and course. A task that fails is tried twice more. Whatever
    ends early, Ctrl-C too, calls back all tasks, and ends those that run.
    """
    policy, problem, horizon, seed, method, course = played
    with stop_flag() as flag:
        probe = probe_of(policy, problem, horizon, method, course)
        job = Job(policy, problem, horizon, paths, seed, method, size, probe, keep, str(flag), course)
        _run(executor, job, put, report)


@contextmanager
def stop_flag() -> Iterator[Path]:
    """An empty file, which tells workers on this machine to go on; whatever ends early writes into it.

    It then stays until the process ends: a worker may still be starting, and would not miss it.
    """
    with tempfile.NamedTemporaryFile(prefix="lighttail-", delete=False) as file:
        flag = Path(file.name)
    try:
        yield flag
        flag.unlink(missing_ok=True)
    except BaseException:
        atexit.register(flag.unlink, missing_ok=True)
        with suppress(OSError):
            flag.write_text("stop")
        raise


def _run(
    executor: Any, job: Job, put: Callable[[slice, Part], None], report: Callable[[int, int], None]
) -> None:
    message = pickled(job)
    tasks = Tasks(math.ceil(job.paths / job.size), TASK_SECONDS + len(message) / BYTES_A_SECOND)
    running: dict[Future[Part], tuple[int, int, int]] = {}
    done = 0
    with postponed_interrupts() as ask:
        try:
            while True:
                ask()
                while tasks.following < tasks.blocks and len(running) < tasks.window:
                    first, until = tasks.next()
                    running[submit(executor, job, message, first, until, 1)] = first, until, 1
                if not running:
                    return
                for future in wait(running, timeout=POLL, return_when=FIRST_COMPLETED).done:
                    first, until, attempt = running.pop(future)
                    part = result_of(future, job, (first, until), attempt)
                    if part is None:
                        again = first, until, attempt + 1
                        running[submit(executor, job, message, *again)] = again
                        continue
                    rows = slice(first * job.size, min(job.paths, until * job.size))
                    put(rows, part)
                    tasks.heard(part, until - first)
                    done += rows.stop - rows.start
                    report(done, job.paths)
        except BaseException:
            for future in running:
                future.cancel()
            raise


def submit(executor: Any, job: Job, message: bytes, first: int, until: int, attempt: int) -> Future[Part]:
    """Hand over the task of playing blocks first to until - 1. message: the job, pickled."""
    try:
        future = executor.submit(play_blocks, message, first, until, attempt)
    except Exception as error:
        what = "not played, since the executor takes no more tasks"
        raise _failure(job, (first, until), what, error) from error
    if not isinstance(future, Future):
        raise refuse("executor", executor, EXECUTOR)
    return future


def result_of(future: Future[Part], job: Job, blocks: tuple[int, int], attempt: int) -> Part | None:
    """What a task brought; None if it is to be tried again."""
    try:
        return future.result()
    except (Exception, CancelledError) as error:
        if attempt == TRIES:
            raise _failure(job, blocks, f"failed {TRIES} times", error) from error
        return None


def _failure(job: Job, blocks: tuple[int, int], what: str, error: BaseException) -> BlocksFailed:
    first, last = blocks[0], blocks[1] - 1
    which = f"block {first}" if first == last else f"blocks {first} to {last}"
    cause = " ".join(str(error).split())
    return BlocksFailed(
        f"{which} of simulate({job.policy!r}, {job.problem!r}, horizon={job.horizon}, paths={job.paths}, "
        f"seed={job.seed}, method={job.method!r}): {what} ({type(error).__name__}: {cause})"
    )
