"""Kappa in units of the noise: in Python, in words, on the command line and in the default policies."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from own_noises import Silent

import lighttail as lt
from lighttail import cli
from lighttail.checks import BadInput
from lighttail.compare import default_words
from lighttail.reading.numbers import parse_share
from lighttail.reading.words import in_units_of_noise, parse_policy

WEB = lt.Bandit([0.03, 0.04, 0.05], lt.Bernoulli())
NOISE = math.sqrt(0.05 * 0.95)  # of the noisiest arm
LINEAR = lt.LinearBandit([0.5, 0.2], lt.SphereActions(3), lt.Gaussian(0.5))
SHOWN = "noise must be a finite number above 0, or a problem whose noise is such a number, but is "


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["lighttail", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


# In Python


@pytest.mark.parametrize(
    ("problem", "sigma"),
    [
        (WEB, NOISE),
        (lt.Bandit([0.2, 0.8], lt.StudentT(3.0, 2.0)), 2.0),
        (lt.Bandit.from_samples({"A": [0.0, 2.0], "B": [1.0, 1.0, 1.0]}), 1.0),
        (LINEAR, 0.5),
    ],
)
def test_the_noise_of_a_problem_is_the_standard_deviation_of_its_noisiest_arm(
    problem: Any, sigma: float
) -> None:
    assert problem.sigma == sigma


def test_the_noise_of_a_users_class_is_measured_from_draws() -> None:
    """1,000 draws per arm: the standard error of the standard deviation is 2 / sqrt(2000); z = 4."""
    measured = lt.Bandit([0.0, 0.0], Silent(2.0)).sigma
    assert abs(measured - 2.0) < 4 * 2.0 / math.sqrt(2000)
    assert abs(measured - 2.5) > 4 * 2.0 / math.sqrt(2000)  # negative control


@pytest.mark.parametrize(
    "tuned",
    [
        lt.LightTailed(0.2),
        lt.TwoPart(0.5, 1.0, alpha=0.6, beta=0.2),
        lt.LinearStandard(0.8),
        lt.UCB(lt.ArmOptimal(0.4, 0.2)),
        lt.SuccessiveElimination(lt.Standard(0.4)),
        lt.ThompsonSampling(0.8, 0.04, 0.3),
        lt.KlUcb(0.5, sigma=2.0),
        lt.Imed(0.7),
        lt.InflatedThompson(0.5),
        lt.LinearUCB(lt.Oful(1.0, 0.05, 1.0)),
        lt.LinearThompson(1.0),
        lt.EvenSplit(),
    ],
)
def test_a_problem_stands_for_its_noise(tuned: Any) -> None:
    assert tuned.for_noise(WEB) == tuned.for_noise(NOISE)
    assert tuned.for_noise(1.0) == tuned.for_noise(lt.Bandit([0.2, 0.8])) == tuned
    if tuned != lt.EvenSplit():
        assert tuned.for_noise(WEB) != tuned


def test_the_prior_of_thompson_sampling_is_about_means_and_stays() -> None:
    assert lt.ThompsonSampling(0.8, 0.04, 0.3).for_noise(2.0) == lt.ThompsonSampling(1.6, 0.04, 0.3)


@pytest.mark.parametrize("tuned", [lt.LightTailed(0.2), lt.UCB(lt.LightTailed(0.2)), lt.EvenSplit()])
@pytest.mark.parametrize(
    ("noise", "shown"),
    [
        (0, "0.0"),
        (-1.0, "-1.0"),
        (math.inf, "inf"),
        (None, "None"),
        ("0.2s", "'0.2s'"),
        (lt.Gaussian(2.0), "Gaussian(sigma=2.0)"),
        (lt.Bandit([0.2, 0.8], lt.Gaussian(0.0)), "0.0"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(tuned: Any, noise: Any, shown: str) -> None:
    with pytest.raises(BadInput) as caught:
        tuned.for_noise(noise)
    assert str(caught.value) == SHOWN + shown


# In words

MADE = {
    "ucb:lighttailed:0.2s": lt.UCB(lt.LightTailed(0.1)),
    "UCB:LightTailed:0.2S": lt.UCB(lt.LightTailed(0.1)),
    "ucb:armoptimal:0.4s:0.3": lt.UCB(lt.ArmOptimal(0.2, 0.3)),
    "se:standard: 1e-1s ": lt.SuccessiveElimination(lt.Standard(0.05)),
    "ts:0.8s": lt.ThompsonSampling(0.4),
    "ts:0.8s:0.04:1s": lt.ThompsonSampling(0.4, 0.04, 0.5),
    "klucb:0.5:1s": lt.KlUcb(0.5, sigma=0.5),
    "imed:1s": lt.Imed(0.5),
    "inflated:0.5s": lt.InflatedThompson(0.25),
    "twopart:1s:2s:0.6:0.2": lt.UCB(lt.TwoPart(0.5, 1.0, 0.6, 0.2)),
    "linucb:standard:1s": lt.LinearUCB(lt.LinearStandard(0.5)),
    "linucb:oful:1s:0.05:1": lt.LinearUCB(lt.Oful(0.5, 0.05, 1.0)),
    "lints:2s": lt.LinearThompson(1.0),
}


@pytest.mark.parametrize("word", MADE)
def test_a_number_with_s_is_a_multiple_of_the_noise(word: str) -> None:
    assert in_units_of_noise(word)
    assert parse_policy(word, sigma=0.5) == MADE[word]


@pytest.mark.parametrize(
    "word", ["ucb:lighttailed:0.2", "evensplit", "betats", "x.py:Mine(0.2s)", "ts:s", ""]
)
def test_other_words_do_not_depend_on_the_noise(word: str) -> None:
    assert not in_units_of_noise(word)


NONE = "without the unit s where no problem says how large the noise s is"
OTHER = "a number without the unit s, because it does not grow with the noise"


@pytest.mark.parametrize(
    ("word", "sigma", "said"),
    [
        ("ucb:lighttailed:0.2s", None, f"kappa must be a number {NONE}, but is '0.2s'"),
        ("ts:0.8:0.04:1s", None, f"prior_sd must be a number {NONE}, but is '1s'"),
        (
            "ts:0.8s",
            0.0,
            "a number without the unit s, because the noise s of the problem is 0, but is '0.8s'",
        ),
        ("ts:0.8s", math.inf, "because the noise s of the problem is inf, but is '0.8s'"),
        ("ts:0.8x", 1.0, "kappa must be a number, but is '0.8x'"),
        ("ts:s", 1.0, "kappa must be a number, but is 's'"),
        ("ts:0.8ss", 1.0, "kappa must be a number, but is '0.8s'"),
        ("ts:-0.8s", 1.0, "kappa must be a finite number above 0, but is -0.8"),
        ("klucb:1s", 1.0, f"c must be {OTHER}, but is '1s'"),
        ("etc:20s", 1.0, f"m must be {OTHER}, but is '20s'"),
        ("exp3ix:loss:1s", 1.0, f"upper must be {OTHER}, but is '1s'"),
        ("twopart:1:1:0.5s", 1.0, f"alpha must be {OTHER}, but is '0.5s'"),
        ("linucb:oful:1:0.05s:1", 1.0, f"delta must be {OTHER}, but is '0.05s'"),
    ],
)
def test_a_unit_without_a_meaning_is_refused(word: str, sigma: float | None, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_policy(word, sigma=sigma)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("4%", 0.04),
        ("4 %", 0.04),
        (" 0.04 ", 0.04),
        ("3.3%", 0.033),
        ("1e1%", 0.1),
        ("100%", 1.0),
        ("-5%", -0.05),
    ],
)
def test_a_share_may_have_a_percent_sign(text: str, share: float) -> None:
    assert parse_share("rate", text) == share


@pytest.mark.parametrize("text", ["%", "4%%", "four%", "%4", "4 % %", "x", "", "1e999999999999999999999%"])
def test_a_share_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"^rate must be a number.*, but is "):
        parse_share("rate", text)


# The default policies


def test_the_default_policies_at_noise_1_keep_every_bit() -> None:
    arms = [parse_policy(word, sigma=1.0) for word in default_words(lt.Bandit([0.2, 0.8]))]
    assert arms == [
        lt.SuccessiveElimination(lt.Standard(0.4)),
        lt.UCB(lt.Standard(0.8)),
        lt.ThompsonSampling(0.8),
        lt.SuccessiveElimination(lt.LightTailed(0.1)),
        lt.UCB(lt.LightTailed(0.2)),
        lt.UCB(lt.AnyTime(0.2 * math.sqrt(2.0))),
    ]
    vectors = lt.LinearBandit([0.5, 0.2], lt.SphereActions(3))
    assert [parse_policy(word, sigma=1.0) for word in default_words(vectors)] == [
        lt.LinearUCB(lt.LinearLightTailed(0.2)),
        lt.LinearUCB(lt.Oful(1.0, 0.05, 1.0)),
        lt.LinearUCB(lt.LinearStandard(1.0)),
        lt.LinearThompson(1.0),
    ]


@pytest.mark.parametrize("problem", [WEB, LINEAR])
def test_the_default_policies_are_scaled_by_the_noise_of_the_problem(problem: Any) -> None:
    found = lt.compare(None, problem, horizon=20, paths=5, seed=1)
    plain = [parse_policy(word, sigma=1.0) for word in default_words(problem)]
    assert [entry.policy for entry in found.entries] == [policy.for_noise(problem) for policy in plain]


def test_without_noise_the_default_policies_are_those_for_the_noise_1() -> None:
    still = lt.Bandit([0.2, 0.8], lt.Gaussian(0.0))
    assert not any(map(in_units_of_noise, default_words(still)))
    found = lt.compare(None, still, horizon=20, paths=5, seed=1)
    assert found.entries[4].policy == lt.UCB(lt.LightTailed(0.2))


def test_the_default_policies_learn_from_conversions() -> None:
    """Three variants around 4 %: each default policy loses less than half of what an even split loses (200),
    but for elimination with the standard bonus, whose tail is heavy. Negative control: the kappa for the
    noise 1 loses more than half. 95 % intervals of 200 paths."""
    policies = {str(policy): policy for policy in map(_scaled, default_words(WEB)[1:])}
    found = lt.compare(
        policies | {"noise 1": lt.UCB(lt.LightTailed(0.2))}, WEB, horizon=20_000, paths=200, seed=1
    )
    for entry in found.entries:
        lost = entry.outcome.mean("pseudo_regret")
        assert lost.low > 100.0 if entry.label == "noise 1" else lost.high < 100.0, entry.label


def _scaled(word: str) -> lt.Policy:
    return parse_policy(word, sigma=WEB.sigma)


# On the command line

QUICK = ["--paths", "20", "--horizon", "60"]
RATES = ["--means", "3%, 4 %,0.05", "--noise", "bernoulli"]


def test_compare_plays_multiples_of_the_noise_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--policy",
        "ucb:lighttailed:0.2s",
        "--policy",
        "ts:0.8s:0.04:1s",
        "--policy",
        "ucb:standard:0.8",
    ]
    assert run(monkeypatch, "compare", *RATES, *words, *QUICK, "--out", str(tmp_path)) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert [policy["policy"] for policy in results["policies"]] == [
        repr(lt.UCB(lt.LightTailed(0.2 * NOISE))),
        repr(lt.ThompsonSampling(0.8 * NOISE, 0.04, NOISE)),
        repr(lt.UCB(lt.Standard(0.8))),
    ]
    assert results["problem"] == repr(WEB)
    line = (
        "Kappa as a share of the noise: UCB + LightTailed(0.043589) 0.2, TS(0.174356, prior (0.04, 0.217945))"
    )
    assert f"The noise of this problem is 0.218. {line} 0.8 and 1." in capsys.readouterr().out


def test_the_command_that_is_named_gives_the_same_default_policies_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = []
    for noise in (["--sigma", "2"], ["--sigma", "0"]):
        assert run(monkeypatch, "compare", *noise, *QUICK, "--out", str(tmp_path)) == 0
        first = (tmp_path / "results.json").read_text()
        assert run(monkeypatch, *shlex.split(json.loads(first)["command"])[1:]) == 0
        assert (tmp_path / "results.json").read_text() == first
        found.append([policy["label"] for policy in json.loads(first)["policies"]][4])
    assert found == ["UCB + LightTailed(0.4)", "UCB + LightTailed(0.2)"]


def test_assumed_sigma_multiplies_and_names_the_noise_that_is_assumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["--policy", "ts:0.8s", "--policy", "ts:0.7", "--sigma", "2", "--assumed-sigma", "0.5,1"]
    assert run(monkeypatch, "compare", *words, *QUICK, "--out", str(tmp_path)) == 0
    labels = [policy["label"] for policy in json.loads((tmp_path / "results.json").read_text())["policies"]]
    assert labels == [
        "TS(0.8), σ 1 assumed",
        "TS(1.6), σ 2 assumed",
        "TS(0.35), σ 0.5 assumed",
        "TS(0.7), σ 1 assumed",
    ]


@pytest.mark.parametrize("command", ["tail", "bound"])
def test_tail_and_bound_take_multiples_of_the_noise(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [command, "--sigma", "2", "--horizon", "12", "--regret", "3", "--json"]
    for word, kappa in (([], 0.4), (["--policy", "ucb:lighttailed:0.5s"], 1.0)):
        assert run(monkeypatch, *asked, *word) == 0
        answer = json.loads(capsys.readouterr().out)
        assert answer["policy"] == repr(lt.UCB(lt.LightTailed(kappa)))
    assert "--policy ucb:lighttailed:0.5s" in answer["command"]
    assert run(monkeypatch, *asked[:-1]) == 0
    assert "Kappa as a share of the noise: UCB + LightTailed(0.4) 0.2." in capsys.readouterr().out


CSV = "variant,when,converted\nA,1,0\nB,1,1\nA,2,1\nB,3,1\n"
COLUMNS = ["--arm-column", "variant", "--reward-column", "converted"]


@pytest.mark.parametrize("command", ["compare", "tail", "bound"])
def test_the_columns_of_a_csv_file_may_have_any_names(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web.csv").write_text(CSV)
    asked = [
        command,
        "--data",
        "web.csv",
        "--horizon",
        "12",
        *(["--paths", "5"] if command == "compare" else []),
    ]
    assert run(monkeypatch, *asked, *COLUMNS) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "The observed means are taken for the true means here; `lighttail plan --data` counts" in printed
    assert run(monkeypatch, *asked, *COLUMNS, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert "--arm-column variant --reward-column converted" in answer["command"]
    assert "('A', 'B')" in answer["problem"]


HAS = "but has 'variant, when, converted'"
WRONG_COLUMNS = {
    "defaults": ([], f"the columns arm and reward in line 1 of web.csv, {HAS}; other columns can be na"),
    "one": (COLUMNS[:2], f"{HAS}; other columns can be named by --reward-column NAME\n"),
    "capitals": (["--arm-column", "Variant", *COLUMNS[2:]], f"{HAS}; did you mean --arm-column variant?\n"),
    "unknown": ([*COLUMNS[:3], "won"], f"the columns variant and won in line 1 of web.csv, {HAS}\n"),
    "empty": ([*COLUMNS[:3], ""], f"in line 1 of web.csv, {HAS}\n"),
    "the same": ([*COLUMNS[:3], "variant"], "the column of the rewards must be another column than that"),
    "text": (["--reward-column", "variant", "--arm-column", "when"], "variant must be a finite number in l"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_COLUMNS)
def test_an_unknown_column_is_refused_with_the_columns_that_there_are(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web.csv").write_text(CSV)
    words, said = WRONG_COLUMNS[name]
    assert run(monkeypatch, "bound", "--data", "web.csv", *words) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert (printed.err.count("\n"), printed.out) == (1, "")


WRONG = {
    "percent": (["--means", "3%,5%"], "means must be a number, but is '3%'; percent signs are for"),
    "rate": (["--means", "3%,500%", "--noise", "bernoulli"], "means[1] must be between 0 and 1 with"),
    "no data": (["--arm-column", "x"], "arm-column must be left out without data, but is 'x'"),
    "no noise": (["--sigma", "0", "--policy", "ts:1s"], "kappa must be a number without the unit s, because"),
    "own": (["--policy", "x.py:Mine(0.2s)"], "policy must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_one_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words, said = WRONG[name]
    assert run(monkeypatch, "compare", *words) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert (printed.err.count("\n"), printed.out, list(tmp_path.iterdir())) == (1, "", [])
