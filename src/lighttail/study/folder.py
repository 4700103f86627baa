"""The folder of a study: its manifest, its files, and which of the files can be used again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from lighttail.checks import refuse
from lighttail.study.cells import KEY_LETTERS, Cell, Piece, fits, sha256, slug
from lighttail.study.file import Study
from lighttail.study.manifest import (
    CELLS,
    MANIFEST,
    PIECES,
    REBUILD,
    Digests,
    NoManifest,
    has_pieces,
    is_whole,
    manifest_of,
    read_manifest,
    versions,
)
from lighttail.system.files import NotWritten, in_a_sentence, leftovers, lock_alone, output_folder, whole_file

INPUTS, REPORT, LOCK = "inputs", "report", ".lock"
AGAIN = "the finished files are whole, and the same command resumes after them"


def check_file_or_folder(path: Path, folder: bool) -> None:
    """Refuse a file where a folder must be, and a folder where a file must be."""
    if path.is_dir() != folder and path.exists():
        wanted, found = ("folder", "file") if folder else ("file", "folder")
        away = ": move it away and run the study again"
        raise refuse(str(path), found, f"a {wanted}", found=f"is a {found}", more=away)


def _manifest(path: Path, rebuild: bool) -> dict[str, Any] | None:
    """The manifest; None if the study begins here, or if `rebuild` and the manifest is lost or damaged."""
    try:
        manifest = read_manifest(path)
    except NoManifest as error:
        if not has_pieces(path):  # the file may belong to another program
            allowed = f"a folder whose {MANIFEST} is that of a study, or a new one"
            raise refuse("out", str(path), allowed) from None
        if not rebuild:
            offer = f" makes it anew from the pieces in {CELLS} that fit the study"
            raise error.adding(": ", REBUILD, offer) from None
        return None
    if manifest is None and path.is_dir():
        others = {entry.name for entry in path.iterdir()} - {LOCK, *(entry.name for entry in leftovers(path))}
        if others:
            allowed = f"a new or empty folder, or that of a study, without {min(others)!r}"
            raise refuse("out", str(path), allowed)
    return manifest


def check_belongs(path: Path, study: Study, rebuild: bool) -> dict[str, Any] | None:
    """The manifest. Refuses a folder of another study, or one that other versions made.

    rebuild: return None for a folder with pieces whose manifest is lost or damaged.
    """
    now, manifest = versions(), _manifest(path, rebuild)
    for inside in (CELLS, INPUTS, REPORT):
        check_file_or_folder(path / inside, folder=True)
    check_file_or_folder(path / LOCK, folder=False)
    if manifest is None:
        return None
    if manifest["name"] != study.name:
        found = f"{str(path)!r} holds study {manifest['name']!r}"
        raise refuse("out", str(path), f"the folder of study {study.name!r} or a new one", found=found)
    for name, version in now.items():
        made = manifest["versions"].get(name)
        if made != version:
            allowed = f"made by {name} {version}, which runs now, or be a new folder"
            found = f"{str(path)!r} was made by {name} {made}"
            raise refuse("out", str(path), allowed, found=found)
    return manifest


@contextmanager
def opened(path: Path, study: Study, cells: list[Cell], rebuild: bool = False) -> Iterator[Folder]:
    """The folder, for one run at a time, after `check_belongs`. It is made if it does not exist."""
    with output_folder("out", path), open(path / LOCK, "ab") as file:
        try:
            lock_alone(file)
        except BlockingIOError:
            alone, found = "a folder in which no other run is at work", f"is {str(path)!r}"
            raise refuse("out", str(path), alone, found=found) from None
        folder = Folder(path, study, cells, check_belongs(path, study, rebuild))
        for inside in (path, *path.glob(f"{CELLS}/*"), path / INPUTS):
            for file_left in leftovers(inside):
                file_left.unlink(missing_ok=True)
        try:
            yield folder
        finally:
            if {entry.name for entry in path.iterdir()} == {LOCK}:  # nothing was begun
                (path / LOCK).unlink(missing_ok=True)


class Folder:
    """The files of a study. digests: of the pieces that are there and whole, once `look` has looked.

    manifest: the manifest in the folder, if there is one.
    """

    def __init__(self, path: Path, study: Study, cells: list[Cell], manifest: dict[str, Any] | None) -> None:
        self.path, self.study, self.cells = path, study, cells
        self.digests: Digests = {}
        self.rebuilt = manifest is None and has_pieces(path)
        self._listed = {
            (cell["key"], file["first"], file["rows"]): file["sha256"]
            for cell in (manifest["cells"] if manifest is not None and is_whole(manifest) else ())
            for file in cell["files"]
        }
        self._by_key = {inside.name[-KEY_LETTERS:]: inside for inside in self._cell_folders()}
        self.inputs = {  # the name of a copy begins with the digest of the content
            name: f"{INPUTS}/{_digest(source)}_{slug(source.stem)}{source.suffix}"
            for name, source in study.inputs.items()
        }

    def _cell_folders(self) -> list[Path]:
        return sorted(inside for inside in (self.path / CELLS).glob("*") if inside.is_dir())

    def look(self) -> list[Path]:
        """Find the pieces that are there and whole, by the manifest or, if it does not list a piece, by the
        file itself. Returns the files that are damaged; refuses to rebuild the manifest of another study."""
        damaged = []
        for cell in self.cells:
            inside = self._folder_of(cell)
            for folder in (inside, self.path / CELLS / cell.folder):
                check_file_or_folder(folder, folder=True)
            for piece in cell.pieces:
                file = inside / piece.file
                check_file_or_folder(file, folder=False)
                if file.exists():
                    content = file.read_bytes()
                    digest = sha256(content)
                    listed = self._listed.get((cell.key, piece.first, piece.rows))
                    if digest == listed or (listed is None and fits(content, piece)):
                        self.digests[piece] = digest
                    else:
                        damaged.append(file)
        if self.rebuilt and not self.digests:
            allowed = f"a new folder, or one with pieces of study {self.study.name!r}"
            none = f"none in {str(self.path)!r} fits it"
            raise refuse("out", str(self.path), allowed, found=none)
        return damaged

    def _folder_of(self, cell: Cell) -> Path:
        """The folder of the cell's files, which is found by the key if names in the study changed."""
        now = self.path / CELLS / cell.folder
        return now if now.is_dir() else self._by_key.get(cell.key[:KEY_LETTERS], now)

    def settle(self) -> None:
        """Rename the folders of the cells after the names in the study."""
        for cell in self.cells:
            before = self._folder_of(cell)
            if before.is_dir() and before.name != cell.folder:
                before.rename(before.with_name(cell.folder))

    def keep(self, piece: Piece, content: bytes) -> None:
        """Write the file of a piece, whole or not at all."""
        with self._file(self.path / CELLS / piece.cell.folder / piece.file) as file:
            file.write(content)
        self.digests[piece] = sha256(content)

    def look_at_inputs(self) -> list[Path]:
        """The copies of the study's data that are damaged."""
        copies = [self.path / copy for copy in dict.fromkeys(self.inputs.values())]
        for copy in copies:
            check_file_or_folder(copy, folder=False)
        return [copy for copy in copies if copy.exists() and not is_copy(copy)]

    def keep_inputs(self, damaged: Container[Path]) -> None:
        """Copy the data that the study names, so that a report needs only the files in the folder."""
        for name, copy in self.inputs.items():
            path = self.path / copy
            if not path.exists() or path in damaged:
                with self._file(path) as file, open(self.study.inputs[name], "rb") as data:
                    shutil.copyfileobj(data, file)

    @contextmanager
    def _file(self, path: Path) -> Iterator[IO[bytes]]:
        """A file that is written whole or not at all. A failure raises NotWritten with a sentence."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path, durable=True) as file:
                yield file
        except OSError as error:
            raise NotWritten(f"{in_a_sentence(error)}: {AGAIN}") from error

    def write_manifest(self) -> dict[str, Any]:
        """Write the manifest: what the study is, and which files belong to it."""
        manifest = manifest_of(self.study, self.inputs, self.cells, self.digests)
        with self._file(self.path / MANIFEST) as file:
            file.write(json.dumps(manifest, indent=1).encode() + b"\n")
        return manifest

    def superseded(self, pieces: Container[Piece]) -> dict[Piece, list[Path]]:
        """For each of `pieces`, the files of shorter pieces, made before paths were added to the study."""
        older: dict[Piece, list[Path]] = {}
        for cell in self.cells:
            begin = {piece.first: piece for piece in cell.pieces if piece in pieces}
            for file in sorted(self._folder_of(cell).glob(PIECES)):
                first, until = map(int, file.stem.split("-"))
                if first in begin and until < begin[first].until:
                    older.setdefault(begin[first], []).append(file)
        return older

    def strangers(self) -> list[Path]:
        """The files of cells, paths or data that the study does not have."""
        wanted = {self.path / copy for copy in self.inputs.values()}
        for cell in self.cells:
            wanted |= {self.path / CELLS / cell.folder / piece.file for piece in cell.pieces}
        there = [*self.path.glob(f"{CELLS}/*/{PIECES}"), *self.path.glob(f"{INPUTS}/{'?' * 64}_*")]
        return sorted(file for file in set(there) - wanted if file.is_file())

    def prune(self, files: Iterable[Path]) -> None:
        """Remove these files, and the folders that become empty."""
        for file in files:
            file.unlink()
        for inside in (*self._cell_folders(), self.path / INPUTS):
            if inside.is_dir() and not any(inside.iterdir()):
                inside.rmdir()


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_copy(path: Path) -> bool:
    """Whether the content of a copy has the digest in its name."""
    return path.is_file() and _digest(path) == path.name.partition("_")[0]
