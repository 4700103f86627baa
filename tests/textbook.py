"""Policies as their papers define them, in plain NumPy and many paths side by side.

Nothing of lighttail is imported: what these programmes say of a mean regret is independent of it. Each policy
is a function `arms(rng, t, n, s) -> arm`, n and s of shape (paths, K): pulls and sums of rewards so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

Array = np.ndarray
Choice = Callable[[np.random.Generator, int, Array, Array], Array]


def pseudo_regret(
    choice: Choice, means: list[float], horizon: int, paths: int, seed: int, sigma: float | None
) -> Array:
    """Of every path; sigma is None for Bernoulli rewards."""
    rng, theta = np.random.default_rng(seed), np.array(means)
    n, s = np.zeros((paths, theta.size)), np.zeros((paths, theta.size))
    row = np.arange(paths)
    for t in range(1, horizon + 1):
        arm = choice(rng, t, n, s)
        mean = theta[arm]
        drawn = rng.random(paths) < mean if sigma is None else mean + sigma * rng.standard_normal(paths)
        n[row, arm] += 1
        s[row, arm] += drawn
    return n @ (theta.max() - theta)


def top(rng: np.random.Generator, value: Array) -> Array:
    """The column of the largest value of each row; among equal ones at random."""
    tied = value == value.max(axis=1, keepdims=True)
    return np.where(tied, rng.random(value.shape), -1.0).argmax(axis=1)


def by_index(index: Callable[[int, Array, Array], Array]) -> Choice:
    """Every arm once, then the largest index(t, n, mean)."""

    def choice(rng: np.random.Generator, t: int, n: Array, s: Array) -> Array:
        if t <= n.shape[1]:
            return top(rng, np.where(n == 0, 1.0, 0.0))
        return top(rng, index(t, n, s / n))

    return choice


def states(n: Array, mean: Array) -> tuple[Array, Array, Array]:
    """The different pairs of pulls and mean, and where each arm of each path has its own: few, with coins."""
    code, place = np.unique(n * 10_000 + np.round(n * mean), return_inverse=True)
    pulls = code // 10_000
    return pulls, (code - 10_000 * pulls) / pulls, place.reshape(n.shape)


def bernoulli_kl(p: Array, q: Array) -> Array:
    return special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)


def normal_kl(p: Array, q: Array, sigma: float) -> Array:
    return (p - q) ** 2 / (2 * sigma**2)


def kl_ucb(c: float) -> Choice:
    """max{q: n kl(mean, q) <= log t + c log log t}, by bisection."""

    def index(t: int, n: Array, mean: Array) -> Array:
        n, mean, place = states(n, mean)
        level = (np.log(t) + c * np.log(max(1.0, np.log(t)))) / n
        low, high = mean.copy(), np.ones_like(mean)
        for _ in range(30):
            middle = (low + high) / 2
            inside = bernoulli_kl(mean, middle) <= level
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return low[place]

    return by_index(index)


def kl_ucb_normal(c: float, sigma: float) -> Choice:
    return by_index(
        lambda t, n, mean: mean + np.sqrt(2 * sigma**2 * (np.log(t) + c * np.log(max(1, np.log(t)))) / n)
    )


def imed(divergence: Callable[[Array, Array], Array], weight: float = 1.0) -> Choice:
    """Least n kl(mean, best mean) + log n; another weight of the logarithm is wrong."""

    def index(t: int, n: Array, mean: Array) -> Array:
        return -n * divergence(mean, mean.max(axis=1, keepdims=True)) - weight * np.log(n)

    return by_index(index)


def bayes_ucb(c: float, horizon: int) -> Choice:
    """The 1 - 1 / (t (log T)^c) quantile of the beta posterior under the uniform prior."""

    def index(t: int, n: Array, mean: Array) -> Array:
        n, mean, place = states(n, mean)
        won = np.round(n * mean)
        return special.betaincinv(1 + won, 1 + n - won, 1 - 1 / (t * np.log(horizon) ** c))[place]

    return by_index(index)


def moss(kappa: float, horizon: int) -> Choice:
    return by_index(
        lambda t, n, mean: mean + kappa * np.sqrt(np.maximum(0, np.log(horizon / (n.shape[1] * n))) / n)
    )


def eqo(kappa: float, horizon: int) -> Choice:
    return by_index(lambda t, n, mean: mean + kappa * np.sqrt(horizon / n.shape[1]) / n)


def two_part(eta1: float, eta2: float, alpha: float, beta: float) -> Choice:
    def index(t: int, n: Array, mean: Array) -> Array:
        arms = n.shape[1]
        near = eta1 * (t / arms) ** alpha * np.sqrt(np.log(arms)) / n
        return mean + np.minimum(near, eta2 * np.sqrt(t**beta / n))

    return by_index(index)


def beta_thompson(weight: float = 1.0) -> Choice:
    """The uniform prior; another weight of a reward is wrong."""
    return lambda rng, t, n, s: rng.beta(1 + weight * s, 1 + weight * (n - s)).argmax(axis=1)


def inflated_thompson(sigma0: float) -> Choice:
    def choice(rng: np.random.Generator, t: int, n: Array, s: Array) -> Array:
        if t <= n.shape[1]:
            return top(rng, np.where(n == 0, 1.0, 0.0))
        return rng.normal(s / n, np.sqrt(sigma0**2 * (t / n.shape[1]) / n**2)).argmax(axis=1)

    return choice


def epsilon_greedy(c: float, d: float) -> Choice:
    def choice(rng: np.random.Generator, t: int, n: Array, s: Array) -> Array:
        paths, arms = n.shape
        mean = np.where(n > 0, s / np.maximum(1, n), np.inf)
        explore = rng.random(paths) < min(1.0, c * arms / (d**2 * t))
        return np.where(explore, rng.integers(arms, size=paths), top(rng, mean))

    return choice


def explore_then_commit(m: int) -> Choice:
    """Decided once, from what is known after m pulls of each arm."""
    kept: list[Array] = []

    def choice(rng: np.random.Generator, t: int, n: Array, s: Array) -> Array:
        paths, arms = n.shape
        if t <= m * arms:
            return np.full(paths, (t - 1) % arms)
        if t == m * arms + 1:
            kept[:] = [top(rng, s / n)]
        return kept[0]

    return choice


def even_split() -> Choice:
    return lambda rng, t, n, s: np.full(len(n), (t - 1) % n.shape[1])
