"""One decision of each rule, compiled: for paths that are stopped, tilted or copied half-way.

The kernels that play whole paths keep their state in registers. These functions keep it in three
arrays, so that a path can be looked at after every pull:

    choose(rng, t, n, s, note, params)    the arm of round t, which counts from 1
    learn(arm, value, n, s, note, params) called after n[arm] and s[arm] took in the reward `value`

`n` are the arms' pulls, `s` their sums of rewards, `note` what the rule itself remembers of an arm.
The paths are the same, number by number, as those of the other kernels and of the rules online.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from lighttail.kernels.build import Formula, prepare
from lighttail.kernels.index import pick_tied
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.streams import standard_normal, uniform


class Rule(NamedTuple):
    """A rule's functions, and what `note` holds at first.

    last(note) is the arm that will be pulled until the end whatever happens, or -1;
    gone(note, arms) says whether all of these arms are out for good.
    """

    choose: Callable[..., Any]
    learn: Callable[..., Any]
    last: Callable[..., Any]
    gone: Callable[..., Any]
    start: float


def rule_of(policy: Policy) -> tuple[Callable[..., Rule], tuple[Formula, ...]]:
    """The maker of a policy's rule, and the plain formulas that it takes."""
    match policy:
        case UCB(bonus) if type(bonus).changes_with_time():
            return moving_index_rule, (type(bonus).radius, type(bonus).clock)
        case UCB(bonus):
            return fixed_index_rule, (type(bonus).radius,)
        case SuccessiveElimination(bonus):
            return elimination_rule, (type(bonus).radius, type(bonus).clock)
        case ThompsonSampling():
            return posterior_rule, (policy.posterior_mean, policy.posterior_sd)
        case Exp3IX():
            return weights_rule, (policy.weight, policy.gain)
    raise TypeError(f"no rule plays {policy!r}")


@register_jitable
def learn_nothing(arm: Any, value: Any, n: Any, s: Any, note: Any, params: Any) -> None:
    return


@register_jitable
def none_is_last(note: Any) -> Any:
    return -1


@register_jitable
def none_is_gone(note: Any, arms: Any) -> Any:
    return False


@register_jitable
def all_dropped(note: Any, arms: Any) -> Any:
    for i in range(arms.size):
        if note[arms[i]] == 0.0:
            return False
    return arms.size > 0


@register_jitable
def highest(rng: Any, index: Any) -> Any:
    """The arm with the highest index; ties at random."""
    best, arm, tied = index[0], 0, 1
    for k in range(1, index.size):
        if index[k] > best:
            best, arm, tied = index[k], k, 1
        elif index[k] == best:
            tied += 1
    return np.int64(pick_tied(rng, index, best)) if tied > 1 else arm


def fixed_index_rule(radius: Formula) -> Rule:
    """UCB, the radius without time: `note` is the index."""
    radius = prepare(radius)

    @register_jitable
    def choose(rng: Any, t: Any, n: Any, s: Any, note: Any, params: Any) -> Any:
        return highest(rng, note)

    @register_jitable
    def learn(arm: Any, value: Any, n: Any, s: Any, note: Any, params: Any) -> None:
        note[arm] = s[arm] / n[arm] + radius(n[arm], 0.0, *params)

    return Rule(choose, learn, none_is_last, none_is_gone, math.inf)


def moving_index_rule(radius: Formula, clock: Formula) -> Rule:
    """UCB, the radius with time: `note` is the index, worked out anew every round."""
    radius, clock = prepare(radius), prepare(clock)

    @register_jitable
    def choose(rng: Any, t: Any, n: Any, s: Any, note: Any, params: Any) -> Any:
        time = clock(t, *params)
        for k in range(n.size):
            if n[k] > 0.0:
                note[k] = s[k] / n[k] + radius(n[k], time, *params)
        return highest(rng, note)

    return Rule(choose, learn_nothing, none_is_last, none_is_gone, math.inf)


@register_jitable
def only_active(note: Any) -> Any:
    """The one arm whose note is 0, or -1 if there are more."""
    last = -1
    for k in range(note.size):
        if note[k] == 0.0:
            if last >= 0:
                return -1
            last = k
    return last


def elimination_rule(radius: Formula, clock: Formula) -> Rule:
    """Successive elimination: `note` is 1 once the arm is dropped."""
    radius, clock = prepare(radius), prepare(clock)

    @register_jitable
    def choose(rng: Any, t: Any, n: Any, s: Any, note: Any, params: Any) -> Any:
        last = only_active(note)
        if last >= 0:
            return last
        least, most, best = math.inf, 0.0, -math.inf
        for k in range(n.size):
            if note[k] == 0.0:
                least, most = min(least, n[k]), max(most, n[k])
                best = max(best, s[k] / n[k] if n[k] > 0.0 else -math.inf)
        if least == most and most > 0.0:  # a phase ended with the round before
            width = radius(most, clock(t - 1.0, *params), *params)
            for k in range(n.size):
                if note[k] == 0.0 and best - width > s[k] / most + width:
                    note[k] = 1.0
        for k in range(n.size):
            if note[k] == 0.0 and n[k] == least:
                return k
        return 0

    return Rule(choose, learn_nothing, only_active, all_dropped, 0.0)


def posterior_rule(centre: Formula, spread: Formula) -> Rule:
    """Thompson sampling; it notes nothing."""
    centre, spread = prepare(centre), prepare(spread)

    @register_jitable
    def choose(rng: Any, t: Any, n: Any, s: Any, note: Any, params: Any) -> Any:
        best, arm = -math.inf, 0
        for k in range(n.size):
            draw = centre(n[k], s[k], *params) + spread(n[k], *params) * standard_normal(rng)
            if draw > best:
                best, arm = draw, k
        return arm

    return Rule(choose, learn_nothing, none_is_last, none_is_gone, 0.0)


def weights_rule(weight: Formula, gain: Formula) -> Rule:
    """EXP3-IX: `note` is the score."""
    weight, gain = prepare(weight), prepare(gain)

    @register_jitable
    def mass_of(note: Any, best: Any, params: Any) -> Any:
        mass = 0.0
        for k in range(note.size):
            mass += weight(note[k], best, *params)
        return mass

    @register_jitable
    def choose(rng: Any, t: Any, n: Any, s: Any, note: Any, params: Any) -> Any:
        best = note.max()
        mark = uniform(rng) * mass_of(note, best, params)
        arm, below = 0, weight(note[0], best, *params)
        while arm < note.size - 1 and mark >= below:
            arm += 1
            below += weight(note[arm], best, *params)
        return arm

    @register_jitable
    def learn(arm: Any, value: Any, n: Any, s: Any, note: Any, params: Any) -> None:
        best = note.max()
        probability = weight(note[arm], best, *params) / mass_of(note, best, params)
        note[arm] += gain(value, probability, *params)

    return Rule(choose, learn, none_is_last, none_is_gone, 0.0)
