"""Play a study: the pieces that are missing, on any executor, each kept as soon as it is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from lighttail.checks import positive, refuse
from lighttail.running.blocks import POLL, Job, Part
from lighttail.running.pool import pickled, result_of, stop_flag, submit
from lighttail.study.cells import Cell, Piece, cells_of
from lighttail.study.file import Study
from lighttail.study.folder import Folder, check_belongs, opened
from lighttail.study.manifest import Found, listed_in
from lighttail.study.parquet import encode
from lighttail.study.workers import Pool, check_workers, play_on_device, pool_of
from lighttail.system.interrupts import postponed_interrupts

LISTING = 20  # times as long as the last manifest took to write, and a second at least, until the next one
Report = Callable[[str, int], None]
Where = tuple[str | Executor, int | None, str]  # executor, workers, device


@dataclass(frozen=True)
class Done:
    """How a run ended. played: the pieces that this run played. damaged: files that it made again.
    replaced: short last pieces, from before paths were added, whose longer ones are there.
    strangers: other files in the folder that are not the study's. pruned: how many of both were removed.
    digest: of all results so far."""

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
    """Play what is missing of a study in its folder.

    executor: "threads", "processes", "dask:ADDRESS", or any `concurrent.futures.Executor`, which stays open.
    workers: threads or processes; one for each usable processor unless given.
    device: "cpu", or "cuda" for an NVIDIA GPU. budget: seconds after which nothing new is begun.
    prune: remove older pieces that longer ones replaced, and the files of cells that the study no longer has.
    rebuild: make a manifest that is lost or damaged anew from the pieces that fit the study.
    progress: called with (what is being done, paths done of all).
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
            with suppress(OSError):  # of a full disk; the files speak for themselves
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
    """The pieces that fit, and the damaged ones; no lost manifest is made anew for another study."""
    found, damaged = place.look(cells)
    if place.rebuilt and not found:
        allowed = f"a new folder, or one with pieces of study {place.study.name!r}"
        other = f"none in {str(place.path)!r} fits it"
        raise refuse("out", str(place.path), allowed, found=other)
    return found, damaged


def _not_needed(place: Folder, cells: list[Cell], found: Found) -> tuple[list[Path], list[Path]]:
    """Older pieces whose longer ones are there, and files that are not of the study."""
    replaced = {file for files in place.superseded(cells, found).values() for file in files}
    return sorted(replaced), [file for file in place.strangers(cells) if file not in replaced]


class _Player:
    """Plays pieces into a folder, a few in flight for every worker."""

    def __init__(self, folder: Folder, found: Found, pool: Pool, device: str, report: Report) -> None:
        self.folder, self.found, self.pool, self.device, self.report = folder, found, pool, device, report
        self.running: dict[Future[Part], tuple[Piece, Job, int]] = {}
        self.done = sum(piece.rows for piece in found)
        self._message: tuple[Job, bytes] | None = None  # of the latest cell

    def begin(self, piece: Piece, job: Job, attempt: int = 1) -> None:
        """Hand a piece to the pool."""
        self.report(_label(piece), self.done)
        future: Future[Part]
        if self.device != "cpu":
            future = self.pool.executor.submit(play_on_device, piece)
        else:
            if self._message is None or self._message[0] is not job:
                self._message = job, pickled(job)
            future = submit(self.pool.executor, *self._message, *piece.blocks, attempt)
        self.running[future] = piece, job, attempt

    def end(self, future: Future[Part]) -> None:
        """Keep what a task brought, or try it again."""
        piece, job, attempt = self.running.pop(future)
        part = result_of(future, job, piece.blocks, attempt)
        if part is None:
            self.begin(piece, job, attempt + 1)
            return
        self.pool.heard(part.worker)
        assert part.record is not None
        self.found[piece] = self.folder.keep(piece, encode(piece.about, part.record))
        self.done += piece.rows
        self.report(_label(piece), self.done)

    def call_back(self) -> None:
        """Take back the pieces that no worker has begun."""
        self.running = {future: task for future, task in self.running.items() if not future.cancel()}


def _label(piece: Piece) -> str:
    return f"{piece.cell.policy_name} on {piece.cell.setting.title}"


def _jobs(missing: Iterable[Piece], flag: Path) -> Iterator[tuple[Piece, Job]]:
    """Every piece with the job of its cell; one job for all pieces of a cell that follow each other."""
    for cell, pieces in groupby(missing, key=lambda piece: piece.cell):
        played = (cell.policy, cell.problem, cell.horizon, cell.paths, cell.seed, cell.method)
        probe = b"" if cell.precision is not None else cell.checked_probe()  # a GPU has no workers to check
        job = Job(*played, cell.block, probe, "paths", str(flag), cell.course)
        for piece in pieces:
            yield piece, job


def _play(
    folder: Folder, cells: list[Cell], found: Found, where: Where, until: float | None, report: Report
) -> None:
    """Play the pieces that are missing until all are there, or, after `until`, those that have begun.

    First the first piece of every cell, then the second: so an unfinished study can be compared.
    """
    missing = [piece for cell in cells for piece in cell.pieces if piece not in found]
    missing.sort(key=lambda piece: piece.first // piece.cell.size)
    if not missing:
        return
    with postponed_interrupts() as ask, pool_of(*where) as pool, stop_flag() as flag:
        player = _Player(folder, found, pool, where[2], report)
        following = _jobs(missing, flag)
        due = time.monotonic() + 1.0
        try:
            while True:
                ask()
                if until is not None and time.monotonic() >= until:
                    player.call_back()
                    following = iter(())
                for piece, job in islice(following, max(0, pool.window - len(player.running))):
                    player.begin(piece, job)
                if not player.running:
                    return
                for future in wait(player.running, POLL, FIRST_COMPLETED).done:
                    player.end(future)
                if time.monotonic() >= due:  # what is not listed yet is known by its own digest
                    start = time.monotonic()
                    folder.write_manifest(cells, found)
                    due = time.monotonic() + max(1.0, LISTING * (time.monotonic() - start))
        except BaseException:
            player.call_back()
            raise
