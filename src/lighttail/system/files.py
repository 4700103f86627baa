"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from lighttail.checks import refuse


class NotWritten(OSError):
    """A file could not be written. The text says which file and why."""


LONGEST_NAME = 100  # characters of a file or a folder: a longer name is cut in a message
LONGEST_PATH = 300  # characters of all names together


def in_a_sentence(error: OSError) -> str:
    """The message of an OSError with the name of its file and without the system's error number."""
    if error.strerror is None:  # the message is a sentence already
        return str(error)
    reason = error.strerror.lower()
    if error.filename is None:
        return reason
    name = str(error.filename)
    if len(name) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in Path(name).parts):
        name = f"{name[:LONGEST_NAME]} ..."
    return f"{name} cannot be used ({reason})"


@contextmanager
def whole_file(path: Path, *, durable: bool = False, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """A binary file that takes its name when it is complete. After an error the old file, if any, is
    unchanged.

    durable: whether the content must be on the disk before the file takes its name, so that even a power cut
    leaves no incomplete file. mode: who may read and write the file.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} for {path.name!r}")
    try:
        file = NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
        try:
            with file:
                yield file
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.chmod(file.name, mode)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    except OSError as error:
        if isinstance(error, NotWritten) or error.strerror is None:
            raise
        raise NotWritten(f"{path} could not be written ({error.strerror.lower()})") from error


def whole_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files that take their names when all of them are complete. A full disk leaves none of them."""
    with ExitStack() as open_files:
        for name, content in files.items():
            file = open_files.enter_context(whole_file(folder / name))
            file.write(content)
            file.flush()


def leftovers(folder: Path) -> list[Path]:
    """The incomplete files that `whole_file` leaves in a folder if the process is killed."""
    return [path for path in folder.glob(".*.*.????????") if path.is_file()]


@contextmanager
def output_folder(field: str, path: Path) -> Iterator[Path]:
    """A folder that can be written. It is created if it is missing, and removed again if it stays empty."""
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        NamedTemporaryFile(dir=path, prefix=".is.writable.").close()
    except OSError as error:
        raise refuse(field, str(path), f"a folder that can be written ({error.strerror})") from None
    try:
        yield path
    finally:
        for folder in missing:
            if folder.is_dir() and not _remove_empty(folder):
                break


def _remove_empty(folder: Path) -> bool:
    """Remove a folder that contains no files. Returns whether the folder was removed."""
    inside = [_remove_empty(entry) if entry.is_dir() else False for entry in folder.iterdir()]
    if all(inside):
        folder.rmdir()
    return all(inside)


def lock_alone(file: IO[Any]) -> None:
    """Lock a file until it is closed. The system closes the files of a process that is killed. Raises
    BlockingIOError if the file is locked already."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise BlockingIOError from None
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
