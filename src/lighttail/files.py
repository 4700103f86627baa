"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from lighttail.validation import refuse


@contextmanager
def whole_file(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """A binary file that takes its name when it is complete; an error leaves what was there.

    durable: it is on the disk before it takes its name, so that a power cut leaves no half file either.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} for {path.name!r}")
    file = NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
    try:
        with file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except BaseException:
        os.unlink(file.name)
        raise


def leftovers(folder: Path) -> list[Path]:
    """What `whole_file` left in a folder when the process was killed: files that never took their name."""
    return [path for path in folder.glob(".*.*.????????") if path.is_file()]


@contextmanager
def output_folder(field: str, path: Path) -> Iterator[Path]:
    """A folder that can be written, made if need be and taken away again if it stays empty."""
    try:
        missing = [place for place in (path, *path.parents) if not place.exists()]
        path.mkdir(parents=True, exist_ok=True)
        NamedTemporaryFile(dir=path, prefix=".is.writable.").close()
    except OSError as error:
        raise refuse(field, str(path), f"a folder that can be written ({error.strerror})") from None
    try:
        yield path
    finally:
        for place in missing:
            if any(place.iterdir()):
                break
            place.rmdir()
