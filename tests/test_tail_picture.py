"""The picture of a tail: its data agree with each other, its words are true, its commands behave."""

from __future__ import annotations

import json
import math
import shlex
import sys
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lighttail as lt
from lighttail import cli
from lighttail.report.tail import tail_figure
from lighttail.report.tail_words import guarantee_words, note, rows, sentence
from lighttail.tails import curve as tail_module
from lighttail.tails.curve import TailCurve, TailPoint, tail_curve
from lighttail.tails.known import KnownBounds

LIGHT, TWO = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.2, 0.8])
Z = 4.5
FILES = {"report.html", "results.json", "tail.png", "tail.svg"}


@pytest.fixture(scope="module")
def curve() -> TailCurve:
    return tail_curve(LIGHT, TWO, 60, [12, 30], seed=7, method="importance", threads=2)


def estimated_well(point: TailPoint, truth: float) -> bool:
    """Within Z standard errors; the relative error is that of a 95 % interval."""
    error = point.estimate.diagnostics.relative_error * Z / 1.96
    return abs(point.estimate.value / truth - 1.0) <= error


def test_simulation_estimates_exact_values_and_bounds_agree(curve: TailCurve) -> None:
    assert 6 <= len(curve.points) <= 10
    assert [point.regret for point in curve.points] == sorted({point.regret for point in curve.points})
    hits = 0
    for point in curve.points:
        assert point.exact is not None
        assert estimated_well(point, point.exact)
        sample = curve.outcome.exceedance(point.regret, "pseudo_regret", level=0.99999)
        assert sample.low <= point.exact <= sample.high
        assert point.bounds.certificate is not None
        assert point.bounds.theorem is not None
        assert point.bounds.certificate.value >= point.exact
        assert point.bounds.theorem.value >= point.exact
        hits += point.estimate.low <= point.exact <= point.estimate.high
    assert hits >= 0.7 * len(curve.points)


def test_a_wrong_policy_would_be_noticed(curve: TailCurve) -> None:
    """Negative control: exact values of a kappa 15 % larger fail the same checks."""
    wrong = lt.UCB(lt.LightTailed(0.23))
    point = curve.at(30)
    assert not estimated_well(point, lt.exact_tail(wrong, TWO, horizon=60, regret=30))


def test_what_was_asked_for_is_what_tail_probability_says(curve: TailCurve) -> None:
    for regret in (12, 30):
        alone = lt.tail_probability(LIGHT, TWO, 60, regret, seed=7, method="importance")
        assert curve.at(regret).estimate == alone
    assert curve.asked == (12.0, 30.0)


def test_the_simulated_curve_is_the_share_of_paths(curve: TailCurve) -> None:
    for x, value, low, high in zip(*curve.simulated(), strict=True):
        share = curve.outcome.exceedance(float(x), "pseudo_regret")
        assert (value, low, high) == pytest.approx((share.value, share.low, share.high))


def test_the_sentence_has_its_numbers_from_the_point(curve: TailCurve) -> None:
    point = curve.at(12)
    known = lt.bounds.certificate(LIGHT, TWO, horizon=60, regret=12)
    text = sentence(curve, point)
    assert text.startswith(f"The chance of losing 12 or more is {100 * point.estimate.value:.3g} %")
    assert f"between {100 * point.estimate.low:.3g} % and {100 * point.estimate.high:.3g} %" in text
    assert text.endswith(f"; the certificate guarantees at most {100 * known.value:.3g} %.")


def test_the_smaller_bound_is_the_guarantee(curve: TailCurve) -> None:
    point = curve.at(12)
    small, large = (
        lt.bounds.Bound(value, source, False) for value, source in ((0.1, "Thm x"), (0.2, "certificate"))
    )
    other = replace(point, bounds=KnownBounds(small, large))
    assert sentence(curve, other).endswith("the theorem (Thm x) guarantees at most 10 %.")
    nothing = replace(point, bounds=KnownBounds(None, lt.bounds.Bound(1.0, "certificate", True), "none"))
    assert sentence(curve, nothing).endswith("no useful guarantee is available for this problem.")


SENTENCES: dict[str, tuple[Any, ...]] = {
    "impossible": (LIGHT, TWO, 40, 100, {}, "Losing 100 or more is impossible in 40 pulls."),
    "first pulls": (LIGHT, TWO, 40, 0.5, {}, "is certain: every arm is pulled at least once."),
    "in turn": (lt.EvenSplit(), TWO, 40, 10, {}, "is certain: the policy pulls the arms in turn."),
    "not in turn": (lt.EvenSplit(), TWO, 40, 20, {}, "is impossible in 40 pulls with this policy."),
    "nothing": (LIGHT, TWO, 40, 0, {}, "Losing 0 or more is certain: every policy loses 0 or more."),
    "equal arms": (LIGHT, lt.Bandit([0.5, 0.5]), 40, None, {}, "All arms are equally good"),
    "equal arms, regret": (
        LIGHT,
        lt.Bandit([0.5, 0.5]),
        40,
        20,
        {"kind": "regret"},
        "The chance of a regret",
    ),
    "no bound": (lt.Exp3IX("reward"), TWO, 40, 15, {"kind": "regret"}, "no bound is known ("),
    "no tilts": (
        LIGHT,
        lt.Bandit([0.2, 0.8], lt.Laplace()),
        40,
        15,
        {},
        "no bound is known (every bound",
    ),
    "never seen": (
        LIGHT,
        lt.Bandit([0.2, 0.8], lt.Uniform(0.1)),
        40,
        23,
        {},
        "no simulated path lost so much",
    ),
    "many arms": (LIGHT, lt.Bandit([0.1 * k for k in range(8)]), 40, 20, {}, "no useful guarantee"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_events_of_every_kind_get_a_true_sentence_and_a_picture(name: str) -> None:
    policy, problem, horizon, regret, more, words = SENTENCES[name]
    found = tail_curve(policy, problem, horizon, regret, seed=1, most_pulls=400_000, **more)
    asked = [found.at(x) for x in found.asked]
    assert words in sentence(found, asked[0])
    assert rows(asked[0], found.outcome.paths, horizon)[0][0] == asked[0].estimate.method
    axes = tail_figure(found).axes[0]
    assert axes.lines
    assert 0.0 < axes.get_ylim()[0] < axes.get_ylim()[1]
    left, right = axes.get_xlim()
    assert math.isfinite(left)
    assert right > left


def test_a_budget_that_ends_first_is_said_to(curve: TailCurve) -> None:
    found = tail_curve(lt.Exp3IX("reward"), TWO, 40, 15, seed=1, most_pulls=8000)
    assert note(found, found.at(15)).startswith("The budget of 8,000 pulls was spent before")
    assert note(curve, curve.at(12)).endswith("(asked for: at most 0.05).")


@pytest.mark.parametrize("method", ["exact", "importance"])
def test_a_chance_too_small_for_a_float_is_said_to_be_so(method: Any) -> None:
    policy, problem = lt.UCB(lt.LightTailed(20.0)), lt.Bandit([0.0, 30.0])
    found = tail_curve(policy, problem, 60, 1700, seed=1, most_pulls=400_000, method=method)
    point = found.at(1700)
    below = "below 2.2e-308"
    shown = f"{below}, less than a float can hold" if method == "importance" else "below 1e-280"
    assert f"is {shown}" in sentence(found, point)
    assert sentence(found, point).endswith(f"guarantees a chance {below}.")
    table = {name: cells for name, *cells in rows(point, found.outcome.paths, 60)}
    assert table[point.estimate.method][:2] == [shown.partition(",")[0], ""]
    assert point.estimate.method.startswith(method)
    assert table["certificate"][0] == below
    assert guarantee_words(point.bounds) == f"{below} (certificate)"
    assert note(found, point) == f"A chance {shown.partition(',')[0]} has no relative error."
    assert all(point.estimate.high > 0.0 for point in found.points if point.regret not in found.asked)


def test_the_note_says_how_far_the_estimate_can_be_trusted(curve: TailCurve) -> None:
    settings: Any = {"relative_error": 0.2, "seed": 1, "method": "importance"}
    point = replace(curve.at(30), estimate=lt.tail_probability(LIGHT, TWO, 60, 30, **settings))
    assert note(curve, point).startswith("Relative error 0.")
    assert "exactly" in sentence(curve, point)
    assert [row[0] for row in rows(point, 1000, 60)][:3] == [
        "importance sampling",
        "simulated paths",
        "exact",
    ]
    doubted = replace(point.estimate.diagnostics, doubt="two plans disagree: 1e-05 and 2e-06")
    estimate = replace(point.estimate, reached=False, diagnostics=doubted)
    words = note(curve, replace(point, estimate=estimate))
    assert words == "The estimate cannot be trusted: two plans disagree: 1e-05 and 2e-06."
    spent = replace(point, estimate=replace(point.estimate, reached=False))
    assert note(curve, spent).startswith("The budget of pulls was spent")


def test_plot_tail_draws_into_given_axes_and_says_so_in_the_title() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots(1, 2)
    calls: list[tuple[str, int]] = []
    settings: Any = {"paths": 500, "seed": 1, "progress": lambda *step: calls.append(step)}
    assert lt.plot_tail(LIGHT, TWO, 50, 12, ax=axes[1], **settings) is figure
    assert "losing 12 or more" in axes[1].get_title("left")
    assert not axes[0].lines
    labels = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert any(label.startswith("theorem") and "tells us nothing" in label for label in labels)
    assert "certificate: at most" in labels
    assert calls[-1][1] <= tail_module.steps(1)
    asked, *further = [label for label, _ in calls if "the chance of" in label]
    assert asked == "the chance of 12"
    assert further
    assert all(label.startswith("for the curve: the chance of ") for label in further)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lighttail", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_command_tells_the_sentence_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "one two"
    words = ["--horizon", "60", "--regret", "30,12", "--seed", "7", "--out", str(folder)]
    assert run(monkeypatch, "tail", *words) == 0
    screen = capsys.readouterr().out
    assert {file.name for file in folder.iterdir()} == FILES
    before = {name: (folder / name).read_bytes() for name in FILES}
    results = json.loads(before["results.json"])
    assert results["asked"] == [12.0, 30.0]
    assert all(text in screen for text in results["sentences"])
    assert [point["estimate"]["method"] for point in results["points"]] == ["exact"] * len(results["points"])
    assert "exact" in screen
    assert "certificate" in screen
    assert "\x1b" not in screen
    assert all("is exactly" in text and "between" not in text for text in results["sentences"])
    assert screen.count("worked out, not simulated") == 2
    html = before["report.html"].decode()
    assert "http" not in html.split("base64")[0]
    assert [html.count(text) for text in results["sentences"]] == [1, 1]
    shown = b64decode(html.partition("base64,")[2].partition('"')[0])  # matplotlib notes its texts
    assert (b"chance of losing 12" in before["tail.svg"], b"chance of losing 12" in shown) == (True, False)
    assert run(monkeypatch, *shlex.split(results["command"])[1:], "--json", "--threads", "1") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == results
    assert printed.err == ""
    assert before == {name: (folder / name).read_bytes() for name in FILES}


def test_numbers_of_the_command_are_those_of_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--means", "0.3,0.6", "--noise", "bernoulli", "--policy", "se:standard:0.4", "--horizon", "60"]
    more = ["--regret", "9", "--relative-error", "0.1", "--method", "importance", "--json"]
    assert run(monkeypatch, "tail", *words, *more, "--out", str(tmp_path)) == 0
    printed = json.loads(capsys.readouterr().out)
    (point,) = [point for point in printed["points"] if point["regret"] == 9.0]
    problem = lt.Bandit([0.3, 0.6], lt.Bernoulli())
    settings: Any = {"relative_error": 0.1, "method": "importance", "seed": 1}
    alone = lt.tail_probability(lt.SuccessiveElimination(lt.Standard(0.4)), problem, 60, 9, **settings)
    assert point["estimate"]["value"] == alone.value
    assert (point["estimate"]["paths"], point["estimate"]["reached"]) == (alone.paths, True)
    exact = lt.tail_probability(lt.SuccessiveElimination(lt.Standard(0.4)), problem, 60, 9, method="exact")
    assert point["exact"] == exact.value


def test_bound_prints_what_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "bound", "--horizon", "60", "--regret", "12", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["bounds"]
    settings: Any = {"horizon": 60, "regret": 12}
    assert found["certificate"]["value"] == lt.bounds.certificate(LIGHT, TWO, **settings).value
    assert found["theorem"]["vacuous"]
    assert found["guarantee"] == found["certificate"]
    assert found["exact"] == lt.exact_tail(LIGHT, TWO, **settings)
    assert run(monkeypatch, "bound", "--horizon", "60", "--regret", "12,20") == 0
    screen = capsys.readouterr().out
    assert screen.startswith("UCB + LightTailed(0.2); means 0.2, 0.8; Gaussian(sigma=1.0); 60 pulls\n")
    assert screen.count("guarantee") == screen.count("exact") == 2
    assert f"{found['exact']:.4g}" in screen
    assert run(monkeypatch, "bound", "--policy", "ts:1", "--kind", "regret") == 0
    screen = capsys.readouterr().out
    assert "No certificate: there is none for TS(1), only for UCB or" in screen
    assert "must be" not in screen
    assert "none is known" in screen


def test_both_names_of_the_option_and_lucky_regrets_are_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for name in ("--loss", "--regret"):
        assert run(monkeypatch, "bound", "--horizon", "60", name, "36") == 0  # 36: the largest loss
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    for command in ("tail", "bound"):
        assert run(monkeypatch, command, "--help") == 0
        screen = capsys.readouterr().out
        assert "--loss" in screen
        assert "--regret" in screen
    assert run(monkeypatch, "bound", "--horizon", "60", "--loss", "-1", "--kind", "regret") == 0
    assert "The chance of a regret of -1 or more" in capsys.readouterr().out


def test_the_note_does_not_deny_the_simulated_paths_of_the_table(curve: TailCurve) -> None:
    found = tail_curve(lt.EvenSplit(), TWO, 40, 10, paths=1000, seed=1)
    assert ("simulated paths", "1,000") in [
        (name, paths) for name, _, _, paths, _ in rows(found.at(10), found.outcome.paths, 40)
    ]
    assert note(found, found.at(10)) == (
        "This chance needs no simulation. The simulated paths of the table are there to compare."
    )


def test_a_loss_has_one_way_to_write_thousands() -> None:
    problem = lt.Bandit([20.0, 80.0])
    found = tail_curve(lt.EvenSplit(), problem, 4000, 80000, paths=200, seed=1)
    assert sentence(found, found.at(80000)).startswith("Losing 80,000 or more is certain")


def test_python_has_no_limits_that_only_a_page_needs() -> None:
    """`lighttail tail` refuses more than 10,000,000 pulls."""
    curve = tail_curve(LIGHT, TWO, 2 * 10**7, paths=20, seed=1, most_pulls=10**6)
    assert curve.outcome.settings["method"] == "skip"
    assert curve.points[0].estimate.value <= 1.0


BAD = {
    "loss text": (["--regret", "much"], "loss must be a number, but is 'much'"),
    "loss nan": (["--loss", "1,nan"], "loss must be a finite number, but is nan"),
    "loss below 0": (["--loss", "-1"], "loss must be a finite number above 0, but is -1.0"),
    "loss above all": (
        ["--loss", "9,80000", "--horizon", "4000"],
        "loss must be at most 2,400, because no policy can lose more in 4,000 pulls, but is 80,000",
    ),
    "nothing to lose": (
        ["--loss", "9", "--means", "0.5,0.5"],
        "loss must be left out where all arms are equally good: nothing can be lost, but is 9",
    ),
    "regret above all": (
        ["--regret", "81", "--horizon", "100", "--noise", "bernoulli", "--kind", "regret"],
        "no policy can lose more in 100 pulls even if every reward is the smallest possible, but is 81",
    ),
    "kind": (["--kind", "pseudo"], "kind must be one of pseudo-regret, regret, but is 'pseudo'"),
    "policy": (["--policy", "ubc:standard:1"], "did you mean 'ucb'?"),
    "two policies": (
        ["--policy", "ts:1", "--policy", "ucb:standard:1"],
        "policy must be given once, but is ['ts:1', 'ucb:standard:1']",
    ),
    "linear": (["--policy", "lints:1"], "one for arms, such as ucb:lighttailed:0.2, but is 'lints:1'"),
    "horizon": (["--horizon", "1"], "horizon must be a whole number of at least 2"),
    "means": (["--means", "0.2"], "means must be at least two numbers"),
    "data": (["--data", "x.csv", "--sigma", "1"], "sigma must be left out with data"),
}
BAD_TAIL = {
    "method": (["--method", "fast"], "method must be one of auto, exact, importance, plain, splitting"),
    "error": (["--relative-error", "0"], "relative-error must be a finite number above 0, but is 0.0"),
    "seed": (["--seed", "-1"], "seed must be a whole number of at least 0, but is -1"),
    "threads": (["--threads", "none"], "threads must be a whole number, but is 'none'"),
    "tilts": (
        ["--noise", "laplace", "--method", "importance"],
        "for importance sampling, but is Laplace(sigma=1.0); use --method plain or splitting",
    ),
    "no exact law": (
        ["--policy", "ts:0.8", "--method", "exact"],
        "method must be a method other than 'exact'",
    ),
    "folder": (["--out", "x" * 300], "out must be a folder that can be written"),
}


@pytest.mark.parametrize(
    ("command", "name"), [*(("tail", name) for name in BAD | BAD_TAIL), *(("bound", name) for name in BAD)]
)
def test_bad_input_is_one_line_and_exit_code_2_and_leaves_nothing(
    command: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, sentence_of = (BAD | BAD_TAIL)[name]
    monkeypatch.setattr(tail_module, "simulate", forbidden)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, command, *words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("lighttail: ")
    assert printed.err.count("\n") == 1
    assert sentence_of in printed.err
    assert list(tmp_path.iterdir()) == []


def forbidden(*args: Any, **settings: Any) -> None:
    raise AssertionError("bad input reached the simulation")


def test_limits_take_the_form_of_the_value_between_them(curve: TailCurve) -> None:
    """Never 'between 9.2e-05 and 0.011 %'."""
    estimate = replace(curve.at(12).estimate, value=9.42e-5, low=9.17e-5, high=1.053e-4)
    point = replace(curve.at(12), estimate=estimate, exact=None)
    assert "is 9.42e-05 (between 9.17e-05 and 1.05e-04);" in sentence(curve, point)


@pytest.mark.parametrize("regret", [-1e308, [1.0, 1e200]])
def test_a_regret_that_no_picture_can_show_is_refused(regret: Any) -> None:
    with pytest.raises(ValueError, match=r"^regret must be at most 1e\+150 in size"):
        lt.plot_tail(lt.UCB(lt.LightTailed(0.2)), lt.Bandit([1e-300, 2e-300]), 12, regret)
