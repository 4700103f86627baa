"""A study's folder that was damaged: made again where that is safe, named with what to do where it is not."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from lighttail.checks import BadInput
from lighttail.study import Done, load_study, report_study, run_study
from lighttail.study import cells as cells_module
from lighttail.study.file import parse_study
from lighttail.study.results import DamagedStudy

TEXT = """
name = "clicks"
paths = 130
seeds = [1]
horizons = [1200]
[[problem]]
name = "seen"
data = "clicks.csv"
[[policy]]
policy = "ts:0.8"
[[policy]]
policy = "ucb:lighttailed:0.2"
"""
DATA = "arm,reward\na,0\na,1\na,0.5\nb,0.75\nb,0\nb,1\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with the data and a finished study in `out`."""
    place = tmp_path_factory.mktemp("whole")
    (place / "clicks.csv").write_text(DATA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "PIECE_NUMBERS", 200)  # a piece is one block
        run(place)
    return place


@pytest.fixture
def place(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cells_module, "PIECE_NUMBERS", 200)
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def run(place: Path, text: str = TEXT, **settings: Any) -> Done:
    study = parse_study(text, "study.toml", lambda name: place / name)
    return run_study(study, place / "out", workers=1, **settings)


def files(place: Path) -> dict[str, bytes]:
    found = (path for path in sorted((place / "out").rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


def one(place: Path, pattern: str) -> Path:
    return sorted((place / "out").glob(pattern))[0]


COPY, PIECE = "inputs/*", "cells/*/*.parquet"
HARMS: dict[str, Any] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "edited": lambda content: content.replace(b"0.75", b"0.70"),
    "longer": lambda content: content + b"b,0\n",
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_copy_of_the_data_is_named_and_made_again(place: Path, harm: str) -> None:
    before, copy = files(place), one(place, COPY)
    copy.write_bytes(HARMS[harm](copy.read_bytes()))
    with pytest.raises(
        DamagedStudy, match=r"inputs/\w+_clicks.csv is damaged .* copies 'clicks.csv' anew, or put a"
    ):
        load_study(place / "out")
    done = run(place)
    assert (done.damaged, done.played) == ([copy], 0)
    assert files(place) == before
    load_study(place / "out")


def test_a_copy_whose_source_is_gone_still_makes_a_report(place: Path) -> None:
    (place / "clicks.csv").unlink()
    report_study(load_study(place / "out"))
    with pytest.raises(BadInput, match=r"line 8: data must be a file .*clicks.csv': there is no such file"):
        run(place)
    one(place, COPY).unlink()
    with pytest.raises(
        DamagedStudy, match=r"damaged or missing; run the study again, which copies 'clicks.csv' anew"
    ):
        load_study(place / "out")


def lost(content: bytes) -> bytes | None:
    return None


MANIFESTS: dict[str, Any] = {
    "lost": lost,
    "empty": lambda content: b"",
    "truncated": lambda content: content[:-100],
    "other bytes": lambda content: b"\xff" + content,
    "deep": lambda content: b"[" * 5000,
    "a list": lambda content: b"[]",
    "a wrong type": lambda content: content.replace(b'"name": "clicks"', b'"name": 3'),
    "a wrong version": lambda content: content.replace(b'"versions": {', b'"versions": 4, "was": {'),
    "wrong cells": lambda content: content.replace(b'"first": 0', b'"first": "0"'),
    "wrong inputs": lambda content: content.replace(b'"clicks.csv": "', b'"clicks.csv": 3, "x": "'),
}


@pytest.mark.parametrize("harm", MANIFESTS)
def test_a_lost_or_damaged_manifest_is_made_anew_from_the_pieces(place: Path, harm: str) -> None:
    before, file = files(place), place / "out" / "manifest.json"
    damaged = MANIFESTS[harm](file.read_bytes())
    assert damaged != file.read_bytes()
    file.unlink() if damaged is None else file.write_bytes(damaged)
    one(place, PIECE).write_bytes(b"damaged, too")
    left = files(place)
    with pytest.raises(
        BadInput, match=r"manifest.json must be .*: rebuild=True makes it anew from the pieces"
    ):
        run(place)
    assert files(place) == left
    with pytest.raises(BadInput, match=r"manifest.json must be .*: run the study with rebuild=True"):
        load_study(place / "out")
    assert run(place, rebuild=True).played == 1
    assert files(place) == before


def test_no_manifest_is_made_of_the_pieces_of_another_study(place: Path) -> None:
    (place / "out" / "manifest.json").unlink()
    left = files(place)
    with pytest.raises(BadInput, match=r"out must be a new folder, .* but none in '.*out' fits it"):
        run(place, TEXT.replace("1200", "1300"), rebuild=True)
    shutil.rmtree(place / "out" / "cells")
    with pytest.raises(BadInput, match="out must be a new or empty folder"):
        run(place, rebuild=True)
    assert set(files(place)) < set(left)


def test_an_edited_number_in_a_manifest_is_found_out(place: Path) -> None:
    before, file = files(place), place / "out" / "manifest.json"
    for key, value in (
        ("pieces", 9),
        ("finished", 1),
        ("digest", "0"),
        ("study", TEXT + "\n"),
        ("inputs", {}),
    ):
        file.write_text(json.dumps(json.loads(before["out/manifest.json"]) | {key: value}))
        with pytest.raises(
            DamagedStudy, match=r"manifest.json is damaged.*; run the study again to make it anew"
        ):
            load_study(place / "out")
        assert run(place).played == 0
        assert files(place) == before


PLACES = ("manifest.json", PIECE, COPY, ".lock")


@pytest.mark.parametrize("pattern", PLACES)
def test_a_folder_in_the_place_of_a_file_is_named(place: Path, pattern: str) -> None:
    file = one(place, pattern)
    file.unlink()
    file.mkdir()
    with pytest.raises(BadInput, match=rf"{file.name} must be a file") as refused:
        run(place)
    assert str(file) in str(refused.value)
    if pattern != ".lock":
        with pytest.raises((DamagedStudy, BadInput), match=f"{file.name}"):
            report_study(load_study(place / "out"))
    file.rmdir()
    assert run(place, rebuild=pattern == "manifest.json").complete


@pytest.mark.parametrize("pattern", ["cells", "inputs", "report", "cells/*"])
def test_a_file_in_the_place_of_a_folder_is_named(place: Path, pattern: str) -> None:
    folder = place / "out" / pattern if pattern == "report" else one(place, pattern)
    shutil.rmtree(folder, ignore_errors=True)
    folder.touch()
    with pytest.raises(BadInput, match=rf"{folder.name} must be a folder, but is a file: move it away"):
        run(place)
    folder.unlink()
    assert run(place).complete


def test_a_full_disk_names_the_file_of_a_report_and_leaves_none(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, real, calls = load_study(place / "out"), os.replace, []

    def full(source: str, target: Path) -> None:
        calls.append(target)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"report/01_\S+ could not be written \(no space left on device\)"):
        report_study(results)
    assert [path for path in (place / "out" / "report").rglob("*") if path.is_file()] == []
    monkeypatch.setattr(os, "replace", real)
    report_study(results)
