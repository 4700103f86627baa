"""The law of any rule with Bernoulli rewards by going through every state, in plain Python: slow and sure."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

import lighttail as lt
from lighttail.rules import Rule
from lighttail.tails.programme import programme_of


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


# -- Any rule: its notes are a part of the state, and its random numbers are enumerated, too.


class _More(Exception):
    """A rule asks for more random numbers than it was given."""


class _Script:
    def __init__(self, numbers: tuple[float, ...]) -> None:
        self.numbers, self.place = numbers, 0

    def random(self) -> float:
        if self.place == len(self.numbers):
            raise _More
        self.place += 1
        return self.numbers[self.place - 1]


def _choices(rule: Rule, state: tuple[Any, ...], t: int, params: Any, points: int) -> dict[Any, float]:
    """The chance of every (arm, notes after choosing)."""
    tried, total, note = state
    found: dict[Any, float] = defaultdict(float)
    scripts: list[tuple[float, ...]] = [()]
    while scripts:
        script = scripts.pop()
        notes = np.array(note)
        try:
            arm = rule.choose(
                _Script(script), float(t), np.array(tried), np.array(tried), np.array(total), notes, params
            )
        except _More:
            scripts += [(*script, (i + 0.5) / points) for i in range(points)]
            continue
        found[arm, tuple(map(tuple, notes.tolist()))] += points ** -float(len(script))
    return found


def tail_by_rule(
    policy: lt.Policy, problem: lt.Bandit, horizon: int, kind: str, points: int = 20
) -> tuple[np.ndarray, np.ndarray]:
    """(values, P(kind >= value)) of any policy on coins.

    points: values of a uniform number; exact if every chance in the rule is a multiple of 1 / points.
    """
    rule, params = policy.rule(), policy.params(horizon, problem.arms)
    notes = ((0.0,) * max(1, rule.notes),) * problem.arms
    states: dict[Any, float] = {((0.0,) * problem.arms, (0.0,) * problem.arms, notes): 1.0}
    for t in range(1, horizon + 1):
        following: dict[Any, float] = defaultdict(float)
        for state, chance in states.items():
            for (arm, note), share in _choices(rule, state, t, params, points).items():
                for reward, p in ((1.0, problem.means[arm]), (0.0, 1.0 - problem.means[arm])):
                    tried, total, kept = np.array(state[0]), np.array(state[1]), np.array(note)
                    tried[arm] += 1.0
                    total[arm] += reward
                    rule.learn(arm, reward, tried, tried, total, kept, params)
                    key = tuple(tried), tuple(total), tuple(map(tuple, kept.tolist()))
                    following[key] += chance * share * p
        states = following
    law: dict[float, float] = defaultdict(float)
    for (tried, total, _), chance in states.items():
        lost = float(np.dot(tried, problem.gaps))
        lost = lost if kind == "pseudo_regret" else max(problem.means) * horizon - sum(total)
        law[round(lost, 9)] += chance
    values = np.array(sorted(law))
    return values, np.cumsum([law[value] for value in values[::-1]])[::-1]


# -- The whole law of an exact programme, of which lighttail itself asks for tails alone.


def programme_law(policy: lt.Policy, problem: lt.Bandit, horizon: int, kind: str) -> tuple[Any, Any]:
    """The values that the regret can take, in rising order, and their probabilities."""
    programme = programme_of(policy)
    assert programme is not None
    return merged(*programme.make(policy, problem, horizon, kind).law())


def merged(values: Any, chances: Any) -> tuple[Any, Any]:
    """Sorted values without values of chance 0; values that differ only by rounding count as one."""
    values, chances = values[chances > 0.0], chances[chances > 0.0]
    order = np.argsort(values, kind="stable")
    values, chances = values[order], chances[order]
    apart = np.diff(values) > 1e-12 * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    firsts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    return values[firsts], np.add.reduceat(chances, firsts)
