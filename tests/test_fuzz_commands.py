"""A fixed portion of the fuzzers of commands and studies, and that their judge sees what it should."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fuzz_arguments
import fuzz_studies
import pytest
import typer
from fuzzing import call, fault, judge

from lighttail.cli.app import app
from lighttail.study import cells as cells_module
from lighttail.tails import curve as tail_module

LISTS, FILES = 30, 100


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what the fuzzers make small."""
    monkeypatch.setattr(cells_module, "PIECE_NUMBERS", cells_module.PIECE_NUMBERS)
    monkeypatch.setitem(
        tail_module.tail_curve.__kwdefaults__,
        "most_pulls",
        tail_module.tail_curve.__kwdefaults__["most_pulls"],
    )


def test_argument_lists_get_an_answer_or_a_sentence(tmp_path: Path) -> None:
    tally = judge(fuzz_arguments.answers(LISTS, 2, tmp_path))
    assert tally.faults == []
    assert set(tally.codes) == {"0", "2"}  # control: some are played, others refused


def options_of(command: Any, path: str = "") -> Iterator[tuple[str, set[str]]]:
    """The commands below a command, with the names of their options."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from options_of(inner, f"{path} {name}".strip())
    else:
        yield path, {name for one in command.params for name in one.opts if name.startswith("--")}


def test_every_option_of_every_command_is_tried() -> None:
    table = dict(fuzz_arguments.COMMANDS)
    table["compare"] = table["compare"] | table.pop("linear")
    tried = {command: set(options) for command, options in table.items()}
    there = dict(options_of(typer.main.get_command(app)))
    for command in there.keys() | tried.keys():
        apart = there.get(command, set()) ^ tried.get(command, set())
        assert not apart, f"COMMANDS of tests/fuzz_arguments.py: {command} has, or lacks, {sorted(apart)}"
    assert tried == there
    assert set(fuzz_arguments.FIRST) == set(fuzz_arguments.COMMANDS) == set(fuzz_arguments.OFTEN)


def test_damaged_studies_are_mended_or_named(tmp_path: Path) -> None:
    tally = judge(fuzz_studies.answers(FILES, 2, tmp_path))
    assert tally.faults == []
    assert set(tally.codes) == {"0", "1", "2"}


def crash() -> None:
    raise KeyError("means")


def shown_crash() -> None:
    print("Traceback (most recent call last):", file=sys.stderr)
    sys.exit(1)


def silent() -> None:
    sys.exit(2)


def talkative() -> None:
    print("lighttail: means must be two numbers, but is 3", file=sys.stderr)
    print("lighttail: and sigma must be another", file=sys.stderr)
    sys.exit(2)


def foreign() -> None:
    print("numpy: all is lost", file=sys.stderr)
    sys.exit(0)


def echo() -> None:
    print(f"lighttail: policy must be shorter, but is {sys.argv[1]}", file=sys.stderr)
    sys.exit(2)


def half_written() -> None:
    Path("out").mkdir()
    Path("out", "report.html").write_text("<h1>")
    print("lighttail: out must be writable, but is not", file=sys.stderr)
    sys.exit(1)


def empty_folder() -> None:
    Path("out").mkdir()
    print("lighttail: paths must be fewer, but are many", file=sys.stderr)
    sys.exit(2)


def overwritten() -> None:
    Path("mine.txt").write_text("yours")
    print("lighttail: paths must be fewer, but are many", file=sys.stderr)
    sys.exit(2)


def leftover() -> None:
    Path(".report.html.abcdefgh").write_text("half")
    sys.exit(0)


def endless() -> None:
    while True:
        pass


def odd_code() -> None:
    print("lighttail: stopped", file=sys.stderr)
    sys.exit(77)


PLANTED: dict[Callable[[], None], str] = {
    crash: "KeyError",
    shown_crash: "a traceback on the screen",
    silent: "0 lines with the exit code 2",
    talkative: "2 lines with the exit code 2",
    foreign: "a line on stderr that is none of lighttail's",
    echo: "a value repeated",
    half_written: "files that were changed",
    empty_folder: "files that were changed",
    overwritten: "files that were changed",
    leftover: "files that never took their name",
    endless: "no answer within 1 seconds",
    odd_code: "the exit code 77",
}


@pytest.mark.parametrize("entry", PLANTED, ids=lambda entry: entry.__name__)
def test_the_judge_sees_what_is_planted(
    entry: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if entry is endless:
        monkeypatch.setattr("fuzzing.PATIENCE", 1)
    (tmp_path / "mine.txt").write_text("mine")
    assert PLANTED[entry] in fault(call(["x" * 500], tmp_path, entry))


def test_a_run_that_loses_bytes_is_seen(tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "piece").write_text("whole")
    whole = call(["--version"], tmp_path).after
    (tmp_path / "done" / "piece").write_text("other")
    answer = call(["run"], tmp_path, lambda: sys.exit(0))
    assert fault(answer) == ""
    assert "other bytes in ['done/piece']" in fuzz_studies.lost(answer, whole)
