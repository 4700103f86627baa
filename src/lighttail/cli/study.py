"""The commands `run` and `report`: a study from one file, and its comparison."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import positive, refuse
from lighttail.cli.commands import Stopped, app
from lighttail.cli.options import print_line, warnings_as_lines
from lighttail.reading.words import parse_whole
from lighttail.system.memory import in_bytes

FRAME, COLUMN = 2000, 400  # bytes of a file, and of a column, that hold no paths
UNFINISHED = 3  # the exit code of a run that its budget ended
SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file, such as study.toml.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results.", show_default="beside the file, named after the study"),
    ] = None,
    executor: Annotated[str, typer.Option(help="threads, processes or dask:ADDRESS.")] = "threads",
    workers_text: Annotated[
        str | None,
        typer.Option("--workers", metavar="N", help="Threads or processes.", show_default="one a processor"),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda for an NVIDIA GPU.")] = "cpu",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Begin nothing new after so long: 90s, 10m, 2h, 1d.", show_default="none"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what there is to do; play and write nothing.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove replaced pieces and files that the study no longer has.")
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Make a lost or damaged manifest anew from the pieces that fit the study."
        ),
    ] = False,
) -> None:
    """Play a study: problems x policies x horizons x sigmas x seeds, from one file into one folder.

    Stopped or killed at any moment, the same command goes on where it was and ends with the same bytes.
    """
    from lighttail.study import read_study
    from lighttail.study.cells import slug
    from lighttail.study.workers import check_workers

    workers = None if workers_text is None else parse_whole("workers", workers_text)
    check_workers(executor, workers, device)
    seconds = None if budget is None else _seconds(budget)
    with warnings_as_lines():
        study = read_study(file)
    folder = file.parent / slug(study.name) if out is None else out
    _say_out_of_reach(study)
    if dry_run:
        _plan(study, folder, device, rebuild)
        return
    settings = {"executor": executor, "workers": workers, "device": device, "budget": seconds, "prune": prune}
    settings["rebuild"] = rebuild
    again = _again(file, out, executor, workers_text, device)
    try:
        _run(study, folder, settings, again)
    except KeyboardInterrupt:
        raise Stopped(f"{_so_far(study, folder)}Go on with: {again}") from None


def _say_out_of_reach(study: Any) -> None:
    """Name the problems on which not even the worst choice loses what the study asks about."""
    if study.threshold is None:
        return
    most = {one.name: one.problem.worst_loss(1000) / 1000 for one in study.problems}  # sigma changes nothing
    for name, loss in most.items():
        if study.threshold > loss:
            print_line(
                f"threshold {study.threshold:g} is out of reach with problem {name!r}: "
                f"always taking the worst choice loses {loss:.3g} a round"
            )


def _so_far(study: Any, folder: Path) -> str:
    """How many files the folder of a run that was stopped lists; nothing if it did not get that far."""
    from lighttail.study.manifest import read_manifest

    manifest = read_manifest(folder)
    if manifest is None or manifest["study"] != study.text:  # of the study before it was edited
        return ""
    return f"{manifest['finished']:,} of {manifest['pieces']:,} files are there. "


def _again(file: Path, out: Path | None, executor: str, workers: str | None, device: str) -> str:
    """The command that goes on with a study."""
    words = ["lighttail", "run", str(file)]
    words += [] if out is None else ["--out", str(out)]
    words += [] if executor == "threads" else ["--executor", executor]
    words += [] if workers is None else ["--workers", workers]
    words += [] if device == "cpu" else ["--device", device]
    return shlex.join(words)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smhd]?)\s*", text.lower())
    if found is None:
        raise refuse("budget", text, "a time such as 90s, 10m, 2h or 1d")
    return positive("budget", float(found[1]) * SECONDS[found[2]])


def _plan(study: Any, folder: Path, device: str, rebuild: bool) -> None:
    from lighttail.study.cells import cells_of
    from lighttail.study.folder import Folder, check_belongs
    from lighttail.study.manifest import listed_in
    from lighttail.study.run import look_at

    manifest = check_belongs(folder, study, rebuild)
    cells = cells_of(study, device, sys.stderr.isatty(), listed_in(manifest, study))
    place = Folder(folder, study, manifest)
    found, damaged = look_at(place, cells)
    missing = {piece for cell in cells for piece in cell.pieces} - found.keys()
    short = len(place.superseded(cells, missing))
    print(_size(study, cells))
    pieces = sum(len(cell.pieces) for cell in cells)
    harm = f", {len(damaged):,} damaged" if damaged else ""
    anew = f", {short:,} of them short last pieces that are played anew" if short else ""
    there = f"{len(found):,} of {pieces:,} files are there{harm}"
    print(f"{folder}: {there}; {len(missing):,} are to be made{anew}")


def _size(study: Any, cells: Any) -> str:
    from lighttail.outcomes.format import counted

    paths = sum(cell.paths for cell in cells)
    pulls = sum(cell.paths * cell.horizon for cell in cells)
    room = 0
    for cell in cells:
        columns = 1 + (len(cell.problem.means) or 2)
        room += 8 * cell.paths * columns + len(cell.pieces) * (FRAME + COLUMN * columns)
    late = "".join(f"\n{one.title}: {one.course.words()}" for one in study.problems if one.course.late)
    return (
        f"{study.name}: {counted(len(cells), 'cell')}, {counted(paths, 'path')}, {pulls:,} pulls, "
        f"about {in_bytes(room)} at most on disk{late}"
    )


def _run(study: Any, folder: Path, settings: dict[str, Any], again: str) -> None:
    from lighttail.outcomes.format import counted
    from lighttail.study import run_study
    from lighttail.system.progress import bar

    if sys.stderr.isatty():
        paths = (
            study.paths * len(study.seeds) * len(study.horizons) * len(study.policies) * len(study.problems)
        )
        with bar(paths) as update:
            done = run_study(study, folder, **settings, progress=update)
    else:
        done = run_study(study, folder, **settings)
    for file in done.damaged:
        print_line(f"{file} was damaged and is made again")
    print(f"{study.name}: {done.finished:,} of {done.pieces:,} files, {done.played:,} of them new")
    if done.replaced:
        older = counted(len(done.replaced), "older piece")
        print(f"{older}, since replaced by longer ones: kept; --prune removes them")
    if done.strangers:
        kept = counted(len(done.strangers), "file")
        print(f"{kept} of cells, paths or data that the study no longer has: kept; --prune removes them")
    if settings["prune"]:
        print(f"--prune removed {counted(done.pruned, 'file')}")
    print(f"Digest: {done.digest}")
    print(f"Folder: {folder}")
    if done.complete:
        print(f"Report: {shlex.join(['lighttail', 'report', str(folder)])}")
    else:
        print(
            f"The budget is spent, {counted(done.pieces - done.finished, 'file')} left. Go on with: {again}"
        )
        raise typer.Exit(UNFINISHED)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a study.")],
) -> None:
    """Draw the comparison from a study's folder, finished or not."""
    from lighttail.study import load_study, report_study
    from lighttail.study.report import not_played_words
    from lighttail.system.progress import bar

    with warnings_as_lines():
        results = load_study(folder)
    if sys.stderr.isatty():
        with bar(len(results.study.problems) * len(results.study.horizons), "pages") as update:
            page = report_study(results, update)
    else:
        page = report_study(results)
    told = json.loads(page.with_name("results.json").read_text())
    for one in told["comparisons"]:
        print(f"{_place(one)}: {one['verdict']}")
    for one in told["not_played"]:
        print(f"{_place(one)}. {not_played_words(one['policies'])}.")
    if not results.complete:
        print(f"The study is unfinished: {results.finished:,} of {results.pieces:,} files are there.")
    print(f"Report: {page}")


def _place(one: dict[str, Any]) -> str:
    """The problem, sigma and horizon of an entry of results.json."""
    sigma = "" if one["sigma"] is None else f", sigma {one['sigma']:g}"
    late = f" ({one['rewards'].rstrip('.')})" if "rewards" in one else ""
    return f"{one['name']}{sigma}, {one['horizon']:,} pulls{late}"
