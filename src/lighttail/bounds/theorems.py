"""The theorems, one function each, in plain numbers. "Corrected:" marks what differs from the print.

Symbols: x is the regret, T the horizon, K the number of arms, sigma the sub-Gaussian parameter of the noise,
kappa = sigma sqrt(eta) the parameter of the policy, and c = kappa sqrt(T ln T). Means are at most 1 apart.
Each tail is a tuple of terms whose sum bounds P(regret >= x); the first term is for the noise. If rule is
"UCB", the constants are those of the UCB half of the proof. The printed statement has the constants of the SE
half, which hold for both rules. docs/bounds.md checks the derivations.
"""

from __future__ import annotations

import math
import sys
from typing import Literal

from lighttail.checks import non_negative, number, one_of, positive, whole

RuleName = Literal["SE", "UCB"]
Terms = tuple[float, ...]
MOST = 10**100  # pulls, arms or dimensions: with larger numbers a formula would overflow


def exp_k_armed(
    x: float, horizon: int, arms: int, sigma: float, kappa: float, rule: RuleName = "SE"
) -> Terms:
    """Thm exp-K-armed (2), for LightTailed:

    exp(-x^2 / (2 K sigma^2 T)) + 2 K exp(-(x - 2K - 4 K c)_+^2 / (32 sigma^2 K^2 T))
    + K^2 T exp(-x kappa sqrt(ln T) / (8 sigma^2 K sqrt T)).

    UCB: K, K T and 2 sigma^2 in place of 2 K, K^2 T and 8 sigma^2.

    Corrected: the UCB half of the proof prints 32 sigma^2 K T for 32 sigma^2 K^2 T.

    >>> sum(exp_k_armed(2e6, 10**7, 2, 1.0, 0.2)) < 1e-6
    True
    """
    x, horizon, arms, sigma, kappa = checked(x, horizon, arms, sigma, kappa)
    ucb, log = _is_ucb(rule), math.log(horizon)
    root = sigma * math.sqrt(horizon)
    excess = max(0.0, x - 2 * arms - 4 * arms * kappa * math.sqrt(horizon * log))
    rate = quotient((x, kappa, math.sqrt(log)), (arms, sigma, sigma, math.sqrt(horizon)))
    return (
        _term(1.0, _square(x / root) / (2 * arms)),
        _term(arms * (1 if ucb else 2), _square(excess / (arms * root)) / 32),
        _term(arms * horizon * (1 if ucb else arms), rate / (2 if ucb else 8)),
    )


def exp_2_armed(x: float, horizon: int, sigma: float, kappa: float) -> Terms:
    """Thm exp-2-armed (LightTailed, K = 2), as its proof gives it for every eta > 0 before rounding:

    exp(-x^2 / (8 sigma^2 T)) + 2 exp(-(x - 2 - 4 c)_+^2 / (32 sigma^2 T))
    + T exp(-x kappa sqrt(ln T) / (2 sigma^2 sqrt T)).

    Corrected: the noise term needs 8 sigma^2 (print: 2). 1 - 8c/x is squared over 8 sigma^2 (print: 2), so
    the rounded second term needs 256 sigma^2 (print: 128). T = exp(2 sigma ln T / (2 sigma)) (print: sigma
    ln T). The last display lacks a minus sign; its 4 exp(-x / (16 sigma sqrt T)) is then right.

    >>> exp_2_armed(2e6, 10**7, 1.0, 0.2)[2] < exp_k_armed(2e6, 10**7, 2, 1.0, 0.2)[2]
    True
    """
    x, horizon, _, sigma, kappa = checked(x, horizon, 2, sigma, kappa)
    root, log = sigma * math.sqrt(horizon), math.log(horizon)
    excess = max(0.0, x - 2 - 4 * kappa * math.sqrt(horizon * log))
    rate = quotient((x, kappa, math.sqrt(log)), (sigma, sigma, math.sqrt(horizon)))
    return (
        _term(1.0, _square(x / root) / 8),
        _term(2.0, _square(excess / root) / 32),
        _term(horizon, rate / 2),
    )


def exp_k_armed_optimal(
    x: float, horizon: int, arms: int, sigma: float, kappa: float, floor: float, rule: RuleName = "SE"
) -> Terms:
    """Thm exp-K-armed-optimal (2), for ArmOptimal; kappa = sigma sqrt(eta_1), floor = sigma sqrt(eta_2):

    exp(-x^2 / (8 K sigma^2 T)) + 4 K exp(-(x - 2K - 8 max(kappa, floor) sqrt(K T ln T))_+^2
    / (128 sigma^2 K T)) + 2 K^2 T exp(-(x - 2K)_+ kappa sqrt(ln T) / (16 sigma^2 sqrt(K T))).

    UCB: 2 K, 2 K T and 4 sigma^2 in place of 4 K, 2 K^2 T and 16 sigma^2.

    >>> sum(exp_k_armed_optimal(2e7, 10**8, 4, 1.0, 0.2, 0.0)) < 1e-6
    True
    """
    x, horizon, arms, sigma, kappa = checked(x, horizon, arms, sigma, kappa)
    widest, ucb = max(kappa, non_negative("floor", floor)), _is_ucb(rule)
    root, log = sigma * math.sqrt(arms * horizon), math.log(horizon)
    excess = max(0.0, x - 2 * arms - 8 * widest * math.sqrt(arms * horizon * log))
    rate = _later(x, horizon, arms, sigma, kappa)
    return (
        _term(1.0, _square(x / root) / 8),
        _term(arms * (2 if ucb else 4), _square(excess / root) / 128),
        _term(2 * arms * horizon * (1 if ucb else arms), rate / (4 if ucb else 16)),
    )


def any_time(x: float, horizon: int, arms: int, sigma: float, kappa: float) -> Terms:
    """Thm any-time, for UCB with AnyTime:

    exp(-x^2 / (8 K sigma^2 T)) + 2 K T^2 exp(-(x - 2K - 16 kappa sqrt(2 K T ln T))_+^2 / (512 sigma^2 K T))
    + 2 K T^3 exp(-(x - 2K)_+ kappa sqrt(ln T) / (16 sigma^2 sqrt(K T))).

    Corrected, in the proof alone: its first displays need 4 sqrt(t_k T) (print: 8 sqrt(t_k T)), and its end
    needs 16 sigma sqrt(2 eta K T ln T) (the print lacks ln T).

    >>> sum(any_time(2e8, 10**9, 2, 1.0, 0.2)) < 1e-6
    True
    """
    x, horizon, arms, sigma, kappa = checked(x, horizon, arms, sigma, kappa)
    root, log = sigma * math.sqrt(arms * horizon), math.log(horizon)
    excess = max(0.0, x - 2 * arms - 16 * kappa * math.sqrt(2 * arms * horizon * log))
    return (
        _term(1.0, _square(x / root) / 8),
        _term(2 * arms * horizon**2, _square(excess / root) / 512),
        _term(2 * arms * horizon**3, _later(x, horizon, arms, sigma, kappa) / 16),
    )


def linear(x: float, horizon: int, dim: int, sigma: float, kappa: float) -> Terms:
    """Thm linear, for UCB-L with radius z kappa sqrt(t / d) + sqrt(d z), z = a' V^-1 a, d = dim >= 2:

    exp(-x^2 / (2 sigma^2 d^2 T))
    + 2 d (T/d)^(2d+1) exp(-(x - 4 sqrt d - 32 d sqrt(T) ln T - 16 kappa sqrt(d T) ln T)_+^2
      / (512 sigma^2 d T ln^2 T))
    + 2 d (T/d)^(2d+1) exp(-(x - 4 sqrt d)_+ kappa / (8 sigma^2 sqrt(d T) ln T)).

    The theorem assumes T >= d, |theta|_inf <= 1 and actions in the unit ball. Corrected: d >= 2 is needed,
    because the proof uses x (1 - 1/d) >= x/2 and 1 + T/d <= T. And det V <= (1 + T/d)^d (print: (T/d)^d),
    so that (T/d)^(2d) becomes max((T/d)^(2d), (1 + T/d)^(d/2)), which differs only for T < 1.23 d.

    >>> sum(linear(1e9, 10**9, 2, 1.0, 1.0)) < 1e-6
    True
    """
    dim = whole("dim", dim, 2, ", which the proof needs", MOST)
    x, horizon, _, sigma, kappa = checked(x, horizon, 2, sigma, kappa)
    horizon, log = whole("horizon", horizon, dim, ", the dimension"), math.log(horizon)
    scale = math.sqrt(dim * horizon) * log
    early = 32 * dim * math.sqrt(horizon) * log + 16 * kappa * math.sqrt(dim * horizon) * log
    above = max(0.0, x - 4 * math.sqrt(dim))
    ratio = horizon / dim
    volume = max(2 * dim * math.log(ratio), dim / 2 * math.log1p(ratio)) + math.log(2.0 * horizon)
    return (
        _term(1.0, _square(x / (dim * sigma * math.sqrt(horizon))) / 2),
        _exp(volume - _square(max(0.0, above - early) / (sigma * scale)) / 512),
        _exp(volume - quotient((above, kappa), (sigma, sigma, scale, 8.0))),
    )


def exp3_ix(x: float, horizon: int, arms: int, span: float, eta: float, gamma: float) -> float:
    """Lattimore & Szepesvari, Thm 12.1 (1), in the form of the last line of its proof, as a tail:

    (K + 1) exp(-(x - a) / b), a = ln K / eta + span (gamma + eta span / 2) T K,
    b = span (1 + (gamma + eta span / 2)) / (2 gamma).

    span: the rewards lie in [upper - span, upper]. For span = 1, eta = sqrt(2 ln(K + 1) / (T K)) and
    gamma = eta / 2, x is below the printed sqrt(8 T K ln(K + 1)) + sqrt(T K / (2 ln(K + 1))) ln(1/delta)
    + ln((K + 1) / delta). The book measures the regret against the rewards of the best arm, and lighttail
    measures it against the mean of the best arm. The proof covers both, because its estimator exceeds the
    mean loss with the same small chance.

    >>> f"{exp3_ix(2000.0, 10_000, 2, 1.0, 0.0105, 0.00525):.3g}"
    '4.98e-08'
    """
    x, horizon = number("x", x), whole("horizon", horizon, 1, most=MOST)
    arms = whole("arms", arms, 2, most=MOST)
    span, eta, gamma = positive("span", span), positive("eta", eta), positive("gamma", gamma)
    price = gamma + eta * span / 2  # `above` is x / b and `below` is a / b
    share = price / (1.0 + price) if price < 1.0 else 1.0 / (1.0 + 1.0 / price)
    below = 2.0 * quotient((gamma, math.log(arms)), (eta, span, min(1.0 + price, sys.float_info.max)))
    below += 2.0 * gamma * share * horizon * arms
    if math.isinf(price) or math.isinf(below):  # the bound is far above 1 for every x
        return _exp(math.inf)
    above = 2.0 * quotient((gamma, x), (span, 1.0 + price))
    return _exp(math.log(arms + 1.0) - above + below)


def mean_k_armed(horizon: int, arms: int, kappa: float, rule: RuleName = "SE") -> float:
    """Thm exp-K-armed (1), for kappa >= 2 sigma (eta >= 4): 4 K + 4 K c. UCB: 3 K + 2 K c.

    >>> round(mean_k_armed(10_000, 2, 2.0), 2)
    4863.77
    """
    _, horizon, arms, _, kappa = checked(0.0, horizon, arms, 1.0, kappa)
    base, slope = (3, 2) if _is_ucb(rule) else (4, 4)
    return base * arms + slope * arms * kappa * math.sqrt(horizon * math.log(horizon))


def mean_2_armed(horizon: int, kappa: float, rule: RuleName = "SE") -> float:
    """Thm exp-2-armed (1), for kappa >= 2 sigma: 6 + 4 c. UCB, by the same proof: 5 + 2 c.

    Corrected: P(a mean is outside its interval) is at most 4 T^(1 - eta/2) (print: 4 T^(1 - 2 eta)). For
    eta >= 4 its contribution to the mean is still at most 4.

    >>> round(mean_2_armed(10_000, 2.0), 2)
    2433.88
    """
    _, horizon, _, _, kappa = checked(0.0, horizon, 2, 1.0, kappa)
    base, slope = (5, 2) if _is_ucb(rule) else (6, 4)
    return base + slope * kappa * math.sqrt(horizon * math.log(horizon))


def mean_k_armed_optimal(horizon: int, arms: int, kappa: float, floor: float, rule: RuleName = "SE") -> float:
    """Thm exp-K-armed-optimal (1), for floor >= 2 sigma (eta_2 >= 4):

    4 K + 8 max(kappa, floor) sqrt(K T ln T). UCB: 4 K + 4 max(kappa, floor) sqrt(K T ln T).

    Corrected: the print also assumes eta_1 >= 4 and bounds P(a mean is outside its interval) by the eta_1
    part of the radius, which is not the larger part for n > T/K. The eta_2 part alone is enough.

    >>> round(mean_k_armed_optimal(10_000, 2, 2.0, 2.0), 2)
    6875.09
    """
    _, horizon, arms, _, kappa = checked(0.0, horizon, arms, 1.0, kappa)
    widest, slope = max(kappa, non_negative("floor", floor)), 4 if _is_ucb(rule) else 8
    return 4 * arms + slope * widest * math.sqrt(arms * horizon * math.log(horizon))


def checked(
    x: float, horizon: int, arms: int, sigma: float, kappa: float
) -> tuple[float, int, int, float, float]:
    """All five arguments as plain numbers. A negative x counts as 0."""
    arms = whole("arms", arms, 2, most=MOST)
    horizon = whole("horizon", horizon, max(3, arms), most=MOST)
    return max(0.0, number("x", x)), horizon, arms, positive("sigma", sigma), positive("kappa", kappa)


def _is_ucb(rule: RuleName) -> bool:
    return one_of("rule", rule, ("SE", "UCB")) == "UCB"


def _later(x: float, horizon: int, arms: int, sigma: float, kappa: float) -> float:
    """(x - 2K)_+ kappa sqrt(ln T) / (sigma^2 sqrt(K T)), as in the arm-optimal and the any-time theorem."""
    above = (max(0.0, x - 2 * arms), kappa, math.sqrt(math.log(horizon)))
    return quotient(above, (sigma, sigma, math.sqrt(arms * horizon)))


def quotient(above: tuple[float, ...], below: tuple[float, ...]) -> float:
    """The product of the numbers in `above`, which are finite, divided by the product of the numbers in
    `below`, which are positive.

    No intermediate result overflows or is rounded to 0.

    >>> quotient((1e300, 1e300), (1e300, 1e299)), quotient((0.0, 1.0), (5e-324, 5e-324))
    (10.0, 0.0)
    """
    share, power = 1.0, 0
    for value in above:
        part, twos = math.frexp(value)
        share, power = share * part, power + twos
    for value in below:
        part, twos = math.frexp(value)
        share, power = share / part, power - twos
    try:
        return math.ldexp(share, power)
    except OverflowError:
        return math.copysign(math.inf, share)


def _square(value: float) -> float:
    return value * value  # value**2 raises an error if the result is infinite


def _exp(power: float) -> float:
    return math.exp(min(power, 700.0))  # a larger bound would tell us nothing more, and it would overflow


def _term(factor: float, rate: float) -> float:
    return _exp(math.log(factor) - rate)
