"""Play a study: the pieces that are missing, on any executor, each kept as soon as it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lighttail.blocks import Job, Part
from lighttail.executors import pickled, result_of, stop_flag, submit
from lighttail.study.cells import Cell, Piece, cells_of
from lighttail.study.file import Study
from lighttail.study.folder import Folder, Found, opened
from lighttail.study.parquet import encode, pyarrow
from lighttail.study.workers import Pool, check_workers, play_on_device, pool_of
from lighttail.validation import positive

MANIFEST_SECONDS = 10.0  # between two manifests; what is not listed yet is found by its own digest
Report = Callable[[str, int], None]


@dataclass(frozen=True)
class Done:
    """How a run ended. played: the pieces that this run played. damaged: files that it made again.
    strangers: files in the folder that are not the study's. digest: of all results so far."""

    folder: Path
    pieces: int
    finished: int
    played: int
    damaged: list[Path]
    strangers: list[Path]
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
    progress: Report | None = None,
) -> Done:
    """Play what is missing of a study in its folder.

    executor: "threads", "processes", "dask:ADDRESS", or any `concurrent.futures.Executor`, which stays open.
    workers: threads or processes; one for each usable processor unless given.
    device: "cpu", or "cuda" where `simulate` takes it. budget: seconds after which nothing new is begun.
    prune: remove the files of cells that the study no longer has.
    progress: called with (what is being done, paths done of all).
    """
    begun = time.monotonic()
    check_workers(executor, workers, device)
    if budget is not None:
        positive("budget", budget)
    pyarrow()
    cells = cells_of(study, device, progress is not None)
    report = progress or (lambda label, done: None)
    with opened(Path(folder), study) as place:
        found, damaged = place.look(cells, report)
        place.settle(cells)
        place.write_manifest(cells, found)
        place.keep_inputs()
        missing = [piece for cell in cells for piece in cell.pieces if piece not in found]
        before = len(found)
        until = None if budget is None else begun + budget
        try:
            if missing:
                _play(place, cells, found, missing, (executor, workers, device), until, report)
        except BaseException:
            with suppress(OSError):  # of a full disk; the files speak for themselves
                place.write_manifest(cells, found)
            raise
        strangers = place.strangers(cells)
        if prune:
            place.prune(strangers)
            strangers = []
        manifest = place.write_manifest(cells, found)
    total = manifest["pieces"]
    return Done(
        Path(folder), total, len(found), len(found) - before, damaged, strangers, manifest["digest"]
    )


class _Jobs:
    """The tasks of pieces: what is sent is made once a cell."""

    def __init__(self, flag: Path, device: str) -> None:
        self.flag, self.device = str(flag), device
        self._last: tuple[Cell, Job, bytes] | None = None

    def of(self, cell: Cell) -> tuple[Job, bytes]:
        """The job of a cell, and the same pickled."""
        if self._last is None or self._last[0] is not cell:
            played = (cell.policy, cell.problem, cell.horizon, cell.paths, cell.seed, cell.method)
            job = Job(*played, cell.block, cell.probe, self.flag)
            self._last = cell, job, pickled(job)
        return self._last[1:]

    def begin(self, pool: Pool, piece: Piece, attempt: int) -> Future[Part]:
        """Hand a piece to the pool."""
        if self.device != "cpu":
            return pool.executor.submit(play_on_device, piece.cell, self.device)
        return submit(pool.executor, *self.of(piece.cell), *piece.blocks, attempt)

    def end(self, future: Future[Part], piece: Piece, attempt: int) -> Part | None:
        """What a piece brought; None if it is to be tried again."""
        return result_of(future, self.of(piece.cell)[0], piece.blocks, attempt)


def _play(
    folder: Folder,
    cells: list[Cell],
    found: Found,
    missing: list[Piece],
    where: tuple[Any, Any, str],
    until: float | None,
    report: Report,
) -> None:
    """Play the missing pieces into the folder, a few in flight for every worker, until all or the budget is done."""
    done, written = sum(piece.rows for piece in found), time.monotonic()
    following = iter(missing)
    running: dict[Future[Part], tuple[Piece, int]] = {}
    with pool_of(*where) as pool, stop_flag() as flag:
        jobs = _Jobs(flag, where[2])
        try:
            while True:
                over = until is not None and time.monotonic() >= until
                if over:
                    running = {future: task for future, task in running.items() if not future.cancel()}
                while not over and len(running) < pool.window:
                    piece = next(following, None)
                    if piece is None:
                        break
                    report(f"{piece.cell.policy_name} on {piece.cell.setting.title}", done)
                    running[jobs.begin(pool, piece, 1)] = piece, 1
                if not running:
                    return
                left = None if until is None or over else max(0.0, until - time.monotonic())
                for future in wait(running, left, FIRST_COMPLETED).done:
                    piece, attempt = running.pop(future)
                    part = jobs.end(future, piece, attempt)
                    if part is None:
                        running[jobs.begin(pool, piece, attempt + 1)] = piece, attempt + 1
                        continue
                    pool.heard(part.worker)
                    found[piece] = folder.keep(piece, encode(piece.about, part.reward, part.pulls))
                    done += piece.rows
                    report(f"{piece.cell.policy_name} on {piece.cell.setting.title}", done)
                if time.monotonic() - written > MANIFEST_SECONDS:
                    folder.write_manifest(cells, found)
                    written = time.monotonic()
        except BaseException:
            for future in running:
                future.cancel()
            raise
