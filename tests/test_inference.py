"""Confidence sequences hold at all looks of an adaptive experiment, and the formulas equal slow ones."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

from lighttail.checks import BadInput
from lighttail.inference import (
    BoundedRewards,
    Evidence,
    SubGaussianRewards,
    confidence_sequences,
    share_mismatch,
)
from lighttail.inference.evidence import Heard

ERROR = 0.05
SEVERAL = [
    (SubGaussianRewards(2.0), Heard(7, 3.0), Heard(40, 30.0)),
    (SubGaussianRewards(0.3, tuned_at=50), Heard(1, -0.2), Heard(3000, 10.0)),
    (BoundedRewards(0, 1), Heard(30, 4.0), Heard(12, 9.0)),
    (BoundedRewards(0, 1), Heard(5, 0.0), Heard(5, 5.0)),
    (BoundedRewards(-2, 4), Heard(17, 20.5), Heard(400, -13.0)),
]


def bets(wins: float, fails: float, share: float) -> float:
    """ln M of coins, by integrating over the bets: q = sin^2 t is Beta(1/2, 1/2) for a uniform t."""

    def bet(t: float) -> float:
        q = math.sin(t) ** 2
        ratio = special.xlogy(wins, q / share) + special.xlogy(fails, (1.0 - q) / (1.0 - share))
        return float(np.exp(ratio))

    return math.log(integrate.quad(bet, 0.0, math.pi / 2, limit=200)[0] / (math.pi / 2))


def normals(evidence: SubGaussianRewards, off: float, times: int) -> float:
    """ln M of sub-Gaussian rewards, by integrating over the bets N(0, 1 / (rho sigma^2))."""
    scale = 1.0 / (evidence.sigma * math.sqrt(evidence.rho))

    def bet(lam: float) -> float:
        return math.exp(lam * off - times * (lam * evidence.sigma) ** 2 / 2) * stats.norm.pdf(lam, 0, scale)

    middle = off / (evidence.sigma**2 * (times + evidence.rho))
    return math.log(integrate.quad(bet, middle - 9 * scale, middle + 9 * scale, limit=200)[0])


def test_capital_is_the_mixture_of_bets() -> None:
    for wins, fails, share in ((4, 26, 0.3), (0, 9, 0.2), (2.5, 0.5, 0.4), (0, 0, 0.5)):
        found = BoundedRewards(0, 1).log_capital(Heard(int(wins + fails), wins), share)
        assert found == pytest.approx(bets(wins, fails, share), abs=1e-7)
    for evidence in (SubGaussianRewards(2.0), SubGaussianRewards(0.3, tuned_at=50)):
        for times, off in ((1, 0.4), (50, -3.0), (0, 0.0)):
            found = evidence.log_capital(Heard(times, off + times * 0.7), 0.7)
            assert found == pytest.approx(normals(evidence, off, times), abs=1e-7)


@pytest.mark.parametrize(("evidence", "one", "other"), SEVERAL, ids=str)
def test_intervals_are_the_means_and_differences_that_the_capital_allows(
    evidence: Evidence, one: Heard, other: Heard
) -> None:
    limit = math.log(1 / ERROR)
    low, high = evidence.limits(one, limit)
    width = high - low
    edges = (getattr(evidence, "low", -math.inf), getattr(evidence, "high", math.inf))
    for end, out in ((low, -1), (high, 1)):
        assert evidence.log_capital(one, end - out * 1e-6 * width) < limit
        if end not in edges:
            assert evidence.log_capital(one, end + out * 1e-6 * width) > limit

    first, last = evidence.difference(one, other, limit)
    here, there = (
        evidence.limits(heard, limit + 6.0) for heard in (one, other)
    )  # the other capital may be low
    grids = np.meshgrid(np.linspace(*here, 251), np.linspace(*there, 251), indexing="ij")
    capital = np.vectorize(lambda a, b: evidence.log_capital(one, a) + evidence.log_capital(other, b))
    allowed = (grids[1] - grids[0])[capital(*grids) < limit]
    step = (here[1] - here[0] + there[1] - there[0]) / 250
    assert first <= allowed.min() < first + 3 * step
    assert last - 3 * step < allowed.max() <= last


def paths(rewards: str, seed: int, count: int, horizon: int) -> tuple[np.ndarray, ...]:
    """Three arms pulled by a greedy rule with a small bonus, which looks at all rewards: counts and sums of
    every arm after every pull, [pull, path, arm], and the means."""
    rng = np.random.default_rng(seed)
    means = np.array([0.05, 0.08, 0.08]) if rewards == "coins" else np.array([0.0, 0.3, 0.5])
    tried, total = np.zeros((count, 3)), np.zeros((count, 3))
    counts, sums, rows = [], [], np.arange(count)
    for turn in range(horizon):
        with np.errstate(divide="ignore", invalid="ignore"):
            index = np.where(tried > 0, total / tried + 0.1 / np.sqrt(tried), np.inf)
        arm = np.argmax(index + 1e-9 * rng.random(index.shape), axis=1) if turn >= 3 else np.full(count, turn)
        mean = means[arm]
        if rewards == "coins":
            reward = (rng.random(count) < mean).astype(float)
        elif rewards == "spread":  # in [0, 1], and no coin
            reward = rng.beta(2 * mean + 0.1, 2.1 - 2 * mean)
        else:
            reward = rng.normal(mean, 1.0)
        tried[rows, arm] += 1
        total[rows, arm] += reward
        counts.append(tried.copy())
        sums.append(total.copy())
    if rewards == "spread":
        means = (2 * means + 0.1) / 2.2
    return np.array(counts), np.array(sums), means


def capitals(evidence: Evidence, counts: Any, sums: Any, means: Any) -> np.ndarray:
    """ln M at the true means, by the formulas for arrays: [pull, path, arm]."""
    if isinstance(evidence, BoundedRewards):
        mixed = special.betaln(sums + 0.5, counts - sums + 0.5) - special.betaln(0.5, 0.5)
        return mixed - sums * np.log(means) - (counts - sums) * np.log1p(-means)
    off = sums - counts * means
    grown = 0.5 * np.log1p(counts / evidence.rho)
    return off**2 / (2 * evidence.sigma**2 * (counts + evidence.rho)) - grown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rewards", "evidence"),
    [
        ("coins", BoundedRewards(0, 1)),
        ("spread", BoundedRewards(0, 1)),
        ("normal", SubGaussianRewards(1.0, tuned_at=100)),
    ],
    ids=["coins", "spread", "normal"],
)
def test_intervals_hold_at_all_looks(rewards: str, evidence: Evidence) -> None:
    """2,000 experiments of 1,000 pulls, looked at after every pull: at most 5 % may ever be missed, and 3.5
    standard errors more (z = 3.5, one-sided 2e-4). Intervals for one look fail the same test."""
    count = 2000
    counts, sums, means = paths(rewards, 11, count, 1000)
    known = capitals(evidence, counts, sums, means)
    pairs = np.stack([known[..., 0] + known[..., 1], known[..., 0] + known[..., 2], known[..., 1:].sum(-1)])
    missed = (known >= math.log(3 / ERROR)).any(axis=(0, 2)).mean()
    missed_pairs = (pairs >= math.log(3 / ERROR)).any(axis=(0, 1)).mean()
    most = ERROR + 3.5 * math.sqrt(ERROR * (1 - ERROR) / count)
    assert max(missed, missed_pairs) < most, (missed, missed_pairs)

    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sums / counts
        variance = 1.0 if rewards == "normal" else means * (1 - means) / (3.2 if rewards == "spread" else 1.0)
        wald = np.abs(mean - means) > stats.norm.isf(ERROR / 6) * np.sqrt(variance / counts)
    once = (wald & (counts >= 30)).any(axis=(0, 2)).mean()
    assert once > most  # negative control: intervals for one look, although only after 30 rewards

    for place, when in ((0, 3), (1, 200), (2, 999)):  # the shown intervals follow from these capitals
        now = confidence_sequences(
            {arm: (int(counts[when, place, arm]), sums[when, place, arm]) for arm in range(3)}, evidence
        )
        inside = [now.means[arm].low < means[arm] < now.means[arm].high for arm in range(3)]
        assert inside == list(known[when, place] < math.log(3 / ERROR))


def test_differences_are_shown_and_named() -> None:
    heard = {"A": (20000, 600.0), "B": (20000, 900.0), "C": (20000, 890.0), "D": (0, 0.0)}
    now = confidence_sequences(heard, BoundedRewards(0, 1))
    assert now.better("B", "A")
    assert now.better("C", "A")
    assert not now.better("A", "B")
    assert not now.better("B", "C")
    assert not now.better("B", "D")
    assert now.beaten() == ["A"]
    assert now.leader() is None
    assert now.means["D"][1:] == (0.0, 1.0)
    assert math.isnan(now.means["D"].value)
    two = confidence_sequences({arm: heard[arm] for arm in "AB"}, BoundedRewards(0, 1))
    assert two.leader() == "B"
    assert two.differences["A", "B"].value == pytest.approx(0.015)
    narrow = two.differences["A", "B"]
    apart = two.means["B"].low - two.means["A"].high, two.means["B"].high - two.means["A"].low
    assert apart[0] < narrow.low < narrow.high < apart[1]  # one bet on both is narrower than two intervals


def test_shares_are_checked_at_all_looks() -> None:
    rng = np.random.default_rng(5)
    drawn = rng.random((1500, 800)) < 0.1
    held = np.cumsum(drawn, axis=1)
    looks = range(20, 800, 20)
    mismatch = cache(lambda look, c: share_mismatch([look - c, c], [0.9, 0.1]))  # rows have few counts
    least = [min(mismatch(look, c) for look, c in _at(row, looks)) for row in held]
    wrong = np.mean(np.array(least) <= ERROR)
    assert wrong < ERROR + 3.5 * math.sqrt(ERROR * 0.95 / 1500)
    pvalue = cache(lambda look, c: stats.binomtest(c, look, 0.1).pvalue)
    once = [min(pvalue(look, c) for look, c in _at(row, looks)) for row in held[:300]]
    assert np.mean(np.array(once) <= ERROR) > 2 * ERROR  # negative control: a test for one look
    assert share_mismatch([700, 300], [0.9, 0.1]) < 1e-9  # power
    assert share_mismatch([10, 1], [1.0, 0.0]) == 0.0


def _at(row: np.ndarray, looks: range) -> list[tuple[int, int]]:
    return [(look, int(row[look - 1])) for look in looks]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: BoundedRewards(1, 1), "high must be a finite number above low"),
        (lambda: SubGaussianRewards(0.0), "sigma must be"),
        (lambda: confidence_sequences({"A": (3, 1.0)}, BoundedRewards()), "heard must be the rewards"),
        (lambda: confidence_sequences({"A": (3, 4.0), "B": (1, 0.0)}, BoundedRewards()), "of 'A' must be"),
        (lambda: confidence_sequences({"A": 3, "B": (1, 0.0)}, BoundedRewards()), "number and the sum"),
        (lambda: confidence_sequences({"A": (1, 0), "B": (1, 0)}, "coins"), "evidence must be"),
        (lambda: confidence_sequences({"A": (1, 0), "B": (1, 0)}, BoundedRewards(), 1.0), "level must be"),
        (lambda: share_mismatch([1, 2], [0.5, 0.6]), "shares must be numbers"),
        (lambda: share_mismatch([1, 2], [1.0]), "shares must be at least two"),
        (lambda: share_mismatch([1, -2], [0.5, 0.5]), "counts must be"),
    ],
)
def test_bad_input_gets_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        call()
