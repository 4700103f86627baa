"""Adaptive multilevel splitting: paths that come close to the event are copied, and other paths end.

Every path has a score, and the level of a path is its highest score so far, in steps. At each turn the paths
with the lowest level end. Each of them is replaced by a copy of another path from the moment when that path
first came above the level, and the copy is played on with fresh random numbers. The product of the shares of
paths that were kept at the turns is an unbiased estimate for every score, but useless for a bad score (Cerou
and Guyader 2007).

A score is `score(path, missing, left, most, problem, clock, params)`: minus the cost to go, or any number up
to -most if the cost is `most` or higher, because the path has been closer to the event before. path: the
pulls, the sums and the notes of the arms. problem: the means, the variances and the gaps of the arms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lighttail.kernels.build import WRONG_ARM, Formula, compiler, inner, jitable, largest, sum_of
from lighttail.random.streams import uniform
from lighttail.rules import Rule

FRACTIONS = 9  # how many raises of the bad arm's index are tried


@inner
def squared(x: Any) -> Any:
    """x^2, or infinity if the square is no float: a power would raise an error outside compiled code."""
    return x * x


@inner
def seen(k: Any, n: Any, s: Any, means: Any) -> Any:
    """The pulls and the sum of an arm. An arm without pulls counts as if it had earned its mean once."""
    if n[k] == 0.0:
        return 1.0, means[k]
    return n[k], s[k]


@inner
def copy_row(source: Any, target: Any) -> None:
    """Copy an array to the beginning of another one. numba compiles a loop much sooner than slices."""
    for j in range(source.size):
        target[j] = source[j]


def index_score(index: Callable[..., Any], every_arm: bool = True) -> Any:
    """Minus the cost to go for a policy that pulls the arm with the highest index at the end.

    Some arm a must take the missing pulls. Its index after these pulls is raised by y, and the index of every
    other arm must fall below with 0, 1, 2, 4, ... more pulls. If the last k of n + k rewards change the mean
    by e, this costs (e (n + k))^2 / (2 variance k). The cost to go is the lowest cost of all these ways.
    every_arm: the policy pulls every arm first, so that a path that has not yet done so has the lowest score.
    """

    @inner
    def below(k: Any, ceiling: Any, n: Any, s: Any, left: Any, problem: Any, clock: Any, params: Any) -> Any:
        means, variances, _ = problem
        pulls, total = seen(k, n, s, means)
        least = 0.0 if index(pulls, total, clock, params) <= ceiling else math.inf
        more = 1.0
        while more <= left and least > 0.0:
            count = pulls + more
            excess = index(count, total + more * means[k], clock, params) - ceiling
            if excess <= 0.0:
                return 0.0
            least = min(least, squared(excess * count) / (2.0 * variances[k] * more))
            more += more
        return least

    @inner
    def score(path: Any, missing: Any, left: Any, most: Any, problem: Any, clock: Any, params: Any) -> Any:
        (n, s, _), (means, variances, gaps) = path, problem
        arms = n.size
        for k in range(arms):
            if every_arm and n[k] == 0.0:
                return -math.inf
        cheapest = most
        for a in range(arms):
            more = np.ceil(missing / gaps[a]) - 1.0 if gaps[a] > 0.0 else math.inf
            if more >= left:
                continue
            pulls, total = seen(a, n, s, means)
            count = pulls + more
            own = index(count, total + more * means[a], clock, params)
            highest = own
            for k in range(arms):
                if k != a:
                    pulls, total = seen(k, n, s, means)
                    highest = max(highest, index(pulls, total, clock, params))
            for i in range(FRACTIONS):
                lift = (highest - own) * i / (FRACTIONS - 1.0)
                if lift > 0.0 and more == 0.0:
                    break
                cost = squared(lift * count) / (2.0 * variances[a] * more) if lift > 0.0 else 0.0
                if cost >= cheapest:
                    break
                for k in range(arms):
                    if k != a and cost < cheapest:
                        cost += below(k, own + lift, n, s, left - more, problem, clock, params)
                cheapest = min(cheapest, cost)
        return -cheapest

    return score


def elimination_score(radius: Formula) -> Any:
    """Minus the cost to go for successive elimination: some arm a drops all arms that are too good.

    After k = 1, 2, 4, ... more phases the mean of arm a must be two radii above the means of these arms.
    """
    radius = jitable(radius)

    @inner
    def score(path: Any, missing: Any, left: Any, most: Any, problem: Any, clock: Any, params: Any) -> Any:
        (n, s, note), (means, variances, gaps) = path, problem
        arms = n.size
        cheapest = most
        for a in range(arms):
            if note[a, 0] != 0.0 or n[a] == 0.0 or gaps[a] * left < missing:
                continue
            cost = 0.0
            for k in range(arms):
                if note[k, 0] != 0.0 or gaps[k] * left >= missing or cost >= cheapest:
                    continue
                least = math.inf
                more = 1.0
                while more <= left:
                    count = n[a] + more
                    ahead = (s[k] + more * means[k]) / (n[k] + more) - (s[a] + more * means[a]) / count
                    excess = max(0.0, ahead + 2.0 * radius(count, clock, *params))
                    least = min(least, squared(excess * count) / (2.0 * (variances[a] + variances[k]) * more))
                    more += more
                cost += least
            cheapest = min(cheapest, cost)
        return -cheapest

    return score


def any_index_score(formula: Formula) -> Any:
    """The score of a policy with an index."""
    formula = jitable(formula)

    @inner
    def index(n: Any, s: Any, clock: Any, params: Any) -> Any:
        return formula(n, s / n, clock, *params)

    return index_score(index)


def means_score() -> Any:
    """The score of a rule of which nothing is known: as if it pulled the arm with the best mean, or any arm.

    The score is minus the lower of two costs to go: the cost of means that favour a bad arm, and one nat per
    missing pull of the worst arm, which is about the cost for a rule that explores by itself.
    """

    @inner
    def mean(n: Any, s: Any, clock: Any, params: Any) -> Any:
        return s / n

    favoured = index_score(mean, False)

    @inner
    def score(path: Any, missing: Any, left: Any, most: Any, problem: Any, clock: Any, params: Any) -> Any:
        worst = largest(problem[2])
        if missing <= 0.0:
            return 0.0
        if worst * left < missing:
            return -math.inf
        cost = missing / worst
        return max(favoured(path, missing, left, min(most, cost), problem, clock, params), -cost)

    return score


def posterior_score(centre: Formula, spread: Formula) -> Any:
    """The score of Thompson sampling: the index is the posterior mean + `clock` posterior deviations."""
    centre, spread = jitable(centre), jitable(spread)

    @inner
    def index(n: Any, s: Any, clock: Any, params: Any) -> Any:
        return centre(n, s, *params) + clock * spread(n, *params)

    return index_score(index)


Score = tuple[Callable[..., Any], tuple[Formula, ...], str]  # the maker, its formulas, and the score in words


def _index_score(policy: Any) -> Score:
    return any_index_score, (policy.index_formula(),), "the policy's index"


SCORES: dict[str, Callable[[Any], Score]] = {  # by `plays_by` of a policy
    "radius": _index_score,
    "index": _index_score,
    "phases": lambda policy: (
        elimination_score,
        (type(policy.bonus).radius,),
        "the cost of dropping the better arms",
    ),
    "posterior": lambda policy: (
        posterior_score,
        (policy.posterior_mean, policy.posterior_sd),
        "the policy's posterior",
    ),
    "": lambda policy: (means_score, (), "the arms' means, since nothing else is known of the policy's rule"),
}


def with_luck(score: Any) -> Any:
    """The score if the luck of the rewards counts: part of the missing regret is loss, the rest is bad luck.

    Luck y in the rewards of the `left` rounds to come costs y^2 / (2 variance left). The lowest sum of both
    costs counts.
    """

    @inner
    def both(path: Any, missing: Any, left: Any, most: Any, problem: Any, clock: Any, params: Any) -> Any:
        if missing <= 0.0:
            return 0.0
        if left <= 0.0:
            return -math.inf
        variance = largest(problem[1])
        cheapest = min(most, missing * missing / (2.0 * variance * left))
        for i in range(1, FRACTIONS):
            loss = missing * i / (FRACTIONS - 1.0)
            luck = missing - loss
            cost = luck * luck / (2.0 * variance * left)
            if cost < cheapest:
                cost -= score(path, loss, left, cheapest, problem, clock, params)
                cheapest = min(cheapest, cost)
        return -cheapest

    return both


@inner
def reach(record: Any, level: Any, step: Any, state: Any, event: Any) -> None:
    """Record the state in which the path first came to the levels above `level`, up to `step`.

    event: 1.0 if the event itself made the step, otherwise 0.0.
    """
    for i in range(level + 1, step + 1):
        copy_row(state, record[i])
        record[i, -1] = event


@inner
def rank(level: Any, least: Any, reached: Any) -> Any:
    """The level that is the `least`-th from below. reached: room for the number of paths at each level.

    numba compiles these loops much sooner than a sort.
    """
    for i in range(reached.size):
        reached[i] = 0
    for i in range(level.size):
        reached[level[i]] += 1
    bar, paths = 0, reached[0]
    while paths < least:
        bar += 1
        paths += reached[bar]
    return bar


def branching_kernel(
    rule: Rule, score_of: Callable[..., Any], parts: tuple[Formula, ...], shock: Formula, reward: Formula
) -> Any:
    """The kernel that runs one repetition and returns (estimate, rounds played, turns).

    parts: the formulas of the score. luck: whether the luck of the rewards counts; the last reward then
    decides a path. clock: the value of the clock in the score. lowest, steps: the scores from `lowest` to 0
    are divided into `steps` levels; the event is one level higher. least: the number of paths that a turn
    ends, at least.
    """
    rule, shock, reward = jitable(rule), jitable(shock), jitable(reward)
    choose, learn, notes, _, settled = rule
    score_loss = score_of(*parts)
    score_regret = with_luck(score_loss)

    @inner
    def play(
        rng: Any, params: Any, world: Any, problem: Any, limits: Any, state: Any, record: Any, stop: Any
    ) -> Any:
        """Play a path on from its level to its end; returns its highest level and the rounds played."""
        means, _, gaps = problem
        horizon, target, clock, lowest, luck, steps = limits
        arms = means.size
        n, s = state[2 : 2 + arms], state[2 + arms : 2 + 2 * arms]
        note = state[2 + 2 * arms :].reshape((arms, notes))
        worst, best = largest(gaps), largest(means)
        level = int(record[0, -1])  # levels up to this one have their record
        for j in range(state.size):
            state[j] = record[level, j]
        first = state[0]
        while state[0] < horizon:
            t = state[0] + 1.0
            z = shock(rng, *world)
            arm = choose(rng, t, n, n, s, note, params)
            if arm < 0 or arm >= arms:
                stop[0] = WRONG_ARM
                return level, t - first
            loss = state[1] + gaps[arm]
            final = settled(note)
            certain = loss if final < 0 else loss + gaps[final] * (horizon - t)
            possible = loss + (worst if final < 0 else gaps[final]) * (horizon - t)
            if not luck and certain >= target:
                reach(record, level, steps + 1, state, 1.0)
                return steps + 1, t - first
            if (not luck and possible < target) or stop[0] != 0:
                return level, t - first
            value = reward(z, arm, *world)
            n[arm] += 1.0
            s[arm] += value
            learn(arm, value, n, n, s, note, params)
            state[0], state[1] = t, loss
            left = horizon - t
            most = lowest * (level / steps - 1.0)  # the cost to go at the path's level
            if luck:
                missing = target - (best * t - sum_of(s))
                if left == 0.0:
                    if missing > 0.0:
                        return level, t - first
                    reach(record, level, steps + 1, state, 1.0)
                    return steps + 1, t - first
                now = score_regret((n, s, note), missing, left, most, problem, clock, params)
            else:
                missing = target - loss
                now = score_loss((n, s, note), missing, left, most, problem, clock, params)
            now = now if now > lowest else lowest  # a score of nan, too, is the lowest
            step = int(steps * min(1.0, 1.0 - now / lowest))
            reach(record, level, step, state, 0.0)
            level = max(level, step)
        return level, state[0] - first

    @compiler(rule, shock, reward, score_loss)
    def kernel(
        rng: Any, params: Any, world: Any, problem: Any, limits: Any, particles: Any, least: Any, stop: Any
    ) -> Any:
        arms, steps = problem[0].size, limits[-1]
        top = steps + 1
        width = 2 + (2 + notes) * arms
        record = np.zeros((particles, steps + 2, width + 1))
        level = np.zeros(particles, np.int64)
        state = np.empty(width)
        rounds, estimate, turns = 0.0, 1.0, 0
        for i in range(particles):
            level[i], played = play(rng, params, world, problem, limits, state, record[i], stop)
            rounds += played
        alive, reached = np.empty(particles, np.int64), np.empty(top + 1, np.int64)
        while stop[0] == 0:
            bar = rank(level, least, reached)
            if bar == top:
                break
            left = 0
            for i in range(particles):
                if level[i] > bar:
                    alive[left] = i
                    left += 1
            estimate *= left / particles
            turns += 1
            if left == 0:
                break
            for i in range(particles):
                if level[i] <= bar:
                    other = alive[min(int(uniform(rng) * left), left - 1)]
                    if record[other, bar + 1, -1] == 1.0:  # the event itself is the record above the bar
                        for j in range(top + 1):
                            copy_row(record[other, j], record[i, j])
                        level[i] = top
                        continue
                    for j in range(bar + 2):
                        copy_row(record[other, j], record[i, j])
                    record[i, 0, -1] = bar + 1
                    level[i], played = play(rng, params, world, problem, limits, state, record[i], stop)
                    rounds += played
        hits = 0
        for i in range(particles):
            hits += level[i] == top
        return estimate * hits / particles, rounds, turns

    return kernel
