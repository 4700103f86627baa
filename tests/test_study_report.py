"""The report of a study, and the commands `run` and `report` as their users meet them."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail import cli
from lighttail.checks import BadInput
from lighttail.cli import study as study_command
from lighttail.records import Counts
from lighttail.report.figures import styled
from lighttail.study import Results, cells, load_study, report_study, run_study
from lighttail.study import manifest as manifest_module
from lighttail.study.file import parse_study

TEXT = """
name = "small study"
paths = 500
seeds = [1, 2]
horizons = [200, 100]
threshold = 0.25
[[problem]]
name = "own <data>"
data = "rewards.csv"
[[policy]]
name = "A & B"
policy = "ts:0.8"
[[policy]]
policy = "ucb:lighttailed:0.2"
"""
EXAMPLE = Path(__file__).parents[1] / "docs" / "study.toml"
POLICIES = {"A & B": lt.ThompsonSampling(0.8), "ucb:lighttailed:0.2": lt.UCB(lt.LightTailed(0.2))}
SAMPLES = {"old": [0.0, 1.0, -0.5], "new": [1.0, 2.0, 0.0, 1.0]}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study file, its data, and its results in `out`."""
    place = tmp_path_factory.mktemp("study")
    rows = [f"{arm},{reward}" for arm, rewards in SAMPLES.items() for reward in rewards]
    (place / "rewards.csv").write_text("arm,reward\n" + "\n".join(rows))
    (place / "study.toml").write_text(TEXT)
    run_study(parse_study(TEXT, "study.toml", lambda name: place / name), place / "out")
    return place


@pytest.fixture
def results(source: Path, tmp_path: Path) -> Results:
    """The results alone, in a folder of another name: the data are not beside them."""
    shutil.copytree(source / "out", tmp_path / "copy")
    return load_study(tmp_path / "copy")


def pooled(policy: lt.Policy, horizon: int) -> lt.PathsOutcome:
    """What the two seeds give together."""
    problem = lt.Bandit.from_samples(SAMPLES)
    one, two = (lt.simulate(policy, problem, horizon=horizon, paths=500, seed=seed) for seed in (1, 2))
    reward, pulls = np.concatenate([one.reward, two.reward]), np.concatenate([one.pulls, two.pulls])
    return replace(one, record=Counts(reward, pulls))


def test_outcomes_are_those_of_all_seeds_together(results: Results) -> None:
    for name, policy in POLICIES.items():
        for horizon in (100, 200):
            found, whole = results.outcome("own <data>", name, horizon=horizon), pooled(policy, horizon)
            assert np.array_equal(found.reward, whole.reward)
            assert np.array_equal(found.pulls, whole.pulls)
            assert found.labels == ("old", "new")
            assert found.mean() == whole.mean()
            assert found.settings["seed"] == [1, 2]
    for wrong in ({"problem": "own"}, {"policy": "C"}, {"horizon": 300}, {"sigma": 1.0}):
        settings: Any = {"problem": "own <data>", "policy": "A & B", "horizon": 100, "sigma": None} | wrong
        with pytest.raises(BadInput, match=f"{next(iter(wrong))} must be one of"):
            results.outcome(**settings)


def test_the_report_shows_these_numbers_and_needs_the_folder_alone(results: Results) -> None:
    index = report_study(results)
    told = json.loads((index.parent / "results.json").read_text())
    assert (told["finished"], told["pieces"], told["digest"]) == (8, 8, results.manifest["digest"])
    assert [(one["horizon"], one["paths"], one["threshold"]) for one in told["comparisons"]] == [
        (200, 1000, 50.0),
        (100, 1000, 25.0),
    ]
    for one in told["comparisons"]:
        assert one["name"] == "own <data>"
        for entry, policy in zip(one["policies"], POLICIES.values(), strict=True):
            whole = pooled(policy, one["horizon"])
            assert entry["mean_loss"] == whole.mean().to_dict()
            assert entry["chance"] == whole.exceedance(one["threshold"]).to_dict()
        page = (index.parent / one["page"]).read_text()
        assert f"{one['policies'][0]['mean_loss']['value']:.3g}" in page
        assert "seeds 1, 2" in page
        assert "Unfinished" not in page
        assert "own &lt;data&gt;" in page
        assert "<data>" not in page
    html = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", index.read_text())
    links = re.findall(r'(?:href|src)="([^"]+)"', html)
    assert links == [one["page"] for one in told["comparisons"]]
    assert all((index.parent / link).exists() for link in links)
    assert "http" not in html
    assert "A &amp; B" in html
    problem = results.study.problems[0].problem
    means = f"old: {problem.means[0]:g}, new: {problem.means[1]:g}"
    assert f"<p>Mean rewards of the arms: {means}. Noise: " in html
    assert "Bandit(" not in html


def test_a_report_made_again_has_the_same_bytes_and_no_page_too_many(results: Results) -> None:
    index = report_study(results)
    first = {path: path.read_bytes() for path in index.parent.rglob("*") if path.is_file()}
    stale, own = index.parent / "07_gone_t-7", index.parent / "mine"
    shutil.copytree(index.parent / "01_own-data_t-200", stale)
    shutil.copytree(stale, own)
    (own / "notes.txt").touch()
    report_study(results)
    assert not stale.exists()
    assert (own / "notes.txt").exists()
    assert {path: path.read_bytes() for path in first} == first


def test_an_unfinished_study_says_so_and_compares_equal_numbers_of_paths(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "block_paths", lambda *args: 100)
    monkeypatch.setattr(cells, "PIECE_BLOCKS", 1)
    study = parse_study(TEXT, "study.toml", lambda name: source / name)
    run_study(study, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for place, (cell, kept) in enumerate(zip(manifest["cells"], (5, 4, 2, 0, 3, 0, 0, 0), strict=True)):
        manifest["cells"][place]["files"] = cell["files"][5 - kept :]
    manifest["finished"], manifest["digest"] = 14, manifest_module._digest(manifest["cells"])
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    results = load_study(tmp_path)
    assert not results.complete
    long, short = (results.comparison(study.problems[0], horizon) for horizon in (200, 100))
    assert (long.paths, [entry.outcome.paths for entry in long.entries]) == (200, [200, 200])
    assert (short.paths, [entry.label for entry in short.entries]) == (300, ["A & B"])
    assert results.outcome("own <data>", "A & B", horizon=200).paths == 900
    with pytest.raises(BadInput, match="one of which a piece is finished"):
        results.outcome("own <data>", "ucb:lighttailed:0.2", horizon=100)
    above = []  # of the pages, which are drawn in another test
    monkeypatch.setattr("lighttail.study.report.write_report", lambda *args: above.append(args[3]))
    html = report_study(results).read_text()
    assert "14 of 40 pieces" in html
    assert "100 pulls. <b>Not played yet: ucb:lighttailed:0.2.</b>" in html
    assert "200 pulls. <b>" not in html
    assert ["Not played yet: ucb:lighttailed:0.2." in text for text in above] == [False, True]


COLOURS = """
name = "colours"
paths = 10
seeds = [1]
horizons = [20]
[[problem]]
name = "covered"
means = [0.2, 0.8]
[[problem]]
name = "not covered"
means = [0.2, 0.8]
noise = "laplace"
[[policy]]
policy = "ts:0.8"
[[policy]]
policy = "ucb:lighttailed:0.2"
[[policy]]
policy = "ucb:standard:0.8"
[[policy]]
policy = "se:lighttailed:0.1"
"""


def test_a_policy_has_one_colour_on_all_pages(tmp_path: Path) -> None:
    run_study(parse_study(COLOURS, "study.toml", Path), tmp_path)
    results = load_study(tmp_path)
    shown = []
    for setting in results.study.problems:
        comparison = results.comparison(setting, 20)
        assert comparison is not None
        shown.append({entry.label: look for entry, look in styled(comparison.entries)})
    proved, dashed = shown
    assert {name: look["color"] for name, look in proved.items()} == {
        name: look["color"] for name, look in dashed.items()
    }
    assert len({look["color"] for look in proved.values()}) == 4
    assert [look["linestyle"] == "-" for look in proved.values()] == [False, True, False, True]
    assert not any(look["linestyle"] == "-" for look in dashed.values())
    for cell in results.manifest["cells"][:1] + results.manifest["cells"][6:7]:
        cell["files"] = []  # a policy before others is not played yet
    for setting, before in zip(results.study.problems, shown, strict=True):
        fewer = results.comparison(setting, 20)
        assert fewer is not None
        assert len(fewer.entries) == 3
        assert styled(fewer.entries) == [(entry, before[entry.label]) for entry in fewer.entries]


def test_a_setting_without_any_piece_is_named(
    results: Results, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    manifest = results.manifest
    for cell in manifest["cells"]:
        if cell["horizon"] == 100:
            cell["files"] = []
    manifest["finished"], manifest["digest"] = 4, manifest_module._digest(manifest["cells"])
    (results.path / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.setattr("lighttail.study.report.write_report", lambda *args: None)
    assert run(monkeypatch, "report", results.path) == 0
    said = "Not played yet: A & B, ucb:lighttailed:0.2."
    assert f"own <data>, 100 pulls. {said}" in capsys.readouterr().out
    html = (results.path / "report" / "index.html").read_text()
    assert f"100 pulls. <b>{said.replace('&', '&amp;')}</b>" in html
    assert html.count("Not played yet") == 1


def run(monkeypatch: pytest.MonkeyPatch, *words: Any) -> int:
    """Run the command in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["lighttail", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_damage_is_named(
    source: Path, results: Results, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    place = results.path
    cell = results.manifest["cells"][0]
    file = place / "cells" / cell["folder"] / cell["files"][0]["file"]
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    assert run(monkeypatch, "report", place) == 1
    assert capsys.readouterr().err == f"lighttail: {file} is damaged; run the study again to make it anew\n"
    file.unlink()
    assert run(monkeypatch, "report", place) == 1
    assert f"{file} is missing" in capsys.readouterr().err
    for old, new in (("ts:0.8", "ts:0.9"), ("00000000500", "00000000400")):  # in the study, in the list
        text = (source / "out" / "manifest.json").read_text()
        (place / "manifest.json").write_text(text.replace(old, new, 1))
        assert run(monkeypatch, "report", place) == 1
        assert "manifest.json is damaged" in capsys.readouterr().err
    assert run(monkeypatch, "run", source / "study.toml", "--out", place) == 0
    assert (place / "manifest.json").read_bytes() == (source / "out" / "manifest.json").read_bytes()


def test_folders_that_are_no_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    (tmp_path / "empty").mkdir()
    for place in ("none", "other", "empty", "other/file"):
        assert run(monkeypatch, "report", tmp_path / place) == 2
        said = "folder must be that of a study, which `lighttail run` makes, but is "
        assert capsys.readouterr().err == f"lighttail: {said}{str(tmp_path / place)!r}\n"
        with pytest.raises(BadInput, match=f"^{said}"):
            load_study(tmp_path / place)


def test_the_python_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", EXAMPLE.with_name("studies.md").read_text(), re.DOTALL)
    shutil.copy(EXAMPLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block, names)
    digest, estimates = capsys.readouterr().out.splitlines()
    assert digest == names["results"].manifest["digest"]
    assert estimates == f"{names['out'].mean()} {names['out'].exceedance(100)}"
    assert names["out"].paths == 4000


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    shutil.copy(EXAMPLE, tmp_path / "study.toml")
    file = tmp_path / "study.toml"
    assert run(monkeypatch, "run", file, "--dry-run") == 0
    said = capsys.readouterr().out
    assert "36 cells, 72,000 paths, 54,000,000 pulls, about 1.8 MB" in said
    assert "0 of 36 files are there; 36 are to be made" in said
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]
    assert run(monkeypatch, "run", file, "--budget", "1e-9s") == 2  # not a time that people write
    assert run(monkeypatch, "run", file, "--budget", "0.001s") == 3
    said = capsys.readouterr().out
    assert f"The budget is spent; still to make: 36 files. Resume with: lighttail run {file}" in said
    assert run(monkeypatch, "run", file, "--workers", "2") == 0
    said = capsys.readouterr().out
    place = tmp_path / "bonus-and-noise"
    assert "36 of 36 files, 36 of them new" in said
    assert f"Report: lighttail report {place}" in said
    assert load_study(place).manifest["digest"] in said
    assert run(monkeypatch, "run", file) == 0
    assert "36 of 36 files, 0 of them new" in capsys.readouterr().out
    file.write_text(EXAMPLE.read_text().replace("paths = 2000", "paths = 2010").replace("[1, 2]", "[1]"))
    assert run(monkeypatch, "run", file, "--dry-run") == 0
    said = capsys.readouterr().out
    assert "0 of 18 files are there; 18 are to be made, 18 of them to replace short last pieces" in said
    assert run(monkeypatch, "run", file) == 0
    said = capsys.readouterr().out
    assert "18 older pieces that longer pieces replaced: kept; --prune removes them" in said
    assert "18 files of cells, paths or data that the study no longer has: kept; --prune removes them" in said
    shutil.copy(EXAMPLE, file)
    assert run(monkeypatch, "run", file, "--prune") == 0
    said = capsys.readouterr().out
    assert "36 of 36 files, 0 of them new" in said  # the older pieces fit again
    assert "--prune removed 18 files" in said
    assert "kept" not in said
    light = load_study(place).outcome("two arms", "light-tailed", horizon=500, sigma=1.0)
    alone = lt.simulate(
        POLICIES["ucb:lighttailed:0.2"], lt.Bandit([0.2, 0.8]), horizon=500, paths=2000, seed=1
    )
    assert np.array_equal(light.reward[:2000], alone.reward)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "soon"], "budget must be a time such as 90s, 10m, 2h or 1d, but is 'soon'"),
        (["--budget", "0"], "budget must be a finite number above 0"),
        (["--workers", "two"], "workers must be a whole number, but is 'two'"),
        (["--workers", "123456789012345678901"], "workers must be a whole number of at most 10000"),
        (["--workers", "0"], "workers must be a whole number of at least 1, but is 0"),
        (["--executor", "gpu"], "executor must be threads, processes or dask:ADDRESS, but is 'gpu'"),
        (["--device", "tpu"], "device must be cpu"),
        (["--out", EXAMPLE], "out must be a folder"),
        (["--out", EXAMPLE.parent], "out must be a new or empty folder"),
    ],
)
def test_bad_words(words: list[Any], said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert run(monkeypatch, "run", EXAMPLE, *words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_more_paths_than_fit_into_memory_are_compared_by_their_law(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = results.comparison(results.study.problems[0], 200)
    monkeypatch.setattr("lighttail.running.prepare.free_memory", lambda: 1e4)
    laws = results.comparison(results.study.problems[0], 200)
    assert paths is not None
    assert laws is not None
    for kept, counted in zip(paths.entries, laws.entries, strict=True):
        assert (kept.outcome.keep, counted.outcome.keep) == ("paths", "law")
        assert counted.outcome.paths == kept.outcome.paths
        assert counted.outcome.mean().value == pytest.approx(kept.outcome.mean().value, rel=1e-12)
        assert counted.exceedance == kept.exceedance
    assert report_study(results).exists()


def test_a_plan_has_room_for_what_is_written(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[float] = []
    monkeypatch.setattr(study_command, "in_bytes", lambda size: said.append(size) or "some")
    study = parse_study(TEXT, "study.toml", lambda name: source / name)
    study_command._size(study, cells.cells_of(study))
    written = sum(file.stat().st_size for file in (source / "out").glob("cells/*/*.parquet"))
    assert 0.1 * said[0] < written <= said[0]  # pulls are small numbers, and compressed


def test_a_threshold_that_no_arm_can_lose_is_said_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = tmp_path / "study.toml"
    for threshold, lines in ((0.59, 0), (0.61, 2)):
        file.write_text(EXAMPLE.read_text().replace("threshold = 0.2", f"threshold = {threshold}"))
        assert run(monkeypatch, "run", file, "--dry-run") == 0
        said = capsys.readouterr().err
        assert said.count("is out of reach with problem") == said.count("\n") == lines, said


def test_a_study_file_is_not_a_study(tmp_path: Path) -> None:
    wrong: Any = "study.toml"
    with pytest.raises(
        BadInput, match=r"^study must be a study, such as read_study\(path\) returns, but is 'st"
    ):
        run_study(wrong, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
