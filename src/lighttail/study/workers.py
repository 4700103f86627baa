"""What plays a study: threads, processes, a Dask cluster, the caller's own executor, or a GPU."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, get_args

from lighttail.checks import refuse, whole
from lighttail.gpu.run import Device, device_paths
from lighttail.running.blocks import Part, worker_name
from lighttail.running.pool import check_executor, threads_of
from lighttail.running.prepare import MOST_THREADS, usable_processors
from lighttail.study.cells import Piece

QUEUED = 2  # pieces per thread or process that are sent at the same time
CONNECT_SECONDS = 10
DASK = "dask:"


def check_workers(executor: Any, workers: Any, device: str) -> None:
    """Refuse a bad executor, number of workers or device, and any that cannot be combined."""
    named = isinstance(executor, str)
    if not named:
        check_executor(executor, None)
    elif executor not in ("threads", "processes") and not executor.startswith(DASK):
        raise refuse("executor", executor, "threads, processes or dask:ADDRESS")
    if workers is not None:
        whole("workers", workers, 1, most=MOST_THREADS)
        if not named or executor.startswith(DASK):
            raise refuse("workers", workers, "left out with an executor that has its own")
    if device not in get_args(Device):
        raise refuse("device", device, "cpu or cuda")
    if device != "cpu" and (executor != "threads" or workers is not None):
        raise refuse("device", device, "cpu if an executor or a number of workers is given")


def play_on_device(piece: Piece) -> Part:
    """The paths of a piece, played on a GPU."""
    cell: Any = piece.cell
    rows = (piece.first, piece.until)
    record = device_paths(cell.policy, cell.problem, cell.horizon, rows, cell.seed, cell.way.precision)
    return Part(record, 0.0, worker_name())


def count_of(executor: Any, workers: int | None, device: str) -> int | None:
    """The number of workers; None for an executor that does not tell it."""
    if not isinstance(executor, str) or executor.startswith(DASK):
        return None
    return 1 if device != "cpu" else workers or usable_processors()


@contextmanager
def pool_of(executor: Any, workers: int | None, device: str) -> Iterator[Any]:
    """The executor that a word names, which is closed at the end, or the caller's own, which stays open."""
    count = count_of(executor, workers, device)
    if not isinstance(executor, str):
        yield executor
    elif count is None:
        with _dask(executor.removeprefix(DASK)) as client:
            yield client.get_executor()
    elif executor == "threads":
        with threads_of(count) as pool:
            yield pool
    else:
        context = multiprocessing.get_context("spawn")
        processes = ProcessPoolExecutor(count, mp_context=context, initializer=_follow_the_caller)
        try:
            yield processes
        finally:
            processes.shutdown(wait=True, cancel_futures=True)


def _dask(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ImportError('executor dask needs distributed: pip install "lighttail[cluster]"') from None
    try:
        return Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError) as error:
        cause = " ".join(str(error).split())
        allowed = "dask: and the address of a scheduler that answers"
        found = f"is {DASK + address!r}"
        raise refuse("executor", DASK + address, allowed, found=found, more=f" ({cause})") from None


def _follow_the_caller() -> None:
    """In a worker process: leave Ctrl-C to the caller, and end when the caller has ended or was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    caller = multiprocessing.parent_process()
    assert caller is not None  # this is a worker

    def wait() -> None:
        caller.join()
        os._exit(1)

    threading.Thread(target=wait, name="lighttail-caller", daemon=True).start()
