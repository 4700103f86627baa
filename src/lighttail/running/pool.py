"""The one loop that runs tasks: blocks on threads or on any `concurrent.futures.Executor`, a study's pieces.

`work_on` keeps a few tasks in flight per worker, tries again what fails, hears Ctrl-C, and on an early end
calls all tasks back. docs/cluster.md says what happens when something goes wrong.
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


def work_on(
    place: AbstractContextManager[Any],
    tasks: Iterable[T],
    send: Callable[[Any, T, int], Future[R]],
    done: Callable[[T, R], None],
    *,
    window: Callable[[], int],
    halt: Callable[[], None],
    failed: Callable[[T, BaseException], Exception] | None = None,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Do all tasks on the executor that `place` opens.

    send(executor, task, attempt): hands a task over. done(task, result): takes a result in.
    window(): tasks in flight at the same time; the next task is asked for when there is room.
    halt(): tells the tasks that run that nobody wants their results. It is called where the work ends early,
    by Ctrl-C too, after all tasks that have not begun were called back.
    failed(task, error): the error to raise for a task that failed `TRIES` times; without this function the
    first error is raised as it is. over(): asked at every turn, whether no task is to begin any more.
    """
    following, running = iter(tasks), dict[Future[R], tuple[T, int]]()
    with postponed_interrupts() as ask, place as executor:
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


@contextmanager
def threads_of(count: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads of this process, gone at the end."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="lighttail")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_blocks(
    play: Callable[[int, int], int], size: int, paths: int, threads: int, stop: Any, report: Report
) -> None:
    """Play all blocks of `size` paths each on threads; whatever ends early sets the kernels' `stop`.

    play(block, until) plays the paths block * size to until - 1 and returns how many these are.
    """
    blocks, finished = math.ceil(paths / size), 0

    def send(pool: Any, block: int, attempt: int) -> Future[int]:
        return pool.submit(play, block, min(paths, (block + 1) * size))  # type: ignore[no-any-return]

    def done(block: int, played: int) -> None:
        nonlocal finished
        finished += played
        report(finished, paths)

    def halt() -> None:
        stop[0] = 1

    place = threads_of(min(threads, blocks))
    work_on(place, range(blocks), send, done, window=lambda: AHEAD * threads, halt=halt)


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

    def all(self) -> Iterator[tuple[int, int]]:
        while self.following < self.blocks:
            yield self.next()

    def heard(self, part: Part, blocks: int) -> None:
        """Learn from a result."""
        self.workers.add(part.worker)
        self.played += blocks
        self.took += part.seconds


def window_of(workers: set[Any]) -> int:
    """Tasks in flight on an executor of which so many workers have been heard."""
    return max(FEWEST, AHEAD * len(workers))


def run_tasks(executor: Any, job: Job, put: Callable[[int, Any], None], report: Report) -> None:
    """Play all blocks on the executor, which stays open; `put` takes in the paths of each task as it ends."""
    with stop_flag() as flag:
        probe = probe_of(job.policy, job.problem, job.horizon, job.method, job.course)
        job = replace(job, probe=probe, flag=str(flag))
        message = to_bytes(job)
        tasks = Tasks(job.blocks, TASK_SECONDS + len(message) / BYTES_A_SECOND)
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
    """Hand over the task of playing some blocks, the first one and the one after the last. message: the job,
    to_bytes."""
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
    """What is said of blocks that could not be played."""
    first, last = blocks[0], blocks[1] - 1
    which = f"block {first}" if first == last else f"blocks {first} to {last}"
    cause = " ".join(str(error).split())
    return BlocksFailed(
        f"{which} of simulate({job.policy!r}, {job.problem!r}, horizon={job.horizon}, paths={job.paths}, "
        f"seed={job.seed}, method={job.method!r}): {what} ({type(error).__name__}: {cause})"
    )


@contextmanager
def stop_flag() -> Iterator[Path]:
    """An empty file, which tells workers on this machine to go on; `lift` tells them to stop.

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


def lift(flag: Path) -> None:
    """Write into the file of `stop_flag`."""
    with suppress(OSError):
        flag.write_text("stop")


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
            to_bytes(part)
        except Exception as error:
            raise refuse(name, part, f"one that pickle can send to the workers ({error})") from None


def to_bytes(part: Any) -> bytes:
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
