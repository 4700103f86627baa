"""The folder of a study: its manifest, its files, and what of them can be used again."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import lighttail
from lighttail.files import NotWritten, in_a_sentence, leftovers, output_folder, whole_file
from lighttail.study.cells import KEY_LETTERS, Cell, Piece, slug
from lighttail.study.file import Study
from lighttail.study.parquet import fits, pyarrow
from lighttail.validation import BadInput, refuse

FORMAT = "lighttail study 1"
MANIFEST, CELLS, INPUTS, REPORT, LOCK = "manifest.json", "cells", "inputs", "report", ".lock"
PIECES = f"{'[0-9]' * 11}-{'[0-9]' * 11}.parquet"
KEYS = {"name", "versions", "study", "study_sha256", "inputs", "pieces", "finished", "digest", "cells"}
Found = dict[Piece, str]  # the pieces that are in the folder, and the sha256 of their files
AGAIN = "what was finished is whole; the same command goes on from there"


def versions() -> dict[str, str]:
    """What may change a bit of a path or a byte of a file."""
    import numba
    import numpy

    return {
        "lighttail": lighttail.__version__,
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "pyarrow": pyarrow().__version__,
    }


def read_manifest(path: Path, field: str = "out") -> dict[str, Any] | None:
    """The manifest of a study's folder; None where there is none."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        if manifest["format"] != FORMAT or not set(manifest) >= KEYS:
            raise ValueError
        return manifest  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise refuse(field, str(path), "a folder") from None
    except (ValueError, KeyError, TypeError):
        raise refuse(
            field, str(path), f"a folder whose {MANIFEST} is that of a study, or a new one"
        ) from None


def _check_empty(path: Path) -> None:
    """Refuse to begin a study in a folder that holds something else."""
    if path.is_dir():
        others = {entry.name for entry in path.iterdir()} - {LOCK, *(entry.name for entry in leftovers(path))}
        if others:
            raise refuse(
                "out", str(path), f"a new or empty folder, or that of a study, without {min(others)!r}"
            )


def check_belongs(path: Path, study: Study) -> dict[str, Any] | None:
    """The manifest, if the folder is of this study and was made by these versions; refuse any other."""
    now, manifest = versions(), read_manifest(path)
    if manifest is None:
        _check_empty(path)
        return None
    if manifest["name"] != study.name:
        raise BadInput(
            f"out must be the folder of study {study.name!r} or a new one, "
            f"but {str(path)!r} holds study {manifest['name']!r}"
        )
    for name, version in now.items():
        made = manifest["versions"].get(name)
        if made != version:
            raise BadInput(
                f"out must be made by {name} {version}, which runs now, or be a new folder, "
                f"but {str(path)!r} was made by {name} {made}"
            )
    return manifest


@contextmanager
def opened(path: Path, study: Study) -> Iterator[Folder]:
    """The folder, for one run at a time; it is made if need be."""
    check_belongs(path, study)  # nothing is written to a folder that is someone else's
    with output_folder("out", path), open(path / LOCK, "ab") as file:
        try:
            _lock(file)
        except BlockingIOError:
            raise BadInput(
                f"out must be a folder in which no other run is at work, but is {str(path)!r}"
            ) from None
        folder = Folder(path, study, check_belongs(path, study))
        for place in (path, *path.glob(f"{CELLS}/*"), path / INPUTS):
            for file_left in leftovers(place):
                file_left.unlink(missing_ok=True)
        yield folder


def _lock(file: Any) -> None:
    """Lock a file until it is closed; the system does that for a process that is killed."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise BlockingIOError from None
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Folder:
    """The files of a study. manifest: the one that was found."""

    def __init__(self, path: Path, study: Study, manifest: dict[str, Any] | None) -> None:
        self.path, self.study = path, study
        self._listed = {
            (cell["key"], file["first"], file["rows"]): file["sha256"]
            for cell in (manifest["cells"] if manifest is not None and is_whole(manifest) else ())
            for file in cell["files"]
        }
        self._places = {place.name[-KEY_LETTERS:]: place for place in self._cell_folders()}
        self.inputs = {name: _input_file(source) for name, source in study.inputs.items()}

    def _cell_folders(self) -> list[Path]:
        return sorted(place for place in (self.path / CELLS).glob("*") if place.is_dir())

    def look(self, cells: Iterable[Cell]) -> tuple[Found, list[Path]]:
        """The pieces of these cells that are there and whole, and the files that are damaged."""
        found: Found = {}
        damaged = []
        for cell in cells:
            place = self._place(cell)
            for piece in cell.pieces:
                file = place / piece.file
                if file.exists():
                    digest = self._whole(file, piece)
                    if digest is None:
                        damaged.append(file)
                    else:
                        found[piece] = digest
        return found, damaged

    def _place(self, cell: Cell) -> Path:
        """Where the cell's files are: a folder with its key, whatever the names were."""
        now = self.path / CELLS / cell.folder
        return now if now.is_dir() else self._places.get(cell.key[:KEY_LETTERS], now)

    def _whole(self, file: Path, piece: Piece) -> str | None:
        """The sha256 of a file that holds the piece; the manifest knows it, or else the file itself."""
        content = file.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        listed = self._listed.get((piece.cell.key, piece.first, piece.rows))
        whole = digest == listed if listed is not None else fits(content, piece)
        return digest if whole else None

    def settle(self, cells: Iterable[Cell]) -> None:
        """Give the cells' folders the names that the study gives them now."""
        for cell in cells:
            before = self._place(cell)
            if before.is_dir() and before.name != cell.folder:
                before.rename(before.with_name(cell.folder))

    def keep(self, piece: Piece, content: bytes) -> str:
        """Write the file of a piece, whole or not at all; returns its sha256."""
        with self._file(self.path / CELLS / piece.cell.folder / piece.file) as file:
            file.write(content)
        return hashlib.sha256(content).hexdigest()

    def keep_inputs(self) -> None:
        """Copy the data that the study names, so that the folder has all that a report needs."""
        for name, copy in self.inputs.items():
            if not (self.path / copy).exists():
                with self._file(self.path / copy) as file, open(self.study.inputs[name], "rb") as data:
                    shutil.copyfileobj(data, file)

    @contextmanager
    def _file(self, path: Path) -> Iterator[IO[bytes]]:
        """A file that is written whole or not at all; a failure is told in a sentence."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path, durable=True) as file:
                yield file
        except OSError as error:
            raise NotWritten(f"{in_a_sentence(error)}: {AGAIN}") from error

    def write_manifest(self, cells: Iterable[Cell], found: Found) -> dict[str, Any]:
        """Write down what the study is and which files are its own."""
        manifest = manifest_of(self.study, self.inputs, cells, found)
        with self._file(self.path / MANIFEST) as file:
            file.write(json.dumps(manifest, indent=1).encode() + b"\n")
        return manifest

    def superseded(self, cells: Iterable[Cell], pieces: Container[Piece]) -> dict[Piece, list[Path]]:
        """The files of last pieces from before paths were added, for those of `pieces` that hold more."""
        older: dict[Piece, list[Path]] = {}
        for cell in cells:
            begin = {piece.first: piece for piece in cell.pieces if piece in pieces}
            for file in sorted(self._place(cell).glob(PIECES)):
                first, until = map(int, file.stem.split("-"))
                piece = begin.get(first)
                if piece is not None and until < piece.until:
                    older.setdefault(piece, []).append(file)
        return older

    def strangers(self, cells: Iterable[Cell]) -> list[Path]:
        """Files of cells, of numbers of paths or of data that the study does not have."""
        wanted = {self.path / CELLS / cell.folder / piece.file for cell in cells for piece in cell.pieces}
        wanted |= {self.path / copy for copy in self.inputs.values()}
        there = [*self.path.glob(f"{CELLS}/*/{PIECES}"), *self.path.glob(f"{INPUTS}/{'?' * 64}_*")]
        return sorted(set(there) - wanted)

    def prune(self, files: Iterable[Path]) -> None:
        """Remove these files, and folders that are then empty."""
        for file in files:
            file.unlink()
        for place in (*self._cell_folders(), self.path / INPUTS):
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()


def _input_file(source: Path) -> str:
    """The name of a data file's copy: after what is in it."""
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{INPUTS}/{digest}_{slug(source.stem)}{source.suffix}"


def manifest_of(study: Study, inputs: dict[str, str], cells: Iterable[Cell], found: Found) -> dict[str, Any]:
    """The manifest: nothing in it depends on when, where or how often the study was run."""
    entries, wanted = [], 0
    for cell in cells:
        wanted += len(cell.pieces)
        files = [
            {"file": piece.file, "first": piece.first, "rows": piece.rows, "sha256": found[piece]}
            for piece in cell.pieces
            if piece in found
        ]
        about = {"key": cell.key, "folder": cell.folder, "paths": cell.paths, "played": cell.played}
        entries.append(cell.names | about | {"files": files})
    return {
        "format": FORMAT,
        "name": study.name,
        "versions": versions(),
        "study": study.text,
        "study_sha256": hashlib.sha256(study.text.encode()).hexdigest(),
        "inputs": inputs,
        "pieces": wanted,
        "finished": len(found),
        "digest": _digest(entries),
        "cells": entries,
    }


def _digest(entries: Any) -> str:
    """One number for all cells and the digests of their files."""
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def is_whole(manifest: dict[str, Any]) -> bool:
    """Whether the manifest is as it was written; where not, the files still speak for themselves."""
    text = hashlib.sha256(str(manifest["study"]).encode()).hexdigest()
    return bool(_digest(manifest["cells"]) == manifest["digest"] and text == manifest["study_sha256"])
