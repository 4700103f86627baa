"""Studies whose policies are in units of the noise: every problem has its own noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.study import load_study, report_study, run_study
from lighttail.study.cells import cells_of
from lighttail.study.file import Study, parse_study

TEXT = """name = "units"
paths = 40
seeds = [1]
horizons = [60]
[[problem]]
name = "normal"
means = [0.2, 0.8]
sigmas = [1.0, 2.0]
[[problem]]
name = "clicks"
means = [0.1, 0.2]
noise = "bernoulli"
[[problem]]
name = "seen"
data = "web.csv"
arm_column = "variant"
reward_column = "won"
[[policy]]
policy = "ucb:lighttailed:0.2s"
[[policy]]
name = "wide"
policy = "ucb:standard:0.5"
"""
CSV = "variant,when,won\nA,1,0\nB,1,3\nA,2,2\nB,5,3\n"


def study_of(text: str, folder: Path) -> Study:
    (folder / "web.csv").write_text(CSV)
    return parse_study(text, "study.toml", lambda name: folder / name)


def test_each_problem_has_its_own_noise_and_the_report_says_what_was_played(tmp_path: Path) -> None:
    study = study_of(TEXT, tmp_path)
    kappas = [0.2, 0.4, 0.2 * 0.2**0.5 * 0.8**0.5, 0.2]
    played = [study.policies_on(setting)["ucb:lighttailed:0.2s"] for setting in study.problems]
    assert [policy.bonus.kappa for policy in played] == pytest.approx(kappas, rel=1e-15)  # type: ignore[attr-defined]
    assert {study.policies_on(setting)["wide"] for setting in study.problems} == {lt.UCB(lt.Standard(0.5))}
    assert study.policies["ucb:lighttailed:0.2s"] == lt.UCB(lt.LightTailed(0.2))
    assert [cell.policy for cell in cells_of(study)][::2] == played

    done = run_study(study, tmp_path / "out", workers=1)
    assert (done.finished, done.played) == (8, 8)
    assert run_study(study_of(TEXT, tmp_path), tmp_path / "out", workers=1).played == 0  # resumes
    results = load_study(tmp_path / "out")
    for setting, policy in zip(study.problems, played, strict=True):
        out = results.outcome(setting.name, "ucb:lighttailed:0.2s", horizon=60, sigma=setting.sigma)
        again = lt.simulate(policy, setting.problem, horizon=60, paths=40, seed=1)
        assert np.array_equal(out.reward, again.reward)
        assert out.settings["policy"] == repr(policy)
        comparison = results.comparison(setting, 60)
        assert comparison is not None
        assert comparison["ucb:lighttailed:0.2s"].policy == policy
    index = report_study(results).read_text()
    assert "ucb:lighttailed:0.2s, where s is the noise of the problem" in index
    pages = sorted((tmp_path / "out" / "report").glob("*/report.html"))
    shown = [f"ucb:lighttailed:0.2s: {policy}; wide: UCB + Standard(0.5)." for policy in played]
    assert all(text in page.read_text() for text, page in zip(shown, pages, strict=True))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sigmas = [1.0, 2.0]", "sigmas = [0.0]", "line 19: kappa must be a number without the unit s"),
        ("ucb:standard:0.5", "ucb:lighttailed:0.20s", "line 22: policy.policy must be different for every"),
        ("ucb:standard:0.5", "ucb:lighttailed:0.4", "both UCB + LightTailed(0.4) on problem 'normal, sig"),
        ("ucb:standard:0.5", "klucb:0.5s", "line 22: c must be a number without the unit s, because"),
        ('"won"', '"lost"', "line 15: data must have the columns variant and lost in line 1 of"),
        ('"won"', "3", "line 17: problem.reward_column must be a text in quotes, but is 3"),
        ('noise = "bernoulli"', 'arm_column = "x"', "line 12: problem.arm_column must be left out without"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in TEXT
    with pytest.raises(BadInput) as caught:
        study_of(TEXT.replace(old, new), tmp_path)
    assert said in str(caught.value)


def test_a_kappa_and_the_same_in_units_of_the_noise_may_differ(tmp_path: Path) -> None:
    """Negative control of the refusal of equal policies: no problem has the noise 1."""
    text = TEXT.replace("sigmas = [1.0, 2.0]", "sigmas = [2.0]")
    text = text.replace("ucb:standard:0.5", "ucb:lighttailed:0.2")
    text = text.replace('reward_column = "won"', 'reward_column = "when"')
    assert len(study_of(text, tmp_path).policies) == 2
