"""The one loop that runs tasks: blocks on threads or on any `concurrent.futures.Executor`, a study's pieces.

`Work` says what the tasks are, how a task is handed over and where its result goes. `work_on` keeps a few
tasks in flight per worker, tries again what fails, hears Ctrl-C, and on an early end calls all tasks back.
docs/cluster.md says what happens when something goes wrong.
"""

from __future__ import annotations

import atexit
import math
import pickle
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from lighttail.checks import refuse
from lighttail.reading import own
from lighttail.running.blocks import Play, probe_of
from lighttail.running.tasks import Job, Part, play_blocks
from lighttail.system.interrupts import postponed_interrupts

LISTEN = 0.1  # seconds between two looks for Ctrl-C
TRIES = 3  # of a task on an executor
AHEAD = 4  # tasks in flight per worker
FEWEST = 8  # tasks in flight before any worker is known
TASK_SECONDS = 0.1  # of play in a task, far more than handing it over costs
BYTES_A_SECOND = 20e6  # a larger message, such as a user's own contexts, is worth longer tasks
EXECUTOR = "a concurrent.futures.Executor, such as ProcessPoolExecutor() or a Dask client's get_executor()"
Report = Callable[[int, int], None]
T = TypeVar("T")
R = TypeVar("R")


class BlocksFailed(RuntimeError):
    """Some blocks could not be played on the executor; the text says which, of what, and why."""


class Work(ABC, Generic[T, R]):
    """What is done on a pool. known: the number of workers; None if they are known once they are heard of.

    each: tasks in flight per known worker. heard: the names of the workers that have sent a result.
    """

    tries = TRIES

    def __init__(self, known: int | None = None, each: int = AHEAD) -> None:
        self.known, self.each, self.heard = known, each, set[Any]()

    @property
    def window(self) -> int:
        """Tasks in flight at the same time."""
        return max(FEWEST, AHEAD * len(self.heard)) if self.known is None else self.each * self.known

    @abstractmethod
    def tasks(self) -> Iterator[T]:
        """All tasks; the next one is asked for when there is room in the window."""

    @abstractmethod
    def send(self, executor: Any, task: T, attempt: int) -> Future[R]:
        """Hand a task over. attempt: 1 for the first try."""

    @abstractmethod
    def done(self, task: T, result: R) -> None:
        """Take a result in."""

    def failed(self, task: T, error: BaseException) -> None:
        """Raise what is to be said of a task whose last try failed; otherwise the error itself is raised."""

    def over(self) -> bool:
        """Asked at every turn of the loop: whether no task is to begin any more."""
        return False

    def halt(self) -> None:
        """Tell the tasks that run that nobody wants their results any more."""


def work_on(place: AbstractContextManager[Any], work: Work[T, R]) -> None:
    """Do all tasks on the executor that `place` opens.

    A task that fails is tried again, `work.tries` times in all. Whatever ends the work early, Ctrl-C too,
    calls back all tasks that have not begun and ends those that run.
    """
    following = work.tasks()
    running: dict[Future[R], tuple[T, int]] = {}
    with postponed_interrupts() as ask, place as executor:
        try:
            while True:
                ask()
                if work.over():
                    following = iter(())
                    running = {future: task for future, task in running.items() if not future.cancel()}
                for task in islice(following, max(0, work.window - len(running))):
                    running[work.send(executor, task, 1)] = task, 1
                if not running:
                    return
                finished, _ = wait(running, timeout=LISTEN, return_when=FIRST_COMPLETED)
                for future in finished:
                    task, attempt = running.pop(future)
                    try:
                        result = future.result()
                    except (Exception, CancelledError) as error:
                        if attempt >= work.tries:
                            work.failed(task, error)
                            raise
                        running[work.send(executor, task, attempt + 1)] = task, attempt + 1
                    else:
                        work.done(task, result)
        except BaseException:
            for future in running:
                future.cancel()
            work.halt()
            raise


@contextmanager
def threads_of(count: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads of this process, gone at the end."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="lighttail")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Blocks(Work[int, int]):
    """Blocks on threads of this process; the kernels look at `stop`. An error is raised as it is."""

    tries = 1

    def __init__(
        self, play: Callable[[int, int], int], size: int, paths: int, threads: int, stop: Any, report: Report
    ) -> None:
        super().__init__(threads)
        self.play, self.size, self.paths, self.stop, self.report = play, size, paths, stop, report
        self.finished = 0

    def tasks(self) -> Iterator[int]:
        return iter(range(math.ceil(self.paths / self.size)))

    def send(self, executor: Any, task: int, attempt: int) -> Future[int]:
        return executor.submit(self.play, task, min(self.paths, (task + 1) * self.size))  # type: ignore[no-any-return]

    def done(self, task: int, result: int) -> None:
        self.finished += result
        self.report(self.finished, self.paths)

    def halt(self) -> None:
        self.stop[0] = 1


def run_blocks(
    play: Callable[[int, int], int], size: int, paths: int, threads: int, stop: Any, report: Report
) -> None:
    """Play all blocks of `size` paths each on threads.

    play(block, until) plays the paths block * size to until - 1 and returns how many these are.
    """
    blocks = math.ceil(paths / size)
    work_on(threads_of(min(threads, blocks)), _Blocks(play, size, paths, threads, stop, report))


class Jobs(Work[T, Part]):
    """Blocks of jobs, which travel to the workers of an executor. flag: the file of `stop_flag`."""

    def __init__(self, flag: Path, known: int | None = None, each: int = AHEAD) -> None:
        super().__init__(known, each)
        self.flag = flag
        self._message: tuple[Job, bytes] | None = None  # of the latest job

    @abstractmethod
    def part_of(self, task: T) -> tuple[Job, int, int]:
        """The job that a task is a part of, its first block, and the block after its last."""

    def message(self, job: Job) -> bytes:
        """A job as bytes."""
        if self._message is None or self._message[0] is not job:
            self._message = job, pickled(job)
        return self._message[1]

    def send(self, executor: Any, task: T, attempt: int) -> Future[Part]:
        job, first, until = self.part_of(task)
        message = self.message(job)
        try:
            future = executor.submit(play_blocks, message, first, until, attempt)
        except Exception as error:
            what = "not played, since the executor takes no more tasks"
            raise _failure(job, first, until, what, error) from error
        if not isinstance(future, Future):
            raise refuse("executor", executor, EXECUTOR)
        return future

    def failed(self, task: T, error: BaseException) -> None:
        raise _failure(*self.part_of(task), f"failed {TRIES} times", error) from error

    def halt(self) -> None:
        with suppress(OSError):
            self.flag.write_text("stop")


def _failure(job: Job, first: int, until: int, what: str, error: BaseException) -> BlocksFailed:
    which = f"block {first}" if first == until - 1 else f"blocks {first} to {until - 1}"
    cause = " ".join(str(error).split())
    play = job.play
    return BlocksFailed(
        f"{which} of simulate({play.policy!r}, {play.problem!r}, horizon={play.horizon}, paths={play.paths}, "
        f"seed={play.seed}, method={play.method!r}): {what} ({type(error).__name__}: {cause})"
    )


@dataclass
class Cuts:
    """How the blocks of a simulation are cut into tasks; this changes no bit.

    The first tasks are single blocks, to see how long one takes. Shorter tasks at the end let all workers
    finish together. seconds: that a task should take. workers: those that have been heard of.
    """

    blocks: int
    seconds: float
    workers: set[Any]
    following: int = 0
    played: int = 0  # blocks, and the seconds that they took
    took: float = 0.0

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


class _Simulation(Jobs[tuple[int, int]]):
    """All blocks of one simulation; `put` takes in the paths of each task as it ends."""

    def __init__(self, job: Job, flag: Path, put: Callable[[slice, Any], None], report: Report) -> None:
        super().__init__(flag)
        self.job, self.put, self.report, self.finished = job, put, report, 0
        seconds = TASK_SECONDS + len(self.message(job)) / BYTES_A_SECOND
        self.cuts = Cuts(job.play.blocks, seconds, self.heard)

    def tasks(self) -> Iterator[tuple[int, int]]:
        while self.cuts.following < self.cuts.blocks:
            yield self.cuts.next()

    def part_of(self, task: tuple[int, int]) -> tuple[Job, int, int]:
        return self.job, *task

    def done(self, task: tuple[int, int], result: Part) -> None:
        rows = self.job.play.rows(*task)
        self.put(rows, result.content)
        self.cuts.heard(result, task[1] - task[0])
        self.finished += rows.stop - rows.start
        self.report(self.finished, self.job.play.paths)


def run_tasks(executor: Any, play: Play, put: Callable[[slice, Any], None], report: Report) -> None:
    """Play all blocks on the executor, which stays open."""
    with stop_flag() as flag:
        probe = probe_of(play.policy, play.problem, play.horizon, play.method, play.course)
        job = Job(play, probe, str(flag))
        work_on(nullcontext(executor), _Simulation(job, flag, put, report))


@contextmanager
def stop_flag() -> Iterator[Path]:
    """An empty file, which tells workers on this machine to go on; `Jobs.halt` writes into it.

    It then stays until the process ends: a worker may still be starting, and would not miss it.
    """
    with tempfile.NamedTemporaryFile(prefix="lighttail-", delete=False) as file:
        flag = Path(file.name)
    try:
        yield flag
        flag.unlink(missing_ok=True)
    except BaseException:
        atexit.register(flag.unlink, missing_ok=True)
        raise


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
