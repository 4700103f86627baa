"""A rule of play: which arm comes next, and what a reward changes. Every policy is executed through these.

A rule is a pair of pure functions of floats and small arrays:

    choose(rng, t, tried, heard, total, note, params) -> arm      round t, which counts from 1
    learn(arm, reward, tried, heard, total, note, params)         after heard and total took the reward in

`tried[k]` counts the pulls of arm k, open ones included, `heard[k]` its rewards, `total[k]` is their sum, and
`note[k, j]` are floats of the rule's own, 0 at first. Without delay `heard` is `tried`. The same functions
run in plain Python (live experiments), compiled, and on a GPU; so they are written with item access and `len`
alone, with + - * / and `math.sqrt`, `math.log`, `math.exp`, `min`, `max`, and draw from `rng` with
`uniform(rng)` and `standard_normal(rng)` only. docs/own-policies.md is the page to read.

Three sizes of formula make a rule, each lifted to the next by one adapter here: a bonus (`radius`) to an
index by `index_of_radius`, an index to a rule by `rule_of_index`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from lighttail.random.streams import uniform

Formula = Callable[..., Any]


class Rule(NamedTuple):
    """The functions of a rule, and what it keeps.

    notes: floats that the rule keeps per arm. memo: how many of them, the last ones, belong to a pull and not
    to the arm: what `choose` left there is there again when `learn` is told of that pull, however late.
    settled(note): the arm that will be pulled until the end whatever the rewards, or -1.
    """

    choose: Formula
    learn: Formula
    notes: int
    memo: int
    settled: Formula


def learn_nothing(
    arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
) -> None:
    """For rules that work everything out when they choose."""


def never_settled(note: Any) -> int:
    """No arm is certain to be pulled until the end."""
    return -1


def highest(rng: Any, index: Any) -> int:
    """The arm with the highest index; one of them at random if there are several.

    index: an array of one number per arm, or a rule's `note`, whose first column is taken. A random number is
    drawn only if there is a tie.

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
    """The same of the first column: selects and no branches, since nobody can predict which arm is best."""
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
    """The mean of all rewards so far: where an arm stands that was tried and has no reward yet."""
    known, earned = 0.0, 0.0
    for j in range(len(heard)):
        known += heard[j]
        earned += total[j]
    return earned / max(1.0, known)


def mean_heard(k: int, heard: Any, total: Any) -> float:
    """The mean of an arm's rewards; of all rewards so far while the arm has none."""
    return total[k] / heard[k] if heard[k] > 0.0 else mean_of_all(heard, total)


@cache
def index_of_radius(radius: Formula) -> Formula:
    """A bonus as an index: mean + radius."""

    def index(n: float, mean: float, clock: float, *params: float) -> float:
        return mean + radius(n, clock, *params)  # type: ignore[no-any-return]

    return index


@cache
def rule_of_index(index: Formula, clock: Formula, moving: bool) -> Rule:
    """The rule that pulls the arm with the highest index; an arm never tried comes first.

    Open pulls count in n, so that a batch spreads over the arms, and not in the mean. moving: whether the
    index changes with time, so that it is worked out anew every round.
    """

    def score(n: float, mean: float, clock: float, params: tuple[float, ...]) -> float:
        return index(n, mean, clock, *params)  # type: ignore[no-any-return]

    return _moving(score, clock) if moving else _standing(score)


@cache
def rule_of_radius(radius: Formula, clock: Formula, moving: bool) -> Rule:
    """`rule_of_index` of mean + radius: the same numbers with a call less, which counts in plain Python."""
    score = _score_of_radius(radius)
    return _moving(score, clock) if moving else _standing(score)


def _score_of_radius(radius: Formula) -> Formula:
    """mean + radius as a function of the tuple `params`, which plain Python takes longer to unpack."""

    def score(n: float, mean: float, clock: float, params: tuple[float, ...]) -> float:
        return mean + radius(n, clock, *params)  # type: ignore[no-any-return]

    def score_of_one(n: float, mean: float, clock: float, params: tuple[float, ...]) -> float:
        return mean + radius(n, clock, params[0])  # type: ignore[no-any-return]

    def score_of_two(n: float, mean: float, clock: float, params: tuple[float, ...]) -> float:
        return mean + radius(n, clock, params[0], params[1])  # type: ignore[no-any-return]

    code = getattr(radius, "__code__", None)
    plain = code is not None and not code.co_flags & inspect.CO_VARARGS and not radius.__defaults__
    taken = code.co_argcount if code is not None and plain else None
    return {3: score_of_one, 4: score_of_two}.get(taken or 0, score)


def _moving(score: Formula, clock: Formula) -> Rule:
    """note[k, 0] is the index of this round."""

    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
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
    """note[k, 0] is the index, note[k, 1] the number of pulls for which it was worked out.

    The index of an arm without a reward, which leans on the rewards of the others, is never kept.
    """

    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
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

    def learn(
        arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> None:
        n = tried[arm]
        note[arm, 0] = score(n, total[arm] / heard[arm], 0.0, params)
        note[arm, 1] = n

    return Rule(choose, learn, 2, 0, never_settled)


def only_active(note: Any) -> int:
    """The one arm whose note is 0, or -1 if there are more."""
    last = -1
    for k in range(len(note)):
        if note[k, 0] == 0.0:
            if last >= 0:
                return -1
            last = k
    return last


@cache
def elimination_rule(radius: Formula, clock: Formula) -> Rule:
    """Successive elimination: each active arm once per phase, then those that another one dominates are
    dropped.

    note[k, 0] is 1 once arm k is dropped. Dropping is for good, so the test counts the rewards heard and not
    the open pulls; an arm without a reward is neither dropped nor does it drop another.
    """

    def width(k: int, t: float, heard: Any, params: tuple[float, ...]) -> float:
        return radius(heard[k], clock(t - 1.0, *params), *params)  # type: ignore[no-any-return]

    def choose(
        rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: tuple[float, ...]
    ) -> int:
        last = only_active(note)
        if last >= 0:
            return last
        least, most = math.inf, 0.0
        for k in range(len(tried)):
            if note[k, 0] == 0.0:
                least, most = min(least, tried[k]), max(most, tried[k])
        if least == most and most > 0.0:  # a phase ended with the round before
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
