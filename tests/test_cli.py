"""The command line as its users meet it: files, output to a pipe, bad input, interruption."""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import lighttail as lt
from lighttail import cli
from lighttail.checks import BadInput
from lighttail.kernels import compiled
from lighttail.report.document import code
from lighttail.report.figures import styled, survival_figure
from lighttail.report.page import page
from lighttail.running import prepare
from lighttail.system import files
from lighttail.system.versions import EXTRAS, NEEDED

compare_module = importlib.import_module("lighttail.compare")  # the name is the function's
FILES = {"report.html", "results.json"} | {
    f"{name}.{form}" for name in ("survival", "histograms") for form in ("png", "svg")
}
QUICK = ["--paths", "400", "--horizon", "100"]
START = "import sys; sys.argv[0] = 'lighttail'; from lighttail import cli; cli.main()"
PROGRAM = [sys.executable, "-c", START]


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["lighttail", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_defaults_are_the_papers_problem_and_its_six_policies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "compare", "--out", str(tmp_path / "new" / "folder")) == 0
    screen = capsys.readouterr().out
    assert {file.name for file in (tmp_path / "new" / "folder").iterdir()} == FILES
    results = json.loads((tmp_path / "new" / "folder" / "results.json").read_text())
    labels = [policy["label"] for policy in results["policies"]]
    assert labels == [
        "SE + Standard(0.4)",
        "UCB + Standard(0.8)",
        "TS(0.8)",
        "SE + LightTailed(0.1)",
        "UCB + LightTailed(0.2)",
        "UCB + AnyTime(0.282843)",
    ]
    assert all(label in screen for label in labels)
    assert results["verdict"] in screen
    assert [policy["light_tailed_by_theorem"] for policy in results["policies"]] == [False] * 3 + [True] * 3
    assert (results["horizon"], results["paths"], results["threshold"]) == (500, 5000, 100)
    assert "\x1b" not in screen  # a pipe gets no colours


def test_numbers_are_those_of_simulate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["--means", "0,1,0.5", "--noise", "laplace", "--sigma", "2", "--policy", "ts:0.7", "--seed", "9"]
    assert run(monkeypatch, "compare", *words, *QUICK, "--out", str(tmp_path)) == 0
    out = lt.simulate(
        lt.ThompsonSampling(0.7), lt.Bandit([0, 1, 0.5], lt.Laplace(2.0)), horizon=100, paths=400, seed=9
    )
    (policy,) = json.loads((tmp_path / "results.json").read_text())["policies"]
    assert policy["mean_loss"] == out.mean().to_dict()
    assert policy["loss_cvar_99"] == out.cvar(0.99).to_dict()
    assert policy["share_of_paths"] == out.exceedance(33.0).to_dict()
    assert policy["chance"] == policy["growth"]["points"][-1]["chance"]
    assert policy["worst_loss"] == out.pseudo_regret.max()
    html = (tmp_path / "report.html").read_text()
    assert f"{out.mean().value:.1f}" in html


def test_a_comparison_of_laws_says_what_one_of_paths_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same paths: up to 4,096 of them every number but the last digit, with more within the bins."""
    words = [
        "--policy",
        "se:standard:0.3",
        "--policy",
        "ucb:lighttailed:0.2",
        "--horizon",
        "100",
        "--paths",
        "20000",
    ]
    for keep in ("paths", "law"):
        assert run(monkeypatch, "compare", *words, "--keep", keep, "--out", str(tmp_path / keep)) == 0
    kept, counted = (json.loads((tmp_path / keep / "results.json").read_text()) for keep in ("paths", "law"))
    assert {file.name for file in (tmp_path / "law").iterdir()} == FILES
    assert counted["verdict"] == kept["verdict"]
    assert "--keep law" in counted["command"]
    for ours, theirs in zip(counted["policies"], kept["policies"], strict=True):
        assert ours["settings"] == {**theirs["settings"], "keep": "law"}
        for name in ("worst_loss", "chance"):
            assert ours[name] == theirs[name]
        assert ours["mean_loss"]["value"] == pytest.approx(theirs["mean_loss"]["value"], rel=1e-12)
        for name in ("loss_quantile_95", "loss_quantile_99", "loss_cvar_99"):
            for end in ("value", "low", "high"):
                assert ours[name][end] == pytest.approx(theirs[name][end], rel=2**-10, abs=0.01)
    pages = [(tmp_path / keep / "report.html").read_text() for keep in ("paths", "law")]
    assert ["law of the paths was kept" in " ".join(page.split()) for page in pages] == [False, True]


def test_the_page_needs_no_network_and_names_the_command_that_made_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["--policy", "ucb:lighttailed:0.2", "--policy", "exp3ix:loss:1", "--seed", "3"]
    assert run(monkeypatch, "compare", *words, *QUICK, "--out", str(tmp_path / "one two")) == 0
    html = (tmp_path / "one two" / "report.html").read_text()
    outside = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", html)
    assert "http" not in outside
    assert re.search(r"<h1>What is the chance of losing [\d.]+ or more\?</h1>", html)  # P(regret >= x)
    assert not re.search(r"(src|href)=\"(?!\")[^\"]", outside)
    before = {name: (tmp_path / "one two" / name).read_bytes() for name in FILES}
    command = json.loads(before["results.json"])["command"]
    assert code(command) in html
    program, *again = shlex.split(command)
    assert program == "lighttail"
    assert run(monkeypatch, *again) == 0
    after = {name: (tmp_path / "one two" / name).read_bytes() for name in FILES}
    assert before == after


def test_json_is_all_that_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--policy", "ts:1", "--json", "--out", str(tmp_path)]
    assert run(monkeypatch, "compare", *QUICK, *words) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == json.loads((tmp_path / "results.json").read_text())
    assert printed.err == ""


def test_an_open_interval_is_null_in_json_and_named_in_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--paths", "50", "--horizon", "50", "--policy", "ucb:lighttailed:0.2", "--out", str(tmp_path)]
    assert run(monkeypatch, "compare", *words) == 0
    (policy,) = json.loads((tmp_path / "results.json").read_text())["policies"]
    assert policy["loss_quantile_99"]["high"] is None
    assert policy["loss_cvar_99"]["high"] == pytest.approx(0.6 * 50)  # no path can lose more
    assert "≥" in capsys.readouterr().out.split("worst path")[1]


def test_assumed_sigma_scales_every_kappa(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    policies = ["ucb:armoptimal:0.4:0.2", "ts:0.8", "exp3ix:reward"]
    words = [word for policy in policies for word in ("--policy", policy)]
    sweep = ["--assumed-sigma", "0.5,2", "--out", str(tmp_path)]
    assert run(monkeypatch, "compare", *QUICK, *words, *sweep) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert [policy["policy"] for policy in results["policies"]] == [
        "UCB(bonus=ArmOptimal(kappa=0.2, floor=0.1))",
        "UCB(bonus=ArmOptimal(kappa=0.8, floor=0.4))",
        "ThompsonSampling(kappa=0.4, prior_mean=0.0, prior_sd=1.0)",
        "ThompsonSampling(kappa=1.6, prior_mean=0.0, prior_sd=1.0)",
        "Exp3IX(estimator='reward', upper=None, eta=None, gamma=None)",  # assumes no noise: once
    ]
    assert [policy["label"] for policy in results["policies"]][2:] == [
        "TS(0.4), σ 0.5 assumed",
        "TS(1.6), σ 2 assumed",
        "EXP3-IX(reward)",
    ]


def test_arms_from_a_csv_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = tmp_path / "rewards.csv"
    data.write_text("﻿when,arm,reward\n1,new,1\n2,old,0.5\n3,new,2\n4,old,-1e0\n")
    words = ["--data", str(data), "--policy", "ts:1", "--out", str(tmp_path / "out")]
    assert run(monkeypatch, "compare", *QUICK, *words) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "new: 1.5, old: -0.25" in page


BAD = {
    "means": (["--means", "0.2"], "means must be at least two numbers"),
    "means text": (["--means", "0.2,x"], "means must be a number, but is 'x'"),
    "means nan": (["--means", "0.2,nan"], "means[1] must be a finite number, but is nan"),
    "bernoulli": (["--noise", "bernoulli", "--means", "0.2,1.8"], "means[1] must be between 0 and 1"),
    "bernoulli sigma": (["--noise", "bernoulli", "--sigma", "2"], "sigma must be left out"),
    "noise": (["--noise", "gausian"], "did you mean 'gaussian'?"),
    "bernoulli sigma 0": (["--noise", "bernoulli", "--sigma", "0"], "sigma must be left out"),
    "empty means": (["--means", ""], "means must be a number, but is ''"),
    "empty noise": (["--noise", ""], "noise must be one of"),
    "huge means": (["--means", "1e308,-1e308"], "means must be so small"),
    "huge loss": (
        ["--loss", "301"],
        "loss must be at most 300, because no policy can lose more in 500 pulls, but is 301",
    ),
    "two losses": (
        ["--loss", "30", "--threshold", "0.1"],
        "threshold must be left out with loss, which means",
    ),
    "huge threshold": (
        ["--threshold", "1e308"],
        "threshold must be at most 0.6, because no policy can lose more than 300 in 500 pulls, but is 1e+308",
    ),
    "huge kappa": (["--policy", "ts:1e200"], "kappa / prior_sd must be"),
    "long folder": (["--out", "x" * 300], "out must be a folder that can be written"),
    "df": (["--noise", "studentt:2"], "df must be a finite number above 2"),
    "sigma": (["--sigma", "-1"], "sigma must be a finite number, 0 or more, but is -1.0"),
    "kappa zero": (["--policy", "ucb:standard:0"], "kappa must be a finite number above 0, but is 0.0"),
    "kappa nan": (["--policy", "ts:nan"], "kappa must be a finite number above 0, but is nan"),
    "policy": (["--policy", "ubc:standard:1"], "did you mean 'ucb'?"),
    "policy list": (["--policy", "best"], "policy must be one of ucb, se, ts, exp3ix"),
    "bonus": (["--policy", "ucb:lightailed:1"], "did you mean 'lighttailed'?"),
    "form": (["--policy", "ucb:standard"], "policy must be of the form ucb:BONUS:KAPPA"),
    "exp3": (["--policy", "exp3ix"], "policy must be of the form exp3ix:reward"),
    "horizon": (["--horizon", "1"], "horizon must be a whole number of at least 2"),
    "horizon text": (["--horizon", "long"], "horizon must be a whole number, but is 'long'"),
    "horizon with commas": (
        ["--horizon", "20,000"],
        "horizon must be a whole number, written without signs between digits, but is '20,000'",
    ),
    "paths text": (["--paths", "1.5e0"], "paths must be a whole number, but is '1.5e0'"),
    "threads text": (["--threads", "all"], "threads must be a whole number, but is 'all'"),
    "threshold text": (["--threshold", "much"], "threshold must be a number, but is 'much'"),
    "paths": (["--paths", "0"], "paths must be a whole number of at least 1, but is 0"),
    "seed": (["--seed", "-1"], "seed must be a whole number of at least 0, but is -1"),
    "threads": (["--threads", "0"], "threads must be a whole number of at least 1, but is 0"),
    "threshold": (["--threshold", "0"], "threshold must be a finite number above 0, but is 0.0"),
    "assumed": (["--assumed-sigma", "0"], "assumed-sigma must be a finite number above 0, but is 0.0"),
    "keep": (["--keep", "laws"], "keep must be 'paths' or 'law', but is 'laws'"),
    "too many": (
        ["--paths", "3e10"],
        "paths must be at most 10000000000, or 1000000000000 with --keep law, but is",
    ),
    "memory": (["--paths", "9999999999"], "; --keep law needs 20 MB whatever the paths), but is 9999999999"),
    "option": (["--hoizon", "5"], "--hoizon"),
    "no file": (
        ["--data", "missing.csv"],
        "data must be a file that can be read, but is 'missing.csv': there is no",
    ),
    "a folder": (["--data", "."], "data must be a file that can be read, but is '.': Is a directory"),
    "data and means": (["--data", "x.csv", "--means", "0,1"], "means must be left out with data"),
}


LONG_LIST = ",".join(map(str, range(2, 2000)))
SIZES = {
    "tail pulls": (
        ["tail", "--horizon", "1e12"],
        "horizon must be at most 10,000,000 for a tail, but is 1000000000000",
    ),
    "tail arms": (
        ["tail", "--means", LONG_LIST, "--horizon", "3000"],
        "the number of arms must be at most 1,000 for a tail, but is 1998",
    ),
    "regrets": (
        ["tail", "--regret", LONG_LIST],
        "loss must be a number, or a list of 1 to 1,000 numbers",
    ),
    "bound regrets": (["bound", "--regret", LONG_LIST], "loss must be a number, or a list of 1 to 1,000"),
    "dim": (
        ["compare", "--linear", "--dim", "1e12"],
        "dim must be a whole number of at most 100000, but is 1000",
    ),
    "matrices": (
        ["compare", "--linear", "--dim", "1e5"],
        "so small that its matrices fit into memory (about 640 GB",
    ),
    "actions": (
        ["compare", "--linear", "--actions", "1e12"],
        "actions must be a whole number of at most 1000000, but is 1000000000000",
    ),
    "pulls": (
        ["compare", "--horizon", "1e15"],
        "horizon must be at most 100000000000 where every pull is played",
    ),
    "all pulls": (
        ["compare", "--policy", "ts:1", "--horizon", "1e9", "--paths", "1e7", "--keep", "law"],
        "paths * horizon must be at most 1,000,000,000,000,000 where every pull is played, as with TS(1)",
    ),
    "threads": (["compare", "--threads", "1e9"], "threads must be a whole number of at most 10000"),
    "policies": (
        ["compare", "--assumed-sigma", LONG_LIST],
        "the number of policies must be at most 500 in one comparison, but is 11988",
    ),
    "paper": (["paper", "--paths", "1e12"], "paths must be at most 10000000000"),
    "paper threads": (["paper", "--threads", "1e9"], "threads must be a whole number of at most 10000"),
    "long seed": (["compare", "--seed", "9" * 4000], "seed must be a whole number of at most 4096 bits"),
    "long word": (["compare", "--policy", "ucb:" + "a" * 5000], "a ..."),
    "long option": (["compare", "--" + "a" * 5000], "a ..."),
    "no text": (["compare", "--noise", "\udcff"], "a word of the command must be text in UTF-8"),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_refused_in_a_sentence_before_any_work(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, sentence = SIZES[name]
    monkeypatch.setattr(prepare, "free_memory", lambda: 8e9)
    monkeypatch.setattr(compare_module, "simulate", forbidden)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *words) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert sentence in printed.err
    assert len(printed.err) < 500
    assert list(tmp_path.iterdir()) == []


def test_a_memory_that_does_not_suffice_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: Any, **settings: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(compare_module, "simulate", fail)
    assert run(monkeypatch, "compare", "--out", str(tmp_path / "out")) == 1
    assert capsys.readouterr().err.startswith("lighttail: there is not enough memory for this")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_half_report_and_names_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[Path] = []
    real = files.whole_file

    @contextmanager
    def full(path: Path, **settings: Any) -> Any:
        made.append(path)
        with real(path, **settings) as file:
            if len(made) == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield file

    monkeypatch.setattr(files, "whole_file", full)
    assert run(monkeypatch, "compare", *QUICK, "--policy", "ts:1", "--out", str(tmp_path / "out")) == 1
    assert capsys.readouterr().err == f"lighttail: {made[2]} could not be written (no space left on device)\n"
    assert list(tmp_path.iterdir()) == []


def test_a_warning_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def warn(*args: Any, **settings: Any) -> None:
        warnings.warn("the compiled kernel\nis damaged", compiled.CacheNote, stacklevel=1)
        raise BadInput("bad")

    monkeypatch.setattr(compare_module, "simulate", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run(monkeypatch, "compare", "--out", str(tmp_path / "out")) == 2
    assert capsys.readouterr().err == "lighttail: warning: the compiled kernel is damaged\nlighttail: bad\n"


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2_before_any_work(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, sentence = BAD[name]
    monkeypatch.setattr(compare_module, "simulate", forbidden)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "compare", "--out", "out", *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("lighttail: ")
    assert printed.err.count("\n") == 1
    assert sentence in printed.err
    assert list(tmp_path.iterdir()) == []


BAD_CSV = {
    "no header": ("", "columns arm and reward in line 1"),
    "semicolons": ("arm;reward\nA;1\n", "by commas, and here they seem to be separated by ';'"),
    "capitals": ("Arm,Reward\nA,1\n", "; did you mean --arm-column Arm and --reward-column Reward?"),
    "other header": (
        "who,won\nA,1\n",
        "but has 'who, won'; other columns can be named by --arm-column NAME and --reward-column NAME\n",
    ),
    "missing values": (
        "arm,reward\nA,1\nB,\nA,NA\nB,0\nA,0\n",
        "reward must be a finite number in line 3 of rewards.csv, but is ''; 2 of 5 lines have no number "
        "there. Remove such lines first: lighttail does not guess missing values\n",
    ),
    "one missing value": ("arm,reward\nA,1\nB,\n", "; 1 of 2 lines has no number there. Remove"),
    "no numbers": ("arm,reward\nA,x\nB,y\n", "no line has a number there. Is this the column of the"),
    "text reward": ("arm,reward\nA,1\nB,one\n", "reward must be a finite number in line 3"),
    "nan reward": ("arm,reward\nA,nan\n", "line 2"),
    "no reward": ("arm,reward\nA,1\nB\n", "line 3"),
    "no arm": ("arm,reward\nA,1\n,2\n", "arm must be a name in line 3"),
    "one arm": ("arm,reward\nA,1\nA,2\n", "at least two arms"),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_a_malformed_csv_is_named_with_its_line(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, sentence = BAD_CSV[name]
    monkeypatch.chdir(tmp_path)
    Path("rewards.csv").write_text(text)
    assert run(monkeypatch, "compare", "--data", "rewards.csv", "--out", "out") == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_binary_data_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "rewards.csv"
    data.write_bytes(b"\xff\xfe\x00arm")
    assert run(monkeypatch, "compare", "--data", str(data), "--out", str(tmp_path / "out")) == 2
    assert "must be a CSV file in UTF-8" in capsys.readouterr().err


def test_an_output_folder_that_cannot_be_written_is_refused_before_the_simulation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(compare_module, "simulate", forbidden)
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert run(monkeypatch, "compare", "--out", str(place)) == 2
        assert "out must be a folder that can be written" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt, 130), (BadInput("bad"), 2), (OSError("disk full"), 1)]
)
def test_a_run_that_ends_early_leaves_nothing_behind(
    error: Any, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: Any, **settings: Any) -> None:
        raise error

    monkeypatch.setattr(compare_module, "simulate", fail)
    assert run(monkeypatch, "compare", "--out", str(tmp_path / "deep" / "er")) == code
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err.count("\n") == 1


def test_the_threshold_follows_the_scale_of_the_rewards() -> None:
    """A third of the largest possible loss, so that ruin is found in small units too."""
    for scale in (0.1, 1.0, 50.0):
        problem = lt.Bandit([0.2 * scale, 0.8 * scale], lt.Gaussian(scale))
        comparison = lt.compare([lt.UCB(lt.Standard(0.1 * scale))], problem, horizon=500, paths=1000, seed=1)
        assert comparison.threshold == pytest.approx(100 * scale)
        assert comparison.entries[0].exceedance.low > 1e-3


def test_a_threshold_out_of_reach_is_refused_before_anything_is_simulated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare_module, "simulate", forbidden)
    words = ["--means", "0.1,0.2", "--horizon", "100", "--threshold", "0.2", "--out", str(tmp_path / "new")]
    assert run(monkeypatch, "compare", *words) == 2
    said = "threshold must be at most 0.1, because no policy can lose more than 10 in 100 pulls"
    assert capsys.readouterr().err == f"lighttail: {said}, but is 0.2\n"
    assert not (tmp_path / "new").exists()


def test_a_comparison_asks_about_the_loss_that_is_named_and_says_where_another_comes_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--means", "0.1,0.4", "--policy", "ucb:standard:0.2", "--horizon", "100", "--paths", "100"]
    words += ["--no-growth", "--out", str(tmp_path)]
    own = "The loss of 10 is a third of what pulling the worst arm every time loses"
    shown = {}
    for name, more in {"own": [], "loss": ["--loss", "12"], "share": ["--threshold", "0.12"]}.items():
        assert run(monkeypatch, "compare", *words, *more) == 0
        shown[name] = capsys.readouterr().out
    assert own in shown["own"]
    assert "losing 10 or more" in shown["own"]
    for name in ("loss", "share"):
        assert own not in shown[name]
        assert "losing 12 or more" in shown[name]


def test_arms_that_are_equal_leave_nothing_to_lose() -> None:
    comparison = lt.compare([lt.UCB(lt.Standard(0.1))], lt.Bandit([0.5, 0.5]), horizon=50, paths=200, seed=1)
    assert comparison.verdict().startswith("All arms are equally good")


def test_a_policy_given_twice_is_shown_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["--policy", "ts:0.8", "--policy", "ts:0.80", "--out", str(tmp_path)]
    assert run(monkeypatch, "compare", *QUICK, *words) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert [policy["label"] for policy in results["policies"]] == ["TS(0.8)"]


def test_a_verdict_on_many_policies_stays_short() -> None:
    policies = [lt.UCB(lt.Standard(0.01 * k)) for k in range(1, 21)]
    comparison = lt.compare(policies, lt.Bandit([0.2, 0.8]), horizon=100, paths=1000, seed=1)
    assert " is lowest, 15 % (between 12.8 % and 17.4 %), for UCB + Standard(0.2)" in comparison.verdict()
    assert len(comparison.verdict()) < 400


def test_few_paths_give_no_verdict() -> None:
    comparison = lt.compare([lt.UCB(lt.Standard(0.1))], lt.Bandit([0.2, 0.8]), horizon=2, paths=1, seed=1)
    assert "cannot tell" in comparison.verdict()


def test_no_theorem_covers_noise_that_is_not_sub_gaussian() -> None:
    for noise, proved in ((lt.Gaussian(), True), (lt.StudentT(3), False), (lt.Laplace(), False)):
        problem = lt.Bandit([0.2, 0.8], noise)
        comparison = lt.compare([lt.UCB(lt.LightTailed(0.2))], problem, horizon=20, paths=10, seed=1)
        assert comparison.entries[0].light_tailed == proved
        why = f"no theorem covers {type(noise).__name__} noise"
        (legend,) = survival_figure(comparison).legends
        assert legend.get_title().get_text() == ("solid: light-tailed by theorem" if proved else why)
        html = page(comparison, "", b"", b"")
        assert "<p>1 policy, 20 pulls per path" in html
        assert "<title>lighttail: 1 policy compared</title>" in html
        assert "mean of worst 1&nbsp;%" in html
        assert ("Filled: light-tailed by theorem; hatched: not." in html) == proved
        assert (f"{why[0].upper()}{why[1:]}. Triangle" in html) != proved


@pytest.mark.parametrize(("each", "panels"), [(4, [8]), (5, [5, 5])])
def test_many_curves_get_a_panel_for_each_kind_of_policy(each: int, panels: list[int]) -> None:
    policies = [lt.UCB(bonus(0.1 * k)) for bonus in (lt.LightTailed, lt.Standard) for k in range(1, each + 1)]
    comparison = lt.compare(policies, lt.Bandit([0.2, 0.8]), horizon=20, paths=10, seed=1)
    shown = [axes for axes in survival_figure(comparison).axes if axes.get_visible()]
    names = [axes.get_legend_handles_labels()[1] for axes in shown]
    assert [len(name) for name in names] == panels
    assert sorted(label for name in names for label in name) == sorted(
        entry.label for entry in comparison.entries
    )
    assert len({axes.get_xlim() for axes in shown}) == len({axes.get_ylim() for axes in shown}) == 1


def test_many_policies_all_look_different() -> None:
    policies = [lt.UCB(lt.LightTailed(0.1 * k)) for k in range(1, 14)]
    policies += [lt.UCB(lt.Standard(0.1 * k)) for k in range(1, 14)]
    comparison = lt.compare(policies, lt.Bandit([0.2, 0.8]), horizon=20, paths=10, seed=1)
    styles = [str(sorted(look.items(), key=str)) for _, look in styled(comparison.entries)]
    assert len(set(styles)) == len(policies)


def test_policies_that_shorten_to_the_same_name_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["--policy", "ts:0.8", "--policy", "ts:0.8000000001", "--out", str(tmp_path / "a[/b]")]
    assert run(monkeypatch, "compare", *QUICK, *words) == 0
    results = json.loads((tmp_path / "a[" / "b]" / "results.json").read_text())
    labels = [policy["label"] for policy in results["policies"]]
    assert len(set(labels)) == 2


def test_elimination_with_an_any_time_bonus_warns_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--policy", "se:anytime:0.3", "--assumed-sigma", "1,2", "--out", str(tmp_path)]
    assert run(monkeypatch, "compare", *QUICK, *words) == 0
    assert capsys.readouterr().err.count("is not light-tailed") == 1


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    first, python, needed, *extras = capsys.readouterr().out.splitlines()
    assert (first, python.split()[0]) == (f"lighttail {lt.__version__}", "Python")
    assert f"numpy {np.__version__}, numba " in needed
    assert [line.partition(":")[0] for line in extras] == list(EXTRAS)
    assert run(monkeypatch) == 0
    assert "compare" in capsys.readouterr().out
    assert run(monkeypatch, "compare", "--help") == 0
    assert "--assumed-sigma" in capsys.readouterr().out


def test_the_help_shows_a_flag_by_its_name_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """typer 0.29 writes <bool> after every flag."""

    def below(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name, command in getattr(group, "commands", {}).items():
            yield from below(command, (*words, name))

    every = list(below(typer.main.get_command(cli.app), ()))
    assert {(), ("compare",), ("journal", "check"), ("keys", "add")} <= set(every)
    for words in every:
        assert run(monkeypatch, *words, "--help") == 0
        screen = capsys.readouterr().out
        assert re.search(r"--help +Show this message", screen), words
        assert not re.search("<bool>|BOOLEAN", screen), words


def test_the_parts_of_the_version_are_those_of_pyproject() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]

    def names(requirements: list[str]) -> list[str]:
        return [re.split(r"[\[<>=!;~ ]", one)[0] for one in requirements]

    assert names(project["dependencies"]) == list(NEEDED)
    assert list(project["optional-dependencies"]) == list(EXTRAS)
    for extra, needed in project["optional-dependencies"].items():
        assert set(names(needed)) - {"uvloop"} <= set(EXTRAS[extra])  # uvloop is not for every system


def test_a_report_that_replaces_another_says_so_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", *QUICK, "--policy", "ts:1", "--no-growth", "--out", str(tmp_path / "here")]
    said = f"lighttail: {tmp_path / 'here'} had a report already, which was replaced\n"
    for expected, more in (("", []), (said, []), ("", ["--json"])):
        assert run(monkeypatch, *words, *more) == 0
        assert capsys.readouterr().err == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_completion_is_made(shell: str) -> None:
    asked = {**os.environ, "_LIGHTTAIL_COMPLETE": f"source_{shell}"}
    script = subprocess.run(PROGRAM, env=asked, capture_output=True, text=True, check=True).stdout
    assert f"_LIGHTTAIL_COMPLETE=complete_{shell}" in script
    assert "lighttail" in script.strip().splitlines()[0 if shell == "zsh" else -1]


def test_completion_finds_the_commands() -> None:
    asked = {"_LIGHTTAIL_COMPLETE": "complete_bash", "COMP_WORDS": "lighttail comp", "COMP_CWORD": "1"}
    done = subprocess.run(PROGRAM, env=os.environ | asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["compare"]


def forbidden(*args: Any, **settings: Any) -> None:
    raise AssertionError("bad input reached the simulation")
