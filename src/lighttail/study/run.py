"""Plays the missing pieces of a study, and writes each piece as soon as it is played.

Threads, processes, a Dask cluster, the caller's own executor, or a GPU play the pieces.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from lighttail.checks import positive, refuse, whole
from lighttail.gpu.run import Device, device_paths
from lighttail.records import Record
from lighttail.running.blocks import Job, Part, worker_name
from lighttail.running.pool import (
    check_executor,
    failure,
    lift,
    stop_flag,
    submit,
    threads_of,
    to_bytes,
    window_of,
    work_on,
)
from lighttail.running.prepare import MOST_THREADS, usable_processors
from lighttail.study.cells import Cell, Piece, cells_of, encode
from lighttail.study.file import Study
from lighttail.study.folder import Folder, check_belongs, opened
from lighttail.study.manifest import listed_in
from lighttail.system.progress import ReportPart

LISTING = 20  # the manifest is written again after this many times the time that writing it took
QUEUED = 2  # pieces per thread or process that are sent at the same time
CONNECT_SECONDS = 10
DASK = "dask:"
Where = tuple[str | Executor, int | None, str]  # executor, workers, device


@dataclass(frozen=True)
class Done:
    """How a run ended. played: how many pieces this run played. damaged: the files that it made again.
    replaced: short last pieces, made before paths were added, which longer pieces replaced. strangers: other
    files that do not belong to the study. pruned: how many of both were removed. digest: of all results."""

    folder: Path
    pieces: int
    finished: int
    played: int
    damaged: list[Path]
    replaced: list[Path]
    strangers: list[Path]
    pruned: int
    digest: str

    @property
    def complete(self) -> bool:
        return self.finished == self.pieces


def run_study(
    study: Study,
    folder: str | Path,
    *,
    executor: str | Executor = "threads",
    workers: int | None = None,
    device: str = "cpu",
    budget: float | None = None,
    prune: bool = False,
    rebuild: bool = False,
    progress: ReportPart | None = None,
) -> Done:
    """Play the missing pieces of a study into its folder.

    executor: "threads", "processes", "dask:ADDRESS", or any `concurrent.futures.Executor`, which stays open.
    workers: the number of threads or processes; by default one per usable processor.
    device: "cpu", or "cuda" for an NVIDIA GPU. budget: seconds after which nothing new is started.
    prune: remove older pieces that longer pieces replaced, and files of cells that the study no longer has.
    rebuild: make a lost or damaged manifest again from the pieces that fit the study.
    progress: a function that is called with (what is being done, number of paths done).
    """
    begun = time.monotonic()
    if not isinstance(study, Study):
        raise refuse("study", study, "a study, such as read_study(path) returns")
    check_workers(executor, workers, device)
    if budget is not None:
        positive("budget", budget)
    manifest = check_belongs(Path(folder), study, rebuild)
    cells = cells_of(study, device, progress is not None, listed_in(manifest, study))
    report = progress or (lambda label, done: None)
    with opened(Path(folder), study, cells, rebuild) as target:
        report("looking at what is there", 0)
        damaged = target.look()
        copies = target.look_at_inputs()
        target.settle()
        target.write_manifest()
        target.keep_inputs(copies)
        before = len(target.digests)
        until = None if budget is None else begun + budget
        try:
            _play(target, (executor, workers, device), until, report)
        except BaseException:
            with suppress(OSError):  # such as a full disk; the files can be read without a manifest
                target.write_manifest()
            raise
        older = {file for files in target.superseded(target.digests).values() for file in files}
        replaced, strangers = sorted(older), [file for file in target.strangers() if file not in older]
        if prune:
            target.prune([*replaced, *strangers])
        manifest = target.write_manifest()
    return Done(
        folder=Path(folder),
        pieces=manifest["pieces"],
        finished=len(target.digests),
        played=len(target.digests) - before,
        damaged=[*copies, *damaged],
        replaced=[] if prune else replaced,
        strangers=[] if prune else strangers,
        pruned=len(replaced) + len(strangers) if prune else 0,
        digest=manifest["digest"],
    )


class _Pieces:
    """The missing pieces, each of which is written into the folder as soon as it is played."""

    def __init__(self, folder: Folder, report: ReportPart) -> None:
        self.folder, self.report = folder, report
        self.finished = sum(piece.rows for piece in folder.digests)
        self.workers: set[Any] = set()  # the workers that have sent a piece
        self.due = time.monotonic() + 1.0  # when to write the manifest

    def missing(self) -> list[Piece]:
        """The first piece of every cell, then the second, so that an unfinished study can be compared."""
        pieces = (piece for cell in self.folder.cells for piece in cell.pieces)
        missing = [piece for piece in pieces if piece not in self.folder.digests]
        return sorted(missing, key=lambda piece: piece.first // piece.cell.way.per_piece)

    def done(self, piece: Piece, part: Part) -> None:
        """Keep the piece that a task returned."""
        self.workers.add(part.worker)
        assert isinstance(part.content, Record)
        self.folder.keep(piece, encode(piece.stamp, part.content))
        self.finished += piece.rows
        self.tell(piece)

    def tell(self, piece: Piece) -> None:
        self.report(f"{piece.cell.policy_name} on {piece.cell.setting.title}", self.finished)

    def over(self, until: float | None) -> bool:
        """Whether it is later than `until`. Also writes the manifest from time to time.

        A piece that the manifest does not list yet has its own digest.
        """
        if (start := time.monotonic()) >= self.due:
            self.folder.write_manifest()
            self.due = time.monotonic() + max(1.0, LISTING * (time.monotonic() - start))
        return until is not None and time.monotonic() >= until


def _play(folder: Folder, where: Where, until: float | None, report: ReportPart) -> None:
    """Play the missing pieces. After `until`, only pieces that have begun are finished."""
    pieces, known = _Pieces(folder, report), count_of(*where)
    missing = pieces.missing()
    if not missing:
        return
    with stop_flag() as flag:

        @lru_cache(maxsize=1)  # the pieces of a cell come one after the other
        def job_of(cell: Cell) -> tuple[Job, bytes]:
            setting = cell.setting
            played = (cell.policy, setting.problem, cell.horizon, cell.paths, cell.seed, *cell.way[:2])
            probe = b"" if cell.way.precision else cell.checked_probe()  # a GPU has no workers to compare
            job = Job(*played, "paths", setting.course, probe, str(flag))
            return job, to_bytes(job)

        def send(executor: Any, piece: Piece, attempt: int) -> Future[Part]:
            pieces.tell(piece)
            if where[2] != "cpu":
                return executor.submit(play_on_device, piece)  # type: ignore[no-any-return]
            return submit(executor, *job_of(piece.cell), piece.blocks, attempt)

        work_on(
            pool_of(*where),
            missing,
            send,
            pieces.done,
            window=lambda: window_of(pieces.workers) if known is None else QUEUED * known,
            halt=lambda: lift(flag),
            failed=lambda piece, error: failure(job_of(piece.cell)[0], piece.blocks, error),
            over=lambda: pieces.over(until),
        )


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
    record = device_paths(
        cell.policy, cell.setting.problem, cell.horizon, rows, cell.seed, cell.way.precision
    )
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
