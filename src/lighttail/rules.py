"""The rule by which a policy plays: which arm comes next, and what changes when a reward becomes known.

Every policy is executed through its rule, a pair of pure functions of floats and small arrays:

    choose(rng, t, tried, heard, total, note, params) -> arm      in round t, which counts from 1
    learn(arm, reward, tried, heard, total, note, params)         after `heard` and `total` include the reward

`tried[k]` is the number of pulls of arm k, including pulls whose reward is not yet known. `heard[k]` is the
number of rewards known of arm k, and `total[k]` is their sum. `note[k, j]` are floats that the rule keeps for
itself; they start at 0. If every reward is known at once, `heard` equals `tried`.

The same functions run in plain Python (in live experiments), compiled, and on a GPU. They therefore use only
item access, `len`, + - * / and `math.sqrt`, `math.log`, `math.exp`, `min`, `max`, and they draw random
numbers only with `uniform(rng)` and `standard_normal(rng)`. docs/own-policies.md explains how to write them.

There are three sizes of formula, and one adapter turns each size into the next: `index_of_radius` turns a
bonus (`radius`) into an index, and `rule_of_index` turns an index into a rule.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from lighttail.random.streams import uniform

Formula = Callable[..., Any]
Params = tuple[float, ...]  # the numbers of a policy that stay the same during an experiment


class Rule(NamedTuple):
    """The functions of a rule, and the number of floats that the rule keeps.

    notes: the number of floats that the rule keeps per arm.
    memo: how many of these floats, counted from the last, belong to a pull and not to the arm. The values
        that `choose` writes there are restored before `learn` receives the reward of that pull, however late.
    settled(note): the arm that will be pulled until the end, whatever the rewards are; -1 if there is none.
    """

    choose: Formula
    learn: Formula
    notes: int
    memo: int
    settled: Formula


def learn_nothing(
    arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: Params
) -> None:
    """The `learn` of a rule that computes everything in `choose`."""


def never_settled(note: Any) -> int:
    """The `settled` of a rule that may always change its arm: -1."""
    return -1


def highest(rng: Any, index: Any) -> int:
    """The arm with the highest index. If several arms have the highest index, one of them is drawn at random.

    index: an array with one number per arm, or the `note` of a rule, of which the first column is used. A
    random number is drawn only if there is a tie.

    >>> import numpy as np
    >>> highest(np.random.default_rng(1), np.array([0.2, 0.9, 0.4]))
    1
    """
    if index.ndim == 2:
        return _highest_note(rng, index)
    best, arm, others = index[0], 0, 0
    for k in range(1, len(index)):
        value = index[k]
        others = 0 if value > best else others + (value == best)
        arm = k if value > best else arm
        best = value if value > best else best
    if others > 0:
        skip = int(uniform(rng) * (others + 1))
        for k in range(len(index)):
            if index[k] == best:
                if skip == 0:
                    return k
                skip -= 1
    return arm


def _highest_note(rng: Any, note: Any) -> int:
    """`highest` for the first column of `note`. The loop selects values without branches, because a processor
    cannot predict which arm is best."""
    best, arm, others = note[0, 0], 0, 0
    for k in range(1, len(note)):
        value = note[k, 0]
        others = 0 if value > best else others + (value == best)
        arm = k if value > best else arm
        best = value if value > best else best
    if others > 0:
        skip = int(uniform(rng) * (others + 1))
        for k in range(len(note)):
            if note[k, 0] == best:
                if skip == 0:
                    return k
                skip -= 1
    return arm


def mean_of_all(heard: Any, total: Any) -> float:
    """The mean of all rewards so far, which stands in for the mean of a tried arm without a reward."""
    known, earned = 0.0, 0.0
    for j in range(len(heard)):
        known += heard[j]
        earned += total[j]
    return earned / max(1.0, known)


def mean_heard(k: int, heard: Any, total: Any) -> float:
    """The mean of the rewards of arm k, or the mean of all rewards so far if arm k has none."""
    return total[k] / heard[k] if heard[k] > 0.0 else mean_of_all(heard, total)


@cache
def index_of_radius(radius: Formula) -> Formula:
    """The index mean + radius of a bonus."""

    def index(n: float, mean: float, clock: float, *params: float) -> float:
        return mean + radius(n, clock, *params)  # type: ignore[no-any-return]

    return index


@cache
def rule_of_index(index: Formula, clock: Formula, moving: bool) -> Rule:
    """The rule that pulls the arm with the highest index. An arm that was never tried comes first.

    A pull whose reward is not yet known counts in n and not in the mean, so a batch spreads over the arms.
    moving: whether the index changes with time, so that all indices are computed again in every round.
    """

    def score(n: float, mean: float, clock: float, params: Params) -> float:
        return index(n, mean, clock, *params)  # type: ignore[no-any-return]

    return _moving(score, clock) if moving else _standing(score)


@cache
def rule_of_radius(radius: Formula, clock: Formula, moving: bool) -> Rule:
    """`rule_of_index` for the index mean + radius. The numbers are the same; one function call less per index
    makes plain Python faster, and so do two scores that do not unpack the tuple `params`."""

    def score(n: float, mean: float, clock: float, params: Params) -> float:
        return mean + radius(n, clock, *params)  # type: ignore[no-any-return]

    def score_of_one(n: float, mean: float, clock: float, params: Params) -> float:
        return mean + radius(n, clock, params[0])  # type: ignore[no-any-return]

    def score_of_two(n: float, mean: float, clock: float, params: Params) -> float:
        return mean + radius(n, clock, params[0], params[1])  # type: ignore[no-any-return]

    code = getattr(radius, "__code__", None)
    if code is not None and not code.co_flags & inspect.CO_VARARGS and not radius.__defaults__:
        score = {3: score_of_one, 4: score_of_two}.get(code.co_argcount, score)
    return _moving(score, clock) if moving else _standing(score)


def _moving(score: Formula, clock: Formula) -> Rule:
    """The rule of an index that changes with time. note[k, 0] is the index of arm k in this round."""

    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        now = clock(t, *params)
        for k in range(len(tried)):
            n, h = tried[k], heard[k]
            if n > 0.0:
                mean = total[k] / h if h > 0.0 else mean_of_all(heard, total)
                note[k, 0] = score(n, mean, now, params)
            else:
                note[k, 0] = math.inf
        return _highest_note(rng, note)

    return Rule(choose, learn_nothing, 1, 0, never_settled)


def _standing(score: Formula) -> Rule:
    """The rule of an index that does not change with time.

    note[k, 0] is the index of arm k, and note[k, 1] is the number of pulls for which it was computed. The
    index of an arm without a reward is never kept, because it depends on the rewards of the other arms.
    """

    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        if t == 1.0:
            for k in range(len(tried)):
                note[k, 0] = math.inf
        for k in range(len(tried)):
            n = tried[k]
            if note[k, 1] != n:
                h = heard[k]
                mean = total[k] / h if h > 0.0 else mean_of_all(heard, total)
                note[k, 0] = score(n, mean, 0.0, params)
                note[k, 1] = n if h > 0.0 else 0.0
        return _highest_note(rng, note)

    def learn(arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> None:
        n = tried[arm]
        note[arm, 0] = score(n, total[arm] / heard[arm], 0.0, params)
        note[arm, 1] = n

    return Rule(choose, learn, 2, 0, never_settled)


def only_active(note: Any) -> int:
    """The only arm whose first note is 0, or -1 if there are several such arms."""
    last = -1
    for k in range(len(note)):
        if note[k, 0] == 0.0:
            if last >= 0:
                return -1
            last = k
    return last


@cache
def elimination_rule(radius: Formula, clock: Formula) -> Rule:
    """Successive elimination: every active arm is pulled once per phase, and after each phase every arm that
    another arm dominates is dropped.

    note[k, 0] is 1 after arm k was dropped. A dropped arm never comes back, so the test uses only rewards
    that are known. An arm without a reward is not dropped, and no other arm is dropped because of it.
    """

    def width(k: int, t: float, heard: Any, params: Params) -> float:
        return radius(heard[k], clock(t - 1.0, *params), *params)  # type: ignore[no-any-return]

    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        last = only_active(note)
        if last >= 0:
            return last
        least, most = math.inf, 0.0
        for k in range(len(tried)):
            if note[k, 0] == 0.0:
                least, most = min(least, tried[k]), max(most, tried[k])
        if least == most and most > 0.0:  # the round before was the last of a phase
            best = -math.inf
            for k in range(len(tried)):
                if note[k, 0] == 0.0 and heard[k] > 0.0:
                    best = max(best, total[k] / heard[k] - width(k, t, heard, params))
            for k in range(len(tried)):
                known = note[k, 0] == 0.0 and heard[k] > 0.0
                if known and best > total[k] / heard[k] + width(k, t, heard, params):
                    note[k, 0] = 1.0
        for k in range(len(tried)):
            if note[k, 0] == 0.0 and tried[k] == least:
                return k
        return 0

    return Rule(choose, learn_nothing, 1, 0, only_active)
