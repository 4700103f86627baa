"""Linear bandits on the command line, in the report and in the paper's page."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import json
import math
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_cases import unit_rows

import lighttail as lt
from lighttail import cli
from lighttail.paper import EXPERIMENTS, run
from lighttail.paper.experiments import Results
from lighttail.paper.linear import (
    LINEAR,
    POLICIES,
    LinearSetting,
    horizons_table,
    noise_table,
    speaks_from,
    theorem_tail,
)
from lighttail.records import Counts

compare_module = importlib.import_module("lighttail.compare")  # the name is the function's
QUICK = ["--paths", "200", "--horizon", "60"]
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lighttail", "compare", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def results_in(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text())


def test_the_defaults_and_the_same_command_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--linear", "--dim", "4", "--actions", "10", *QUICK, "--out", str(tmp_path)]
    assert command(monkeypatch, *words) == 0
    assert "LinearUCB + LightTailed(0.2)" in capsys.readouterr().out
    results = results_in(tmp_path)
    problem = lt.LinearBandit([0.5] * 4, lt.SphereActions(10))
    assert results["problem"] == repr(problem)
    assert [policy["light_tailed_by_theorem"] for policy in results["policies"]] == [
        True,
        False,
        False,
        False,
    ]
    out = lt.simulate(lt.LinearThompson(1.0), problem, horizon=60, paths=200, seed=1)
    assert results["policies"][3]["mean_loss"] == out.mean().to_dict()
    assert results["threshold"] == float(f"{problem.worst_loss(60) / 3:.2g}")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert command(monkeypatch, *shlex.split(results["command"])[2:]) == 0
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert "theta = (0.5, 0.5, 0.5, 0.5)" in (tmp_path / "report.html").read_text()


def test_theta_files_of_actions_and_every_policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.save(tmp_path / "fixed.npy", unit_rows(5, 2))
    policies = ["linucb:standard:0.5", "linucb:oful:1:0.1:2", "lints:0.7"]
    words = [word for policy in policies for word in ("--policy", policy)]
    settings = ["--linear", "--theta", "0.3,-0.4", "--actions", str(tmp_path / "fixed.npy"), "--sigma", "0.5"]
    sweep = ["--assumed-sigma", "0.5,2", "--out", str(tmp_path / "out")]
    assert command(monkeypatch, *settings, *words, *sweep, *QUICK) == 0
    results = results_in(tmp_path / "out")
    fixed = lt.LinearBandit([0.3, -0.4], unit_rows(5, 2), lt.Gaussian(0.5))
    assert results["problem"] == repr(fixed)
    assert [policy["policy"] for policy in results["policies"]] == [
        "LinearUCB(bonus=LinearStandard(beta=0.25), ridge=1.0)",
        "LinearUCB(bonus=LinearStandard(beta=1.0), ridge=1.0)",
        "LinearUCB(bonus=Oful(sigma=0.5, delta=0.1, bound=2.0), ridge=1.0)",
        "LinearUCB(bonus=Oful(sigma=2.0, delta=0.1, bound=2.0), ridge=1.0)",
        "LinearThompson(scale=0.35, ridge=1.0)",
        "LinearThompson(scale=1.4, ridge=1.0)",
    ]
    assert "Mean rewards of the actions: action 1: " in (tmp_path / "out" / "report.html").read_text()


def forbidden(*args: Any, **settings: Any) -> None:
    raise AssertionError("bad input reached the simulation")


REFUSED = [
    (["--linear", "--means", "1,2"], "means must be left out with linear, but is '1,2'"),
    (["--dim", "3"], "dim must be left out without linear, but is '3'"),
    (["--linear", "--dim", "0"], "dim must be a whole number of at least 1, but is 0"),
    (["--linear", "--dim", "3", "--theta", "1,0"], "dim must be 2, as many numbers as theta has, but is 3"),
    (["--linear", "--actions", "cube:3"], "actions must be one of sphere, ball, but is 'cube'"),
    (["--linear", "--actions", "many"], "actions must be a whole number, but is 'many'"),
    (["--linear", "--actions", "no.npy"], "can be read, but is 'no.npy': there is no such file\n"),
    (
        ["--linear", "--policy", "ts:1"],
        "policy must be one for a linear bandit, such as linucb:lighttailed:0.2, but is 'ts:1'",
    ),
    (["--policy", "lints:1"], "policy must be one for arms, such as ucb:lighttailed:0.2"),
    (["--linear", "--policy", "linucb:lighttailed:0"], "kappa must be a finite number above 0, but is 0.0"),
    (["--linear", "--policy", "linucb:oful:1"], "policy must be of the form linucb:lighttailed:KAPPA"),
    (["--linear", "--policy", "linucb:armoptimal:1:1"], "bonus must be one of lighttailed, standard, oful"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED, ids=[sentence[:36] for _, sentence in REFUSED])
def test_bad_input_is_one_line_before_any_work(
    words: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(compare_module, "simulate", forbidden)
    assert command(monkeypatch, *words, "--out", str(tmp_path / "out")) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_context_file_shorter_than_the_horizon_is_said_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "short.npy", unit_rows(40, 4).reshape(20, 2, 4))
    monkeypatch.setattr(compare_module, "simulate", forbidden)
    assert command(monkeypatch, "--linear", "--actions", str(tmp_path / "short.npy"), *QUICK) == 2
    assert "horizon must be at most 20, the rounds for which actions are given" in capsys.readouterr().err


def test_a_problem_outside_the_theorem_is_warned_of_and_not_called_proved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--linear",
        "--theta",
        "1.5,0",
        "--policy",
        "linucb:lighttailed:0.2",
        *QUICK,
        "--out",
        str(tmp_path),
    ]
    assert command(monkeypatch, *words) == 0
    assert capsys.readouterr().err.count("lighttail: warning: the paper's theorem assumes") == 1
    assert not results_in(tmp_path)["policies"][0]["light_tailed_by_theorem"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    parts = [BY_NAME["linear-1"], BY_NAME["linear-3"]]
    return run(parts, tmp_path_factory.mktemp("linear"), paths=60, seed=5)


def test_every_number_of_the_table_comes_from_the_outcomes(results: Results) -> None:
    experiment = BY_NAME["linear-1"]
    rows = list(csv.DictReader(io.StringIO(noise_table(experiment, results).to_csv())))
    assert len(rows) == len(experiment.settings) == 4 * 4 * 4
    for row, setting in zip(rows, experiment.settings, strict=True):
        outcome = results[setting]
        assert (row["policy"], int(row["dim"]), int(row["paths"])) == (
            setting.series,
            setting.dim,
            outcome.paths,
        )
        assert float(row["mean"]) == pytest.approx(outcome.pseudo_regret.mean(), rel=1e-5)
        assert float(row["mean of worst 5 %"]) == pytest.approx(
            outcome.cvar(0.95, "pseudo_regret").value, rel=1e-5
        )
        reached = np.mean(outcome.pseudo_regret >= 0.1 * setting.horizon)
        assert float(row["P(≥ 0.1 T)"]) == pytest.approx(reached, rel=1e-5)


def test_the_words_follow_the_numbers(results: Results) -> None:
    """Where UCB-L lost nothing it is said to lose nowhere; where it lost ten times as much, everywhere."""
    experiment = BY_NAME["linear-1"]

    def words(pulls_best: bool) -> str:
        moved = {}
        for setting in experiment.settings:
            outcome, means = results[setting], np.array(setting.problem.means)
            good = (setting.series == "UCB-L") == pulls_best
            pulls = np.zeros((200, means.size), dtype=np.int64)
            bad = setting.horizon // (20 if good else 2)
            pulls[:, np.argmax(means)] = setting.horizon - bad
            pulls[:, np.argmin(means)] = bad
            moved[setting] = dataclasses.replace(outcome, record=Counts(np.zeros(200), pulls))
        return "\n".join(noise_table(experiment, moved).notes)

    assert "In none of these settings is the mean regret of UCB-L clearly above the lowest." in words(True)
    assert "UCB-L in d = 2, UCB-L in d = 5, UCB-L in d = 10, UCB-L in d = 20." in words(True)
    assert words(False).count("10.0 times that of OFUL") == 8


def test_the_theorems_bound_is_shown_as_saying_nothing(results: Results) -> None:
    table = horizons_table(BY_NAME["linear-3"], results)
    last = [row for row in table.wide_rows if row[0][0].startswith("Thm linear")]
    assert [cell for row in last for cell in row[1:]] == [["1 or more"]] * 8
    assert "between T = 10^12 and 10^13" in table.notes[1]


@pytest.mark.parametrize(("dim", "sigma", "kappa"), [(2, 1.0, 0.2), (5, 1.0, 0.2), (2, 0.5, 1.0)])
def test_the_theorems_bound_is_the_printed_formula(dim: int, sigma: float, kappa: float) -> None:
    """Term by term with eta = (kappa / sigma)^2, where it is below 1; and it never rises with x."""
    t = 10 ** speaks_from(dim, sigma, kappa)
    x, eta, log = LINEAR * t, (kappa / sigma) ** 2, math.log(t)
    front = 2 * dim * (t / dim) ** (2 * dim + 1)
    middle = x - 4 * dim**0.5 - 32 * dim * t**0.5 * log - 16 * sigma * (eta * dim * t) ** 0.5 * log
    first = front * math.exp(-(max(0.0, middle) ** 2) / (512 * sigma**2 * dim * t * log**2))
    second = front * math.exp(-(x - 4 * dim**0.5) * eta**0.5 / (8 * sigma * (dim * t) ** 0.5 * log))
    printed = pytest.approx(first + second, rel=1e-6, abs=0.0)
    assert theorem_tail(x, t, dim, sigma, kappa) == printed
    assert theorem_tail(x, t, dim, sigma, 1.1 * kappa) != printed  # negative control
    values = [theorem_tail(share * t, t, dim, sigma, kappa) for share in (0.0, 0.01, 0.1, 0.5)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1.0


def test_the_problems_are_within_the_theorem_and_have_the_gaps_that_are_named() -> None:
    for series in POLICIES:
        for dim in (2, 20):
            problem = LinearSetting(series, dim, 500, 4).problem
            assert problem.within_theorem
            gaps = max(problem.means) - np.array(problem.means)
            assert sorted({round(gap, 6) for gap in gaps.tolist()}) == [
                0.0,
                round(0.6 - 0.6 / 2**0.5, 6),
                0.6,
            ]


def test_the_python_of_the_page_on_linear_bandits_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "docs" / "linear.md").read_text()
    names: dict[str, object] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        exec(compile(block.replace("paths=2000", "paths=20"), "linear.md", "exec", dont_inherit=True), names)
    assert len(blocks) == 3
    assert capsys.readouterr().out.count("[") == 3  # three estimates with intervals
