"""Binomial and hypergeometric counts from uniform numbers, at a cost that does not grow with n.

Both laws are the laws of independent Poisson counts, in two or four cells, given fixed totals. Let e be the
expected and x the observed count of a cell. Then ln P(x) = constant - sum over the cells of s(x, e), with
s(x, e) = ln x! - x ln e + e. A binomial count has two cells, and a hypergeometric count has four. `surprise`
computes s without cancellation (Loader 2000), so that a probability is right to about 14 digits for every n.

A small number of trials is drawn one by one. A large number is drawn by the ratio of uniforms (Stadlober
1989): with a = mean + 1/2 and width w = 2 sqrt(2/e) sqrt(variance + 1/2) + 3 - 2 sqrt(3/e), take x = a + w (V
- 1/2) / U and accept the whole part of x if U^2 <= P(x) / P(mode). The method is exact if the rectangle
contains the whole region of acceptance; a test checks this.
"""

from __future__ import annotations

import math
from typing import Any

from lighttail.random.streams import uniform

FEW = 12.0  # trials: up to this number they are drawn one by one
SMALL = 16.0  # the count from which Stirling's series replaces the exact factorial
STRETCH = 2.0 * math.sqrt(2.0 / math.e)
MARGIN = 3.0 - 2.0 * math.sqrt(3.0 / math.e)
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def deviance(x: float, expected: float) -> float:
    """x ln(x / e) + e - x for x > 0, by a series where x is near e (Loader 2000)."""
    difference = x - expected
    if abs(difference) >= 0.1 * (x + expected):
        return x * math.log(x / expected) - difference
    ratio = difference / (x + expected)
    value = difference * ratio
    power = 2.0 * x * ratio
    ratio *= ratio
    odd = 1.0
    while True:
        power *= ratio
        odd += 2.0
        following = value + power / odd
        if following == value:
            return value
        value = following


def surprise(x: float, expected: float) -> float:
    """ln x! - x ln e + e: minus the logarithm of the Poisson probability of x with expectation e."""
    if x == 0.0:
        return expected
    if x < SMALL:
        return math.lgamma(x + 1.0) - x * math.log(expected) + expected
    square = 1.0 / (x * x)
    stirling = (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x
    return deviance(x, expected) + 0.5 * math.log(x) + HALF_LOG_TWO_PI + stirling


def binomial(rng: Any, n: float, p: float) -> float:
    """The number of successes in n trials that each succeed with probability p."""
    if p <= 0.0 or p >= 1.0:
        return n if p >= 1.0 else 0.0
    if n <= FEW:
        count = 0.0
        for _ in range(int(n)):
            count += 1.0 if uniform(rng) < p else 0.0
        return count
    mean, rest = n * p, n * (1.0 - p)
    width = STRETCH * math.sqrt(mean * (1.0 - p) + 0.5) + MARGIN
    x = float(math.floor((n + 1.0) * p))  # the mode
    least = surprise(x, mean) + surprise(n - x, rest)
    while True:
        u = 1.0 - uniform(rng)
        x = mean + 0.5 + width * (uniform(rng) - 0.5) / u
        if 0.0 <= x < n + 1.0:
            x = float(math.floor(x))
            if 2.0 * math.log(u) <= least - surprise(x, mean) - surprise(n - x, rest):
                return x


def hypergeometric(rng: Any, drawn: float, left: float, good: float) -> float:
    """The number of good balls among `drawn` balls from an urn of drawn + left balls, of which `good` are
    good."""
    balls = drawn + left
    if drawn <= FEW:
        count = 0.0
        for i in range(int(drawn)):
            count += 1.0 if uniform(rng) * (balls - i) < good - count else 0.0
        return count
    low, high = max(0.0, good - left), min(drawn, good)
    if low == high:
        return low
    bad = balls - good
    a, b, c, d = good * (drawn / balls), bad * (drawn / balls), good * (left / balls), bad * (left / balls)
    width = STRETCH * math.sqrt(a * (bad / balls) * (left / (balls - 1.0)) + 0.5) + MARGIN
    x = float(math.floor((drawn + 1.0) * ((good + 1.0) / (balls + 2.0))))  # the mode
    x = min(max(x, low), high)
    least = surprise(x, a) + surprise(drawn - x, b) + surprise(good - x, c) + surprise(left - good + x, d)
    while True:
        u = 1.0 - uniform(rng)
        x = a + 0.5 + width * (uniform(rng) - 0.5) / u
        if low <= x < high + 1.0:
            x = float(math.floor(x))
            more = (
                surprise(x, a) + surprise(drawn - x, b) + surprise(good - x, c) + surprise(left - good + x, d)
            )
            if 2.0 * math.log(u) <= least - more:
                return x
