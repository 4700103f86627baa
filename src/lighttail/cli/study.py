"""The commands `run` and `report`: a study from one file, and its comparison."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from lighttail.checks import positive, refuse
from lighttail.cli.app import Stopped, app
from lighttail.cli.options import (
    DeviceWord,
    KindWord,
    command_line,
    kind_from,
    print_line,
    warnings_as_lines,
    whole_option,
)
from lighttail.outcomes.format import counted
from lighttail.outcomes.losing import out_of_reach
from lighttail.system.memory import in_bytes
from lighttail.system.progress import parts_reporter

FRAME, COLUMN = 2000, 400  # bytes per file, and per column of a file, that hold no paths
UNFINISHED = 3  # the exit code of a run whose budget is spent
SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file, such as study.toml.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results.", show_default="beside the file, named after the study"),
    ] = None,
    executor: Annotated[str, typer.Option(help="threads, processes or dask:ADDRESS.")] = "threads",
    workers: Annotated[
        int | None,
        whole_option("workers", help="How many threads or processes.", show_default="one per processor"),
    ] = None,
    device: DeviceWord = "cpu",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Start nothing new after this time: 90s, 10m, 2h, 1d.", show_default="none"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what there is to do, but play and write nothing.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove pieces that were replaced and files that are no longer needed."),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Rebuild a lost or damaged manifest from the pieces that fit the study."
        ),
    ] = False,
) -> None:
    """Play a study: problems x policies x horizons x sigmas x seeds, from one file into one folder.

    After a stop or a kill, the same command resumes where it stopped and ends with the same bytes.
    """
    from lighttail.study import read_study
    from lighttail.study.cells import slug
    from lighttail.study.run import check_workers

    check_workers(executor, workers, device)
    seconds = None if budget is None else _seconds(budget)
    with warnings_as_lines():
        study = read_study(file)
    folder = file.parent / slug(study.name) if out is None else out
    _say_out_of_reach(study)
    if dry_run:
        _plan(study, folder, device, rebuild)
        return
    settings = {"executor": executor, "workers": workers, "device": device, "budget": seconds}
    usual = {"executor": "threads", "device": "cpu"}
    changed = {name: settings[name] for name in usual if settings[name] != usual[name]}
    again = command_line("run", file, out=out, workers=workers, **changed)
    settings |= {"prune": prune, "rebuild": rebuild}
    try:
        _run(study, folder, settings, again)
    except KeyboardInterrupt:
        raise Stopped(f"{_so_far(study, folder)}Resume with: {again}") from None


def _say_out_of_reach(study: Any) -> None:
    """Name the problems on which not even the worst choice loses as much as the study's threshold."""
    if study.threshold is None:
        return
    losses = {one.name: one.problem.worst_loss(1000) / 1000 for one in study.problems}  # for every sigma
    for name, loss in losses.items():
        if out_of_reach(study.threshold, loss):
            print_line(
                f"threshold {study.threshold:g} is out of reach with problem {name!r}: "
                f"always taking the worst choice loses {loss:.3g} per round"
            )


def _so_far(study: Any, folder: Path) -> str:
    """How many files there are after a stop. Empty if the manifest of this study was not yet written."""
    from lighttail.study.manifest import NoManifest, read_manifest

    try:
        manifest = read_manifest(folder)
    except NoManifest:  # it was not yet made again
        return ""
    if manifest is None or manifest["study"] != study.text:  # the study was edited since
        return ""
    return f"{manifest['finished']:,} of {manifest['pieces']:,} files are there. "


def _seconds(text: str) -> float:
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smhd]?)\s*", text.lower())
    if found is None:
        raise refuse("budget", text, "a time such as 90s, 10m, 2h or 1d")
    return positive("budget", float(found[1]) * SECONDS[found[2]])


def _plan(study: Any, folder: Path, device: str, rebuild: bool) -> None:
    from lighttail.study.cells import cells_of
    from lighttail.study.folder import Folder, check_belongs
    from lighttail.study.manifest import listed_in

    manifest = check_belongs(folder, study, rebuild)
    cells = cells_of(study, device, True, listed_in(manifest, study))
    target = Folder(folder, study, cells, manifest)
    damaged, digests = target.look(), target.digests
    pieces = [piece for cell in cells for piece in cell.pieces]
    missing = set(pieces) - digests.keys()
    short = len(target.superseded(missing))
    print(_size(study, cells))
    harm = f", {len(damaged):,} damaged" if damaged else ""
    anew = f", {short:,} of them to replace short last pieces" if short else ""
    there = f"{len(digests):,} of {len(pieces):,} files are there{harm}"
    print(f"{folder}: {there}; {len(missing):,} are to be made{anew}")


def _size(study: Any, cells: Any) -> str:
    paths = sum(cell.paths for cell in cells)
    pulls = sum(cell.paths * cell.horizon for cell in cells)
    bytes_ = 0
    for cell in cells:
        columns = 1 + (len(cell.setting.problem.means) or 2)
        bytes_ += 8 * cell.paths * columns + len(cell.pieces) * (FRAME + COLUMN * columns)
    late = "".join(
        f"\n{one.title}: {one.course.words()}" for one in study.problems if not one.course.straight
    )
    return (
        f"{study.name}: {counted(len(cells), 'cell')}, {counted(paths, 'path')}, {pulls:,} pulls, "
        f"about {in_bytes(bytes_)} at most on disk{late}"
    )


def _run(study: Any, folder: Path, settings: dict[str, Any], again: str) -> None:
    from lighttail.study import run_study

    cells = len(study.seeds) * len(study.horizons) * len(study.policies) * len(study.problems)
    with parts_reporter(True, study.paths * cells) as update:
        done = run_study(study, folder, **settings, progress=update)
    for file in done.damaged:
        print_line(f"{file} was damaged and was made again")
    print(f"{study.name}: {done.finished:,} of {done.pieces:,} files, {done.played:,} of them new")
    for files, what, why in (
        (done.replaced, "older piece", "that longer pieces replaced"),
        (done.strangers, "file", "of cells, paths or data that the study no longer has"),
    ):
        if files:
            print(f"{counted(len(files), what)} {why}: kept; --prune removes them")
    if settings["prune"]:
        print(f"--prune removed {counted(done.pruned, 'file')}")
    print(f"Digest: {done.digest}")
    print(f"Folder: {folder}")
    if done.complete:
        print(f"Report: {shlex.join(['lighttail', 'report', str(folder)])}")
    else:
        left = counted(done.pieces - done.finished, "file")
        print(f"The budget is spent; still to make: {left}. Resume with: {again}")
        raise typer.Exit(UNFINISHED)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a study.")],
    kind: KindWord = "pseudo-regret",
) -> None:
    """Draw the comparisons from the folder of a study, which may be unfinished."""
    from lighttail.study import load_study, report_study
    from lighttail.study.report import not_played_words

    lost = kind_from(kind)
    with warnings_as_lines():
        results = load_study(folder)
    pages = len(results.study.problems) * len(results.study.horizons)
    with parts_reporter(True, pages, "pages") as update:
        page = report_study(results, update, lost)
    told = json.loads(page.with_name("results.json").read_text())
    for one in told["comparisons"]:
        print(f"{_where(one)}: {one['verdict']}")
    for one in told["not_played"]:
        print(f"{_where(one)}. {not_played_words(one['policies'])}.")
    if not results.complete:
        print(f"The study is unfinished: {results.finished:,} of {results.pieces:,} files are there.")
    print(f"Report: {page}")


def _where(one: dict[str, Any]) -> str:
    """The problem, sigma and horizon of an entry of results.json."""
    sigma = "" if one["sigma"] is None else f", sigma {one['sigma']:g}"
    late = f" ({one['rewards'].rstrip('.')})" if "rewards" in one else ""
    return f"{one['name']}{sigma}, {one['horizon']:,} pulls{late}"
