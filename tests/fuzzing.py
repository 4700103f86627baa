"""Commands as a user gets them, in this process, and the judge of their answers.

An answer is good if the command ended with exit code 0, or with one plain line and an exit code for it, and
in the second case left the files as they were. A traceback, a code without a line, a line that repeats a
value of thousands of letters, and a folder that was half written are faults.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import random
import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lighttail import cli

PATIENCE = 600  # seconds, after which a call counts as one that never ends
DEAF = 600  # seconds more, after which the process is ended, because the call does not hear
LONGEST = 1100  # letters of a line
ECHO = 105  # letters of a value that a message may repeat: 100, and quotes
UNFINISHED = 3  # the exit code of a study that its budget ended
Tree = dict[str, bytes | None]


class Hang(BaseException):
    """The call took longer than anyone would wait; nothing catches this by accident."""


# What is said where a command takes a while, as it may on a busy machine.
NOTES = re.compile(
    r"^(compiling .* \(first run only\)|planning the paths of .*|the exact law takes .*|"
    r"lighttail: .* after \d+ s)\n",
    re.MULTILINE,
)


@dataclass
class Answer:
    """How a command ended. error: the traceback, if there was one."""

    words: list[str]
    code: int | None
    out: str
    err: str
    before: Tree
    after: Tree
    error: str = ""
    seconds: float = 0.0


@dataclass
class Tally:
    """What came of many calls."""

    codes: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, Answer]] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")


def tree(folder: Path) -> Tree:
    """All files with their content, and the folders; not the locks and what SQLite makes beside a file that
    it reads, which hold nothing."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or not path.name.endswith((".lock", "-shm", "-wal")):
            found[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return found


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """End a call that hangs: first with an exception, then with the process and all of its stacks."""

    def ring(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    faulthandler.dump_traceback_later(PATIENCE + DEAF, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def call(words: Iterable[str], folder: Path, entry: Callable[[], None] = cli.main) -> Answer:
    """Run a command in a folder. entry: what the shell would start."""
    words, here, begun = list(words), os.getcwd(), time.monotonic()
    out, err = io.StringIO(), io.StringIO()
    answer = Answer(words, None, "", "", tree(folder), {})
    argv, sys.argv = sys.argv, ["lighttail", *words]
    os.chdir(folder)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            warnings.simplefilter("default")
            warnings.simplefilter("error", RuntimeWarning)  # arithmetic that went wrong in silence
            with watched():
                entry()
        answer.error = "the command ended without an exit code"
    except SystemExit as ended:
        answer.code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except Hang:
        answer.error = f"no answer within {PATIENCE} seconds:\n{traceback.format_exc()}"
    except BaseException:
        answer.error = traceback.format_exc()
    finally:
        sys.argv = argv
        os.chdir(here)
    answer.out, answer.err, answer.after = out.getvalue(), NOTES.sub("", err.getvalue()), tree(folder)
    answer.seconds = time.monotonic() - begun
    return answer


def fault(answer: Answer) -> str:
    """What is wrong with an answer; empty where nothing is."""
    if answer.error or "Traceback" in answer.err + answer.out:
        return answer.error or "a traceback on the screen"
    if any(not re.match(r"lighttail: \S", line) for line in answer.err.splitlines()):
        return f"a line on stderr that is none of lighttail's: {answer.err!r:.300}"
    if answer.code in (0, UNFINISHED):
        return _leftover(answer)
    return _refusal(answer) or _changes(answer)


def _refusal(answer: Answer) -> str:
    """What is wrong with the sentence of a command that did nothing."""
    said = [line for line in answer.err.splitlines() if not line.startswith("lighttail: warning: ")]
    if answer.code not in (1, 2):
        return f"the exit code {answer.code}"
    if len(said) != 1:
        return f"{len(said)} lines with the exit code {answer.code}: {answer.err!r:.300}"
    if answer.code == 2 and answer.out:
        return f"bad input, and still something on stdout: {answer.out!r:.300}"
    if len(said[0]) > LONGEST:
        return f"a line of {len(said[0])} letters"
    for word in answer.words:
        for part in re.split(r"[:,=]", word):
            if len(part) > ECHO and part[:ECHO] in said[0]:
                return f"a value repeated beyond {ECHO} letters: {said[0]!r:.300}"
    return ""


def _changes(answer: Answer) -> str:
    """The files that a command left or changed though it did nothing."""
    names = answer.before.keys() | answer.after.keys()
    changed = sorted(name for name in names if answer.before.get(name, b"?") != answer.after.get(name, b"?"))
    return f"files that were changed though nothing was done: {changed[:5]}" if changed else ""


def _leftover(answer: Answer) -> str:
    left = [name for name in answer.after.keys() - answer.before.keys() if Path(name).name.startswith(".")]
    return f"files that never took their name: {left[:5]}" if left else ""


def judge(answers: Iterable[Answer], shown: bool = False) -> Tally:
    """Hold every answer against what is good."""
    tally = Tally()
    for answer in answers:
        tally.codes[str(answer.code)] += 1
        tally.slowest = max(tally.slowest, (answer.seconds, " ".join(answer.words)[:200]))
        wrong = fault(answer)
        if wrong:
            tally.faults.append((wrong, answer))
            if shown:
                words = [word if len(word) < 80 else word[:70] + f"...({len(word)})" for word in answer.words]
                print(f"--- {words}\n{wrong}", flush=True)
    return tally


def report(tally: Tally, what: str) -> int:
    """Say what came of it; the exit code of a script."""
    codes = ", ".join(f"{count} with exit code {code}" for code, count in sorted(tally.codes.items()))
    print(f"{sum(tally.codes.values())} {what}: {codes}; {len(tally.faults)} faults")
    print(f"The slowest took {tally.slowest[0]:.1f} s: {tally.slowest[1]}")
    return 1 if tally.faults else 0


def some(rng: random.Random, few: int, many: int) -> int:
    """A small number, a larger one now and then."""
    return rng.randint(few, many if rng.random() < 0.2 else max(few, (few + many) // 2))
