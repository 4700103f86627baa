"""Plays the missing pieces of a study on any executor, and writes each piece as soon as it is played."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lighttail.checks import positive, refuse
from lighttail.records import Record
from lighttail.running.blocks import Job, Part
from lighttail.running.pool import failure, lift, stop_flag, submit, to_bytes, window_of, work_on
from lighttail.study.cells import Cell, Piece, cells_of
from lighttail.study.file import Study
from lighttail.study.folder import Folder, check_belongs, opened
from lighttail.study.manifest import Found, listed_in
from lighttail.study.parquet import encode
from lighttail.study.workers import QUEUED, check_workers, count_of, play_on_device, pool_of

LISTING = 20  # the manifest is written again after this many times the time that writing it took
Report = Callable[[str, int], None]
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
    progress: Report | None = None,
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
    with opened(Path(folder), study, rebuild) as place:
        report("looking at what is there", 0)
        found, damaged = look_at(place, cells)
        copies = place.look_at_inputs()
        place.settle(cells)
        place.write_manifest(cells, found)
        place.keep_inputs(copies)
        before = len(found)
        until = None if budget is None else begun + budget
        try:
            _play(place, cells, found, (executor, workers, device), until, report)
        except BaseException:
            with suppress(OSError):  # such as a full disk; the files can be read without a manifest
                place.write_manifest(cells, found)
            raise
        replaced, strangers = _not_needed(place, cells, found)
        if prune:
            place.prune([*replaced, *strangers])
        manifest = place.write_manifest(cells, found)
    return Done(
        folder=Path(folder),
        pieces=manifest["pieces"],
        finished=len(found),
        played=len(found) - before,
        damaged=[*copies, *damaged],
        replaced=[] if prune else replaced,
        strangers=[] if prune else strangers,
        pruned=len(replaced) + len(strangers) if prune else 0,
        digest=manifest["digest"],
    )


def look_at(place: Folder, cells: list[Cell]) -> tuple[Found, list[Path]]:
    """The pieces that fit, and the damaged files. Refuses to rebuild the manifest of another study."""
    found, damaged = place.look(cells)
    if place.rebuilt and not found:
        allowed = f"a new folder, or one with pieces of study {place.study.name!r}"
        other = f"none in {str(place.path)!r} fits it"
        raise refuse("out", str(place.path), allowed, found=other)
    return found, damaged


def _not_needed(place: Folder, cells: list[Cell], found: Found) -> tuple[list[Path], list[Path]]:
    """Older pieces that longer pieces replaced, and files that do not belong to the study."""
    replaced = {file for files in place.superseded(cells, found).values() for file in files}
    return sorted(replaced), [file for file in place.strangers(cells) if file not in replaced]


class _Pieces:
    """The missing pieces, each of which is written into the folder as soon as it is played."""

    def __init__(self, folder: Folder, cells: list[Cell], found: Found, report: Report) -> None:
        self.folder, self.cells, self.found, self.report = folder, cells, found, report
        self.finished = sum(piece.rows for piece in found)
        self.workers: set[Any] = set()  # the workers that have sent a piece
        self.due = time.monotonic() + 1.0  # when to write the manifest

    def missing(self) -> list[Piece]:
        """The first piece of every cell, then the second, so that an unfinished study can be compared."""
        missing = [piece for cell in self.cells for piece in cell.pieces if piece not in self.found]
        return sorted(missing, key=lambda piece: piece.first // piece.cell.way.size)

    def done(self, piece: Piece, part: Part) -> None:
        """Keep the piece that a task returned."""
        self.workers.add(part.worker)
        assert isinstance(part.content, Record)
        self.found[piece] = self.folder.keep(piece, encode(piece.about, part.content))
        self.finished += piece.rows
        self.tell(piece)

    def tell(self, piece: Piece) -> None:
        self.report(f"{piece.cell.policy_name} on {piece.cell.setting.title}", self.finished)

    def over(self, until: float | None) -> bool:
        """Whether it is later than `until`. Also writes the manifest from time to time.

        A piece that the manifest does not list yet has its own digest.
        """
        if (start := time.monotonic()) >= self.due:
            self.folder.write_manifest(self.cells, self.found)
            self.due = time.monotonic() + max(1.0, LISTING * (time.monotonic() - start))
        return until is not None and time.monotonic() >= until


def _play(
    folder: Folder, cells: list[Cell], found: Found, where: Where, until: float | None, report: Report
) -> None:
    """Play the missing pieces. After `until`, only pieces that have begun are finished."""
    pieces, known = _Pieces(folder, cells, found, report), count_of(*where)
    missing = pieces.missing()
    if not missing:
        return
    with stop_flag() as flag:

        @lru_cache(maxsize=1)  # the pieces of a cell come one after the other
        def job_of(cell: Cell) -> tuple[Job, bytes]:
            played = (cell.policy, cell.problem, cell.horizon, cell.paths, cell.seed, *cell.way[:2])
            probe = b"" if cell.way.precision else cell.checked_probe()  # a GPU has no workers to compare
            job = Job(*played, "paths", cell.course, probe, str(flag))
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
