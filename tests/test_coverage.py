"""Every 95 % interval covers the truth in at least 93 % of repetitions, on the samples that are hard.

The truth is known: a big simulation is taken as the whole population, samples are drawn from it with
replacement, and its statistics, worked out below in plain NumPy, are the truth without any error of
their own. The only error is that of the repetitions: the standard error of a coverage of 0.95 is 0.005
with 2,000 of them, 0.007 with 1,000 and 0.011 with 400, so that 0.93 is 4, 3 and 2 of these away; what is
repeated less often covers more than it must. Rewards mirror regrets
(`test_statistics`); of rewards only the quantiles are new.

Negative controls: textbook intervals fail the same check on the same samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

import lighttail as lt

pytestmark = pytest.mark.slow

ENOUGH = 0.93
GAMBLE = lt.UCB(lt.Standard(0.1))  # two humps: 15 % of the paths never find the better arm
CLASSIC = lt.UCB(lt.Standard(0.8))  # 1 % of the paths lose ten times the rest
LIGHT = lt.UCB(lt.LightTailed(0.2))  # no tail to speak of
DROPS = lt.SuccessiveElimination(lt.LightTailed(0.1))  # one path in 1,300 drops the better arm

Ask = Callable[[lt.Outcome], lt.Estimate]
Questions = dict[str, tuple[Ask, float]]  # what -> (the estimate, the truth)


@cache
def population(policy: lt.Policy) -> lt.PathsOutcome:
    return lt.simulate(policy, lt.Bandit([0.2, 0.8]), horizon=500, paths=400_000, seed=11)


def sample(whole: lt.PathsOutcome, paths: int, rng: np.random.Generator) -> lt.PathsOutcome:
    return replace(whole, record=whole.record.rows(rng.integers(0, whole.paths, paths)))


def coverage(policy: lt.Policy, paths: int, repetitions: int, questions: Questions) -> dict[str, float]:
    """How often each interval holds the truth."""
    rng = np.random.default_rng(5)
    covered = dict.fromkeys(questions, 0)
    for _ in range(repetitions):
        out = sample(population(policy), paths, rng)
        for what, (ask, truth) in questions.items():
            estimate = ask(out)
            covered[what] += estimate.low <= truth <= estimate.high
    return {what: count / repetitions for what, count in covered.items()}


def too_low(policy: lt.Policy, paths: int, repetitions: int, questions: Questions) -> dict[str, float]:
    found = coverage(policy, paths, repetitions, questions)
    return {what: share for what, share in found.items() if share < ENOUGH}


def true_quantile(values: np.ndarray, q: float) -> float:
    return float(np.quantile(values, q, method="inverted_cdf"))


def true_cvar(values: np.ndarray, q: float) -> float:
    worst = np.sort(values)[math.ceil(q * values.size) :]  # q * size is whole for every q below
    return float(worst.mean())


def quantiles_and_chances(policy: lt.Policy) -> Questions:
    whole = population(policy)
    questions: Questions = {}
    for kind in ("regret", "pseudo_regret", "reward"):
        values = getattr(whole, kind)
        for q in (0.5, 0.95, 0.99):
            questions[f"{q} quantile of {kind}"] = (
                lambda out, q=q, kind=kind: out.quantile(q, kind),
                true_quantile(values, q),
            )
            mark = true_quantile(values, q)
            questions[f"P({kind} >= {mark})"] = (
                lambda out, mark=mark, kind=kind: out.exceedance(mark, kind),
                float(np.mean(values >= mark)),
            )
    return questions


def means(policy: lt.Policy) -> Questions:
    whole = population(policy)
    return {
        f"{what} of {kind}": (lambda out, kind=kind, what=what: getattr(out, what)(kind), float(truth))
        for kind in ("regret", "pseudo_regret")
        for what, truth in (("mean", getattr(whole, kind).mean()), ("std", getattr(whole, kind).std()))
    }


def cvar(policy: lt.Policy, q: float, kind: str) -> Questions:
    truth = true_cvar(getattr(population(policy), kind), q)
    return {f"{q} cvar of {kind}": (lambda out: out.cvar(q, kind), truth)}


@pytest.mark.parametrize(
    ("policy", "paths"),
    [
        *((policy, 500) for policy in (GAMBLE, CLASSIC, LIGHT, DROPS)),
        *((policy, paths) for policy in (CLASSIC, DROPS) for paths in (2000, 5000)),
    ],
    ids=str,
)
def test_quantiles_and_chances_are_covered(policy: lt.Policy, paths: int) -> None:
    assert too_low(policy, paths, 2000, quantiles_and_chances(policy)) == {}


@pytest.mark.parametrize(
    ("policy", "paths"),
    [
        *((policy, 500) for policy in (GAMBLE, CLASSIC, LIGHT, DROPS)),
        *((CLASSIC, paths) for paths in (2000, 5000)),
    ],
    ids=str,
)
def test_means_and_standard_deviations_are_covered(policy: lt.Policy, paths: int) -> None:
    assert too_low(policy, paths, 1000, means(policy)) == {}


@pytest.mark.parametrize(
    ("policy", "paths", "q", "kind", "repetitions"),
    [
        (CLASSIC, 500, 0.95, "regret", 1000),
        (CLASSIC, 500, 0.99, "regret", 1000),
        (CLASSIC, 500, 0.99, "pseudo_regret", 1000),
        (DROPS, 500, 0.99, "pseudo_regret", 1000),
        (CLASSIC, 2000, 0.99, "pseudo_regret", 1000),
        (CLASSIC, 5000, 0.95, "regret", 400),
    ],
    ids=str,
)
def test_cvars_are_covered(policy: lt.Policy, paths: int, q: float, kind: str, repetitions: int) -> None:
    assert too_low(policy, paths, repetitions, cvar(policy, q, kind)) == {}


# Negative controls: what the textbooks offer for the same questions.


def around(value: float, error: float) -> lt.Estimate:
    return lt.Estimate(value, value - 1.96 * error, value + 1.96 * error, 0.95)


def t_interval(out: lt.Outcome) -> lt.Estimate:
    values = out.pseudo_regret
    return around(values.mean(), values.std(ddof=1) / math.sqrt(values.size))


def chi_square_interval(out: lt.Outcome) -> lt.Estimate:
    values = out.pseudo_regret
    degrees, sd = values.size - 1, values.std(ddof=1)
    low, high = (sd * math.sqrt(degrees / stats.chi2.ppf(p, degrees)) for p in (0.975, 0.025))
    return lt.Estimate(sd, low, high, 0.95)


def wald_interval(out: lt.Outcome) -> lt.Estimate:
    share = float(np.mean(out.pseudo_regret >= 100.0))
    return around(share, math.sqrt(share * (1.0 - share) / out.paths))


def naive_cvar(out: lt.Outcome) -> lt.Estimate:
    values, q = out.regret, 0.99
    excess = np.maximum(values - true_quantile(values, q), 0.0)
    return around(true_cvar(values, q), excess.std() / (1.0 - q) / math.sqrt(out.paths))


@pytest.mark.parametrize(
    ("policy", "interval", "truth"),
    [
        (DROPS, t_interval, lambda whole: whole.pseudo_regret.mean()),
        (CLASSIC, chi_square_interval, lambda whole: whole.pseudo_regret.std()),
        (DROPS, wald_interval, lambda whole: np.mean(whole.pseudo_regret >= 100.0)),
        (CLASSIC, naive_cvar, lambda whole: true_cvar(whole.regret, 0.99)),
    ],
    ids=lambda part: getattr(part, "__name__", str(part)),
)
def test_textbook_intervals_do_not_cover(policy: lt.Policy, interval: Ask, truth: Callable) -> None:
    question = {"textbook": (interval, float(truth(population(policy))))}
    assert "textbook" in too_low(policy, 500, 2000, question)
