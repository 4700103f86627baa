"""Plays a study in child processes that are killed at random moments, and says what was left each time.

    python tests/killed.py WORK KILLS WRITER

Everything is imported and compiled before the first fork, so that a child begins to play at once. A child
that is not killed in time waits for the kill, because the machine may be busy. WRITER is "whole", or
"in-place" for a writer that a kill can catch halfway, and does.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lighttail.study import cells, folder, read_study, run_study
from lighttail.study import run as playing

WORKERS = 2
MORE = 2  # pieces that a child keeps while its end is on its way, at most
STUDY = """
name = "killed"
method = "step"
paths = 1200
seeds = [1, 2, 3, 4]
horizons = [2000]
[[problem]]
name = "two"
means = [0.2, 0.8]
sigmas = [1.0, 2.0]
[[policy]]
policy = "ts:0.8"
[[policy]]
policy = "ucb:standard:0.8"
"""


def in_place(half: Callable[[], None]) -> Callable[..., Any]:
    """What `whole_file` must not be for pieces: the file has its name before it has its bytes. half: called
    when half of them are there."""
    whole = folder.whole_file

    class Halves:
        def __init__(self, path: Path) -> None:
            self.path = path

        def write(self, content: bytes) -> None:
            with open(self.path, "wb", buffering=0) as file:
                file.write(content[: len(content) // 2])
                half()
                file.write(content[len(content) // 2 :])

    @contextmanager
    def opened(path: Path, **settings: Any) -> Iterator[Any]:
        if path.suffix == ".parquet":
            yield Halves(path)
        else:
            with whole(path, **settings) as file:
                yield file

    return opened


def play(study: Any, place: Path, pipe: int, writer: str, some: int | None) -> None:
    """In a child: play the study; a byte for every piece that begins, for each that is kept, and for half of
    one. some: how many pieces are kept, or a few more, until the child waits for its end; None for all."""
    begin, keep, kept = playing.submit, folder.Folder.keep, 0

    def told(*args: Any) -> Any:
        result = begin(*args)
        os.write(pipe, b"b")
        return result

    def counted(*args: Any) -> Any:
        nonlocal kept
        if some is not None and kept == some + MORE:
            threading.Event().wait()
        result = keep(*args)
        kept += 1
        os.write(pipe, b"k")
        return result

    def half() -> None:
        if kept == some:
            os.write(pipe, b"h")
            threading.Event().wait()

    playing.submit, folder.Folder.keep = told, counted  # type: ignore[method-assign]
    if writer == "in-place":
        folder.whole_file = in_place(half)
    run_study(study, place, workers=WORKERS)


def child(study: Any, place: Path, writer: str, some: int | None = None) -> tuple[int, int]:
    """A process that plays the study, and the end of the pipe on which it is heard."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.close(read)
            play(study, place, write, writer, some)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    return process, read


def heard(pipe: int, until: Callable[[bytes], bool]) -> bytes:
    """What came through the pipe until that is enough, or the child is gone."""
    content = b""
    while not until(content):
        select.select([pipe], [], [])
        part = os.read(pipe, 4096)
        if not part:
            break
        content += part
    return content


def files(place: Path) -> dict[str, Path]:
    """The files of a study's folder by their names; not those that never took one, nor the lock."""
    found = (path for path in place.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(place)): path for path in found}


def main(work: Path, kills: int, writer: str) -> dict[str, Any]:
    cells.PIECE_BLOCKS = 1
    (work / "study.toml").write_text(STUDY)
    study = read_study(work / "study.toml")
    pieces = sum(len(cell.pieces) for cell in cells.cells_of(study))
    process, pipe = child(study, work / "undisturbed", "whole")
    heard(pipe, lambda content: False)
    assert os.waitpid(process, 0)[1] == 0
    whole = {name: path.read_bytes() for name, path in files(work / "undisturbed").items()}
    chance, place = random.Random(7), work / "killed"
    torn, rewritten, begun, killed = [], 0, 0, 0
    kept: dict[str, Any] = {}
    for _ in range(kills):
        some, pause = chance.randrange(4), chance.uniform(0.0, 0.01)
        process, pipe = child(study, place, writer, some)
        if writer == "in-place":
            content = heard(pipe, lambda content: b"h" in content)
        else:
            content = heard(pipe, lambda content, some=some: content.count(b"k") >= some)  # type: ignore[misc]
            time.sleep(pause)
        os.kill(process, signal.SIGKILL)
        content += heard(pipe, lambda content: False)
        os.close(pipe)
        killed += os.WIFSIGNALED(os.waitpid(process, 0)[1])
        begun += content.count(b"b")
        left = {name: path for name, path in files(place).items() if name.endswith(".parquet")}
        torn += [name for name, path in left.items() if path.read_bytes() != whole[name]]
        if (place / "manifest.json").exists() and writer == "whole":
            json.loads((place / "manifest.json").read_bytes())
        now = {name: (path.stat().st_ino, path.stat().st_mtime_ns) for name, path in left.items()}
        rewritten += sum(now.get(name) != was for name, was in kept.items())
        kept = now
    process, pipe = child(study, place, writer)
    begun += heard(pipe, lambda content: False).count(b"b")
    assert os.waitpid(process, 0)[1] == 0
    ended = {name: path.read_bytes() for name, path in files(place).items()}
    manifest = json.loads(ended["manifest.json"])
    return {
        "pieces": pieces,
        "killed": killed,
        "left": pieces - len(kept),
        "torn": len(torn),
        "rewritten": rewritten,
        "played twice": begun - pieces,
        "in flight": playing.QUEUED * WORKERS,
        "same digest": manifest["digest"] == json.loads(whole["manifest.json"])["digest"],
        "same bytes": ended == whole,
        "litter": [path.name for path in place.rglob(".*") if path.name != ".lock"],
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
