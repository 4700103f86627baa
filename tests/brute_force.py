"""The law of UCB with Bernoulli rewards by going through every state, in plain Python: slow and sure."""

from __future__ import annotations

from collections import defaultdict

import lighttail as lt


def law_by_states(
    policy: lt.UCB, problem: lt.Bandit, horizon: int, ties: str = "random"
) -> dict[tuple[int, ...], float]:
    """The chance of every number of pulls; a state is (pulls, successes) of each arm."""
    params = policy.params(horizon, problem.arms)

    def index(n: int, s: int) -> float:
        return s / n + policy.bonus.radius(float(n), 0.0, *params) if n else float("inf")

    states = {((0, 0),) * problem.arms: 1.0}
    for _ in range(horizon):
        following: dict[tuple[tuple[int, int], ...], float] = defaultdict(float)
        for state, chance in states.items():
            indices = [index(*cell) for cell in state]
            tied = [arm for arm, value in enumerate(indices) if value == max(indices)]
            if ties == "first":
                tied = tied[:1]
            for arm in tied:
                n, s = state[arm]
                for success, p in ((1, problem.means[arm]), (0, 1.0 - problem.means[arm])):
                    if p > 0.0:
                        cell = (n + 1, s + success)
                        following[(*state[:arm], cell, *state[arm + 1 :])] += chance * p / len(tied)
        states = following
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for state, chance in states.items():
        law[tuple(n for n, _ in state)] += chance
    return law


def tail_by_states(
    policy: lt.UCB, problem: lt.Bandit, horizon: int, ties: str = "random"
) -> dict[float, float]:
    """P(pseudo regret >= x) for each possible x, rising."""
    chances: dict[float, tuple[float, float]] = {}
    for pulls, chance in law_by_states(policy, problem, horizon, ties).items():
        regret = sum(n * gap for n, gap in zip(pulls, problem.gaps, strict=True))
        same = round(regret, 9)
        chances[same] = regret, chance + chances.get(same, (0.0, 0.0))[1]
    tails, total = {}, 0.0
    for regret, chance in sorted(chances.values(), reverse=True):
        total += chance
        tails[regret] = total
    return dict(reversed(tails.items()))
