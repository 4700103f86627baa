"""The one loop that runs tasks: blocks on threads or on any `concurrent.futures.Executor`, and studies.

`work_on` keeps a few tasks per worker in flight, tries a failed task again, notices Ctrl-C, and cancels all
tasks if the work ends early. docs/cluster.md says what happens when something goes wrong.
"""

from __future__ import annotations

import atexit
import math
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from lighttail.checks import refuse
from lighttail.reading import own
from lighttail.running.blocks import Job, Part, play_blocks, probe_of
from lighttail.system.progress import Report

LISTEN = 0.1  # seconds between two checks for Ctrl-C
TRIES = 3  # tries per task on an executor
AHEAD = 4  # tasks in flight per worker
FEWEST = 8  # tasks in flight before any worker is known
TASK_SECONDS = 0.1  # the play of a task, which takes far longer than its transfer
BYTES_PER_SECOND = 20e6  # of a transfer: a task with a large message, such as contexts, should take longer
EXECUTOR = "a concurrent.futures.Executor, such as ProcessPoolExecutor() or a Dask client's get_executor()"
T = TypeVar("T")
R = TypeVar("R")


class BlocksFailed(RuntimeError):
    """Some blocks could not be played on the executor. The text names them, the simulation and the cause."""


def work_on(
    opened: AbstractContextManager[Any],
    tasks: Iterable[T],
    send: Callable[[Any, T, int], Future[R]],
    done: Callable[[T, R], None],
    *,
    window: Callable[[], int],
    halt: Callable[[], None],
    failed: Callable[[T, BaseException], Exception] | None = None,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Do all tasks on the executor that `opened` gives.

    send(executor, task, attempt): submits a task. done(task, result): takes the result of a task.
    window(): the number of tasks in flight, at most; the next task is made when there is room for it.
    halt(): tells the running tasks that nobody wants their results. It is called if the work ends early, also
    by Ctrl-C, after all tasks that have not begun were cancelled.
    failed(task, error): the error to raise for a task that failed `TRIES` times; without this function the
    first error is raised as it is. over(): whether no further task may begin; called at every turn.
    """
    following, running = iter(tasks), dict[Future[R], tuple[T, int]]()
    with postponed_interrupts() as ask, opened as executor:
        try:
            while True:
                ask()
                if over():
                    following = iter(())
                    running = {future: task for future, task in running.items() if not future.cancel()}
                for task in islice(following, max(0, window() - len(running))):
                    running[send(executor, task, 1)] = task, 1
                if not running:
                    return
                for future in wait(running, timeout=LISTEN, return_when=FIRST_COMPLETED)[0]:
                    task, attempt = running.pop(future)
                    try:
                        result = future.result()
                    except (Exception, CancelledError) as error:
                        if failed is None:
                            raise
                        if attempt == TRIES:
                            raise failed(task, error) from error
                        running[send(executor, task, attempt + 1)] = task, attempt + 1
                    else:
                        done(task, result)
        except BaseException:
            for future in running:
                future.cancel()
            halt()
            raise


@contextmanager
def postponed_interrupts() -> Iterator[Callable[[], None]]:
    """Within this context, Ctrl-C raises KeyboardInterrupt only when the function that it gives is called.

    An interrupt between two steps of `concurrent.futures` can leave a lock closed for ever, so that closing
    the pool would never end. KeyboardInterrupt is raised at the latest at the end of the context. A second
    Ctrl-C raises it at once.
    """
    if (
        threading.current_thread() is not threading.main_thread()  # only the main thread is interrupted
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # another handler is in place
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


@contextmanager
def threads_of(count: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of `count` threads, which ends with the context."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="lighttail")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_blocks(
    play: Callable[[int, int], int], per_block: int, paths: int, threads: int, stop: Any, report: Report
) -> None:
    """Play all blocks of paths on threads; an early end sets the kernels' `stop`.

    play(block, until) plays the paths block * per_block to until - 1 and returns the number of these paths.
    """
    blocks, finished = math.ceil(paths / per_block), 0

    def send(pool: Any, block: int, attempt: int) -> Future[int]:
        return pool.submit(play, block, min(paths, (block + 1) * per_block))  # type: ignore[no-any-return]

    def done(block: int, played: int) -> None:
        nonlocal finished
        finished += played
        report(finished, paths)

    pool = threads_of(min(threads, blocks))
    work_on(pool, range(blocks), send, done, window=lambda: AHEAD * threads, halt=lambda: stop.fill(1))


@dataclass
class Tasks:
    """The blocks that are still to be played, and what is known about the workers.

    The first tasks are single blocks, which show how long a block takes. Shorter tasks at the end let all
    workers finish together. No bit depends on how the blocks are divided into tasks.
    """

    blocks: int
    seconds: float  # the time that a task should take
    following: int = 0
    played: int = 0  # blocks that were played, and the seconds that they took
    took: float = 0.0
    workers: set[tuple[str, int, int]] = field(default_factory=set)

    def next(self) -> tuple[int, int]:
        """The next task: its first block, and the block after its last."""
        fair = (self.blocks - self.following) / (2 * max(1, len(self.workers)))
        fitting = self.seconds * self.played / max(self.took, 1e-9)
        count = max(1, round(min(fitting, max(fair, fitting / 4))))
        first, self.following = self.following, min(self.blocks, self.following + count)
        return first, self.following

    def all(self) -> Iterator[tuple[int, int]]:
        while self.following < self.blocks:
            yield self.next()

    def heard(self, part: Part, blocks: int) -> None:
        self.workers.add(part.worker)
        self.played += blocks
        self.took += part.seconds


def window_of(workers: set[Any]) -> int:
    """The number of tasks in flight on an executor, of which these workers have returned results."""
    return max(FEWEST, AHEAD * len(workers))


def run_tasks(executor: Any, job: Job, put: Callable[[int, Any], None], report: Report) -> None:
    """Play all blocks on the executor, which stays open; `put` takes the paths of each task when it ends."""
    with stop_flag() as flag:
        probe = probe_of(job.policy, job.problem, job.horizon, job.method, job.course)
        job = replace(job, probe=probe, flag=str(flag))
        message = to_bytes(job)
        tasks = Tasks(job.blocks, TASK_SECONDS + len(message) / BYTES_PER_SECOND)
        finished = 0

        def send(executor: Any, blocks: tuple[int, int], attempt: int) -> Future[Part]:
            return submit(executor, job, message, blocks, attempt)

        def done(blocks: tuple[int, int], part: Part) -> None:
            nonlocal finished
            rows = job.rows(*blocks)
            put(rows.start, part.content)
            tasks.heard(part, blocks[1] - blocks[0])
            finished += rows.stop - rows.start
            report(finished, job.paths)

        work_on(
            nullcontext(executor),
            tasks.all(),
            send,
            done,
            window=lambda: window_of(tasks.workers),
            halt=lambda: lift(flag),
            failed=lambda blocks, error: failure(job, blocks, error),
        )


def submit(executor: Any, job: Job, message: bytes, blocks: tuple[int, int], attempt: int) -> Future[Part]:
    """Submit the task of playing blocks[0] to blocks[1] - 1. message: the job as bytes."""
    try:
        future = executor.submit(play_blocks, message, *blocks, attempt)
    except Exception as error:
        what = "not played, since the executor takes no more tasks"
        raise failure(job, blocks, error, what) from error
    if not isinstance(future, Future):
        raise refuse("executor", executor, EXECUTOR)
    return future


def failure(
    job: Job, blocks: tuple[int, int], error: BaseException, what: str = f"failed {TRIES} times"
) -> BlocksFailed:
    first, last = blocks[0], blocks[1] - 1
    which = f"block {first}" if first == last else f"blocks {first} to {last}"
    cause = " ".join(str(error).split())
    return BlocksFailed(
        f"{which} of simulate({job.policy!r}, {job.problem!r}, horizon={job.horizon}, paths={job.paths}, "
        f"seed={job.seed}, method={job.method!r}): {what} ({type(error).__name__}: {cause})"
    )


@contextmanager
def stop_flag() -> Iterator[Path]:
    """An empty file, which tells the workers on this machine to continue; `lift` tells them to stop.

    After `lift` the file stays until the process ends, because a worker may still be starting.
    """
    with tempfile.NamedTemporaryFile(prefix="lighttail-", delete=False) as file:
        flag = Path(file.name)
    try:
        yield flag
        flag.unlink(missing_ok=True)
    except BaseException:
        atexit.register(flag.unlink, missing_ok=True)
        raise


def lift(flag: Path) -> None:
    """Write into the file of `stop_flag`, so that workers stop."""
    with suppress(OSError):
        flag.write_text("stop")


def check_executor(executor: Any, threads: Any) -> None:
    """Raise BadInput if the executor takes no tasks, or if threads are given, too."""
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise refuse("executor", executor, EXECUTOR)
    if threads is not None:
        raise refuse("threads", threads, "left out where an executor is given, which has its own workers")


def check_travels(**parts: Any) -> None:
    """Raise BadInput for the first part, by its name, that cannot be sent to a worker."""
    for name, part in parts.items():
        try:
            to_bytes(part)
        except Exception as error:
            raise refuse(name, part, f"one that pickle can send to the workers ({error})") from None


def to_bytes(value: Any) -> bytes:
    """The value as bytes. A class from a user's file is sent with the file. Whatever else only this process
    can import is sent by value if cloudpickle is installed."""
    with suppress(Exception):
        plain = own.pickled(value)
        if b"__main__" not in plain:
            return plain
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    return cloudpickle.dumps(value)  # type: ignore[no-any-return]
