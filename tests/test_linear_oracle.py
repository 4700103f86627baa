"""The kernels of linear bandits against direct solves, against the formula, and against another program.

A decision that is a numerical tie: indices within a share TIE = 1e-9 of their terms count as tied, in the
kernel and in the oracle alike, and the next uniform number decides. Rounding is below 1e-11 here, so the two
could only differ where an index lies within rounding of the edge of that band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pytest
from linear_cases import LIGHT, OFUL, OWN, THOMPSON, problem_of, theta_of, unit_rows
from linear_oracle import play

import lighttail as lt
from lighttail.linear import LinearPolicy

Z = 4.0  # standard errors


def differs(policy: Any, problem: lt.LinearBandit, horizon: int, paths: int, other: Any = None) -> bool:
    """Whether any path of the kernel differs from the oracle's, which may be given another policy."""
    out = lt.simulate(policy, problem, horizon=horizon, paths=paths, seed=7, threads=1)
    plain = play(other or policy, problem, horizon, paths, 7)
    same = np.allclose(out.pseudo_regret, plain.lost, rtol=0, atol=1e-9 * horizon)
    same &= np.allclose(out.regret, plain.best - plain.reward, rtol=0, atol=1e-9 * horizon)
    if problem.fixed:
        same &= np.array_equal(out.pulls, plain.pulls(len(problem.means)))
    return not same


CASES = [
    *((policy, "fixed") for policy in (LIGHT, lt.LinearUCB(lt.LinearStandard(0.8)), OFUL, OWN, THOMPSON)),
    *((LIGHT, kind) for kind in ("sphere", "ball", "contexts")),
    *((policy, "sphere") for policy in (OFUL, THOMPSON)),
]


@pytest.mark.parametrize(("policy", "kind"), CASES, ids=lambda part: str(part).replace(" ", ""))
def test_the_kernel_decides_as_direct_solves_do(policy: LinearPolicy, kind: str) -> None:
    sizes = ((1, 3, 40, 30), (2, 3, 60, 30), (4, 10, 160, 10), (9, 25, 60, 5))
    if numba.config.DISABLE_JIT:  # the kernels are plain Python then, as `make test` has it once
        sizes = ((1, 3, 40, 3), (2, 3, 60, 3), (4, 6, 100, 2), (9, 12, 40, 1))
    for dim, count, horizon, paths in sizes:
        assert not differs(policy, problem_of(kind, dim, count), horizon, paths)


def test_every_decision_a_tie() -> None:
    """Rewards of 0 and unit vectors: at first all indices are equal but for rounding."""
    problem = lt.LinearBandit([0.0] * 5, unit_rows(8, 5), lt.Gaussian(0.0))
    assert not differs(LIGHT, problem, 30, 40)
    first = lt.simulate(LIGHT, problem, horizon=1, paths=20_000, seed=3).pulls
    assert np.max(np.abs(first.mean(axis=0) - 1 / 8)) < Z * math.sqrt(7 / 64 / 20_000)


def test_other_noises_and_rewards_of_zero_and_one() -> None:
    positive = np.abs(unit_rows(6, 3))
    assert not differs(LIGHT, lt.LinearBandit([0.5, 0.3, 0.4], positive, lt.Bernoulli()), 80, 10)


@dataclass(frozen=True)
class WithoutRoot(lt.LinearBonus):
    """Eq. rad:linear without its second term: a wrong formula."""

    kappa: float

    @staticmethod
    def radius(z: float, t: float, kappa: float) -> float:
        return z * kappa * math.sqrt(t / 4.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lt.LinearUCB(lt.LinearLightTailed(0.3)),
        lt.LinearUCB(WithoutRoot(0.2)),
        lt.LinearUCB(lt.LinearLightTailed(0.2), ridge=1.02),
    ],
    ids=str,
)
def test_the_oracle_notices_a_wrong_formula(wrong: LinearPolicy) -> None:
    """Negative controls."""
    assert differs(LIGHT, problem_of("sphere", 4, 10), 160, 20, wrong)
    assert differs(LIGHT, problem_of("fixed", 4, 10), 160, 20, wrong)


def test_ten_thousand_rounds_decide_alike_too() -> None:
    """Rank-one steps drift; what is made anew does not."""
    assert not differs(LIGHT, problem_of("fixed", 6, 12), 10_000, 1)
    assert not differs(lt.LinearUCB(lt.LinearStandard(0.3)), problem_of("fixed", 3, 20), 10_000, 1)
    assert not differs(LIGHT, problem_of("sphere", 6, 5), 6_000, 1)


def basis_pulls(theta: np.ndarray, kappa: float, horizon: int, paths: int, seed: int) -> np.ndarray:
    """Pulls of K basis vectors by the formula: z = 1/(1 + n), theta-hat_k = S_k / (1 + n_k), d = K."""
    rng, arms, rows = np.random.default_rng(seed), theta.size, np.arange(paths)
    n, total = np.zeros((paths, arms)), np.zeros((paths, arms))
    for t in range(1, horizon + 1):
        z = 1.0 / (1.0 + n)
        index = total * z + z * kappa * math.sqrt(t / arms) + np.sqrt(arms * z)
        arm = np.argmax(index + 1e-9 * rng.random(index.shape), axis=1)
        n[rows, arm] += 1
        total[rows, arm] += theta[arm] + 0.5 * rng.standard_normal(paths)
    return n


@pytest.mark.parametrize("arms", [2, 6])
def test_basis_vectors_are_arms_with_z_one_over_one_plus_n(arms: int) -> None:
    """Within 4 standard errors in mean and in mean square of every arm's pulls, 6,000 paths each."""
    theta, paths, horizon = theta_of(arms), 6000, 120
    formula, wrong = (basis_pulls(theta, kappa, horizon, paths, 3) for kappa in (0.2, 0.4))
    pulls = lt.simulate(LIGHT, problem_of("basis", arms, arms), horizon=horizon, paths=paths, seed=2).pulls
    assert max(apart(pulls, formula), apart(pulls**2, formula**2)) < Z
    assert apart(pulls, wrong) > Z  # negative control: another kappa


def apart(first: np.ndarray, second: np.ndarray) -> float:
    """How many standard errors the columns' means differ at most."""
    error = np.sqrt(first.var(axis=0, ddof=1) / len(first) + second.var(axis=0, ddof=1) / len(second))
    return float(np.max(np.abs(first.mean(axis=0) - second.mean(axis=0)) / np.maximum(error, 1e-12)))


def other_simulation(
    theta: Any, draw: Any, radius: Any, sigma: float, horizon: int, paths: int, seed: int, ridge: float = 1.0
) -> np.ndarray:
    """Pseudo regrets from another program: all paths side by side in NumPy, an inverse a round."""
    rng, theta = np.random.default_rng(seed), np.asarray(theta)
    d = theta.size
    v = np.broadcast_to(ridge * np.eye(d), (paths, d, d)).copy()
    b, lost, rows = np.zeros((paths, d)), np.zeros(paths), np.arange(paths)
    for t in range(1, horizon + 1):
        actions = draw(rng, paths)
        inverse = np.linalg.inv(v)
        width = np.einsum("pai,pij,paj->pa", actions, inverse, actions, optimize=True)
        index = np.einsum("pai,pij,pj->pa", actions, inverse, b, optimize=True) + radius(width, t, d)
        index += 1e-9 * rng.random(index.shape)  # breaks ties
        means = actions @ theta
        taken = index.argmax(axis=1)
        a, mean = actions[rows, taken], means[rows, taken]
        lost += means.max(axis=1) - mean
        v += a[:, :, None] * a[:, None, :]
        b += a * (mean + sigma * rng.standard_normal(paths))[:, None]
    return lost


def fresh(count: int, dim: int) -> Any:
    def draw(rng: np.random.Generator, paths: int) -> np.ndarray:
        points = rng.standard_normal((paths, count, dim))
        return points / np.linalg.norm(points, axis=2, keepdims=True)

    return draw


def always(rows: np.ndarray) -> Any:
    return lambda rng, paths: np.broadcast_to(rows, (paths, *rows.shape))


def light(kappa: float) -> Any:
    return lambda z, t, d: z * kappa * math.sqrt(t / d) + np.sqrt(d * z)


THREE = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8], [0.5, 0.5, 0.7]])
FOUR = (0.5, -0.4, 0.3, 0.6)
TRIED = {
    "ten sphere actions in R^4": (FOUR, lt.SphereActions(10), fresh(10, 4), 1.0, 600, 0.2),
    "a fixed set in R^3": ((0.5, 0.4, 0.1), THREE, always(THREE), 1.0, 400, 0.3),
    "noise under-estimated by 8": ((0.5, 0.4, 0.1), THREE, always(THREE), 4.0, 400, 0.5),
}


@pytest.mark.parametrize("name", TRIED)
def test_mean_regret_is_that_of_another_program(name: str) -> None:
    """Mean and mean square, within 4 standard errors of both."""
    theta, actions, draw, sigma, horizon, kappa = TRIED[name]
    problem = lt.LinearBandit(theta, actions, lt.Gaussian(sigma))
    policy = lt.LinearUCB(lt.LinearLightTailed(kappa))
    ours = lt.simulate(policy, problem, horizon=horizon, paths=4000, seed=11).pseudo_regret[:, None]
    theirs = other_simulation(theta, draw, light(kappa), sigma, horizon, 400, 5)[:, None]
    assert max(apart(ours, theirs), apart(ours**2, theirs**2)) < Z


def test_another_program_with_a_wrong_formula_is_told_apart() -> None:
    """Negative control: eq. rad:linear without its second term."""
    theta, actions, draw, sigma, horizon, kappa = TRIED["a fixed set in R^3"]
    policy = lt.LinearUCB(lt.LinearLightTailed(kappa))
    problem = lt.LinearBandit(theta, actions, lt.Gaussian(sigma))
    ours = lt.simulate(policy, problem, horizon=horizon, paths=4000, seed=11).pseudo_regret[:, None]
    wrong = other_simulation(
        theta, draw, lambda z, t, d: z * kappa * math.sqrt(t / d), sigma, horizon, 400, 5
    )
    assert max(apart(ours, wrong[:, None]), apart(ours**2, wrong[:, None] ** 2)) > Z
