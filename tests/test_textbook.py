"""Every further policy has the mean regret of a plain programme written from its paper (`textbook.py`).

Z = 4 standard errors of the difference, at fixed seeds; each comparison is repeated with a constant that is
off by a fifth or more on one side, which must be seen.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import textbook as book
from cases import name
from scipy import special

import lighttail as lt
from lighttail.policies.indices import (
    bernoulli_divergence,
    bernoulli_upper,
    beta_upper_quantile,
    log_gamma,
)
from lighttail.policies.thompson import beta_draw
from lighttail.random.streams import block_generator

Z = 4.0
HORIZON = 120
COINS, NORMALS = [0.2, 0.7, 0.5], [0.2, 0.8, 0.6]

# The policy, the policy or the programme with a constant that is off, the programme, and sigma (None: coins).
CASES: list[tuple[lt.Policy, Any, Any, float | None]] = [
    (lt.KlUcb(2.0), lt.KlUcb(2.6), lambda: book.kl_ucb(2.0), None),
    (lt.KlUcb(0.5, 1.0), lt.KlUcb(0.5, 1.2), lambda: book.kl_ucb_normal(0.5, 1.0), 1.0),
    (
        lt.Imed(),
        lambda: book.imed(book.bernoulli_kl, weight=1.3),
        lambda: book.imed(book.bernoulli_kl),
        None,
    ),
    (lt.Imed(1.0), lt.Imed(1.2), lambda: book.imed(lambda p, q: book.normal_kl(p, q, 1.0)), 1.0),
    (lt.BayesUcb(2.0), lt.BayesUcb(1.4), lambda: book.bayes_ucb(2.0, HORIZON), None),
    (lt.BetaThompson(), lambda: book.beta_thompson(weight=0.75), book.beta_thompson, None),
    (lt.InflatedThompson(1.0), lt.InflatedThompson(1.2), lambda: book.inflated_thompson(1.0), 1.0),
    (lt.UCB(lt.Moss(1.6)), lt.UCB(lt.Moss(2.0)), lambda: book.moss(1.6, HORIZON), 1.0),
    (lt.UCB(lt.Eqo(1.0)), lt.UCB(lt.Eqo(1.2)), lambda: book.eqo(1.0, HORIZON), 1.0),
    (
        lt.UCB(lt.TwoPart(2.0, 1.5, 0.6, 0.3)),
        lt.UCB(lt.TwoPart(2.0, 1.8, 0.6, 0.3)),
        lambda: book.two_part(2.0, 1.5, 0.6, 0.3),
        1.0,
    ),
    (
        lt.UCB(lt.TwoPart(1.5, 4.0, 0.5, 0.5)),
        lt.UCB(lt.TwoPart(1.2, 4.0, 0.5, 0.5)),
        lambda: book.two_part(1.5, 4.0, 0.5, 0.5),
        1.0,
    ),
    (lt.EpsilonGreedy(2.0, 0.5), lt.EpsilonGreedy(2.5, 0.5), lambda: book.epsilon_greedy(2.0, 0.5), 1.0),
    (lt.ExploreThenCommit(15), lt.ExploreThenCommit(19), lambda: book.explore_then_commit(15), 1.0),
]


@cache
def by_book(programme: Any, sigma: float | None) -> np.ndarray:
    means = COINS if sigma is None else NORMALS
    return book.pseudo_regret(programme(), means, HORIZON, 8000, 1, sigma)


def apart(policy: lt.Policy, programme: Any, sigma: float | None) -> float:
    """How many standard errors the two mean regrets differ by."""
    noise = lt.Bernoulli() if sigma is None else lt.Gaussian(sigma)
    problem = lt.Bandit(COINS if sigma is None else NORMALS, noise)
    ours = lt.simulate(policy, problem, horizon=HORIZON, paths=8000, seed=2, method="step").pseudo_regret
    theirs = by_book(programme, sigma)
    error = math.sqrt(ours.var() / ours.size + theirs.var() / theirs.size)
    return float((ours.mean() - theirs.mean()) / error)


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda case: name(CASES[case][0]))
def test_mean_regret_is_that_of_the_definition(case: int) -> None:
    policy, off, programme, sigma = CASES[case]
    right = apart(policy, programme, sigma)
    wrong = apart(off, programme, sigma) if isinstance(off, lt.Policy) else apart(policy, off, sigma)
    print(f"{policy}: z = {right:.2f}, with a constant off {wrong:.1f}")
    assert abs(right) <= Z
    assert abs(wrong) > Z  # negative control


def test_an_even_split_and_a_commitment_have_their_exact_laws() -> None:
    problem = lt.Bandit([0.2, 0.8])
    even = lt.simulate(lt.EvenSplit(), problem, horizon=300, paths=50, seed=1)
    assert np.array_equal(even.pulls, np.full((50, 2), 150))
    for m, horizon in ((5, 50), (5, 250), (12, 100)):
        out = lt.simulate(lt.ExploreThenCommit(m), problem, horizon=horizon, paths=40_000, seed=3)
        wrong = float(np.mean(out.pulls[:, 0] == horizon - m))
        chance = special.ndtr(-0.6 * math.sqrt(m / 2))
        error = math.sqrt(chance * (1 - chance) / out.paths)
        assert set(np.unique(out.pulls[:, 0])) == {m, horizon - m}
        assert abs(wrong - chance) <= Z * error
        assert abs(wrong - special.ndtr(-0.6 * math.sqrt(1.25 * m / 2))) > Z * error  # negative control


def test_the_bernoulli_index_is_the_root_of_its_equation() -> None:
    rng = np.random.default_rng(1)
    for n in (10 ** rng.uniform(0, 6, 3000)).astype(int):
        p, level = rng.integers(0, n + 1) / n, rng.uniform(0, 20) / n
        q = bernoulli_upper(p, level)
        assert p <= q <= 1.0
        if q < 1.0 - 1e-12:
            slope = (q - p) / (q * (1 - q))
            assert abs(bernoulli_divergence(p, q) - level) <= 1e-11 * slope + 1e-12
            assert abs(book.bernoulli_kl(p, q) - bernoulli_divergence(p, q)) <= 1e-11
    assert bernoulli_upper(1.0, 0.3) == 1.0
    assert bernoulli_upper(0.0, 0.3) == pytest.approx(1 - math.exp(-0.3), abs=1e-15)
    assert bernoulli_upper(0.4, 0.0) == 0.4
    assert bernoulli_divergence(0.5, 1.0) == math.inf


def test_beta_quantiles_are_scipys() -> None:
    rng, furthest = np.random.default_rng(2), 0.0
    for n in 10 ** rng.uniform(0, 5, 2000):
        a, b = 1 + n * rng.random() ** 3, 1 + n * rng.random() ** 3
        chance = 10 ** rng.uniform(-12, -0.35)
        spread = math.sqrt(a * b / (a + b) ** 3)
        found = beta_upper_quantile(chance, a, b)
        furthest = max(furthest, abs(found - (1 - special.betaincinv(b, a, chance))) / spread)
        assert log_gamma(a) == pytest.approx(special.gammaln(a), rel=1e-11, abs=1e-11)
    assert furthest <= 1e-8
    assert abs(beta_upper_quantile(0.0101, 30.0, 50.0) - (1 - special.betaincinv(50.0, 30.0, 0.01))) > 1e-5


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 7.5), (12.0, 3.0), (400.0, 250.0)])
def test_beta_draws_have_the_law_of_their_name(a: float, b: float) -> None:
    """Kolmogorov's distance times sqrt(n) below 2.3 (chance 5e-5), and seen to be larger for another law."""
    rng = block_generator(1, int(a))
    found = np.sort([beta_draw(rng, a, b) for _ in range(20_000)])
    rank = (np.arange(found.size) + 0.5) / found.size
    reach = math.sqrt(found.size)
    assert reach * np.max(np.abs(special.betainc(a, b, found) - rank)) < 2.3
    assert reach * np.max(np.abs(special.betainc(1.2 * a, 1.1 * b, found) - rank)) > 2.3  # negative control
