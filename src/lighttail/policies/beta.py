"""The beta law in plain scalar arithmetic: its upper quantile, and draws from it.

Every function here gives the same bits in compiled code and in plain Python. The log-gamma function of the
standard library does not, so this module has its own. Shapes are 1 or more, as in every posterior under the
uniform prior.
"""

from __future__ import annotations

import math
from typing import Any

from lighttail.random.streams import standard_normal, uniform

HALF_LOG_TWO_PI = 0.9189385332046728
NEWTON_STEPS = 60  # steps of Newton's method at most
FRACTION_TERMS = 5000  # terms of a fraction at most; about the square root of the larger shape is needed


def log_gamma(x: float) -> float:
    """ln Gamma(x) for x > 0, with an error of about 1e-13.

    Stirling's series is used from x = 10 on, and x Gamma(x) = Gamma(x + 1) below.
    """
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    square = 1.0 / (x * x)
    series = 1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0)))
    return (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + series / x - math.log(product)


def log_beta(a: float, b: float) -> float:
    """ln B(a, b)."""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def beta_fraction(y: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * y / (a + 1.0))
    value = d
    for m in range(1, FRACTION_TERMS):
        even = m * (b - m) * y / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d = 1.0 / (1.0 + even * d)
        c = 1.0 + even / c
        value *= c * d
        odd = -(a + m) * (a + b + m) * y / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d = 1.0 / (1.0 + odd * d)
        c = 1.0 + odd / c
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def beta_upper_quantile(chance: float, a: float, b: float) -> float:
    """The x with P(Beta(a, b) > x) = chance, for a, b >= 1 and a chance of at most about a half.

    With y = 1 - x the equation is I_y(b, a) = chance. Newton's method solves it for ln I as a function of ln
    y. This function is concave, because the shapes are 1 or more, and I_y(b, a) <= y^b / (b B(b, a)) gives a
    start on the left of the root. So every step stays on the left of the root and comes closer.

    >>> round(beta_upper_quantile(0.05, 3.0, 2.0), 6)
    0.902389
    """
    target, whole = math.log(chance), log_beta(b, a)
    log_y = (target + math.log(b) + whole) / b
    for _ in range(NEWTON_STEPS):
        y = math.exp(log_y)
        fraction = beta_fraction(y, b, a)
        log_share = b * log_y + a * math.log(1.0 - y) - whole + math.log(fraction / b)
        step = (target - log_share) * fraction * (1.0 - y) / b  # d ln I / d ln y = b / ((1 - y) fraction)
        log_y += max(0.0, step)
        if step < 1e-14:
            break
    return 1.0 - math.exp(log_y)


def gamma_draw(rng: Any, shape: float) -> float:
    """One draw of Gamma(shape) for shape >= 1 (Marsaglia & Tsang 2000): d v with v = (1 + c z)^3, if the draw
    is accepted."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        z = standard_normal(rng)
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            if math.log(1.0 - uniform(rng)) < 0.5 * z * z + d - d * v + d * math.log(v):
                return d * v


def beta_draw(rng: Any, a: float, b: float) -> float:
    """One draw of Beta(a, b) for a, b >= 1: G_a / (G_a + G_b) for two independent gamma draws."""
    first = gamma_draw(rng, a)
    return first / (first + gamma_draw(rng, b))
