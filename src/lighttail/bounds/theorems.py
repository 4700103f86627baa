"""The theorems, one function each, in plain numbers; what was wrong in print is said where it is put right.

Symbols: x is the regret, T the horizon, K the arms, sigma the noise's sub-Gaussian parameter, kappa =
sigma sqrt(eta) the policy's, c = kappa sqrt(T ln T). Means are at most 1 apart. Each tail is a tuple of
terms, the noise's first, whose sum bounds P(regret >= x). Where rule is "UCB", the constants are those
that the UCB half of the proof gives; the statement, with the constants of the SE half, holds for both.
The derivations are checked in docs/bounds.md.
"""

from __future__ import annotations

import math
import sys
from typing import Literal

from lighttail.checks import non_negative, number, one_of, positive, whole

Rule = Literal["SE", "UCB"]
Terms = tuple[float, ...]
MOST = 10**100  # of pulls, arms and dimensions: every number made of them is a float


def exp_k_armed(x: float, horizon: int, arms: int, sigma: float, kappa: float, rule: Rule = "SE") -> Terms:
    """Thm exp-K-armed (2), for LightTailed:

    exp(-x^2 / (2 K sigma^2 T)) + 2 K exp(-(x - 2K - 4 K c)_+^2 / (32 sigma^2 K^2 T))
    + K^2 T exp(-x kappa sqrt(ln T) / (8 sigma^2 K sqrt T)).

    UCB: K, K T and 2 sigma^2 in place of 2 K, K^2 T and 8 sigma^2.

    Corrected: the UCB half of the proof prints 32 sigma^2 K T for 32 sigma^2 K^2 T.

    >>> sum(exp_k_armed(2e6, 10**7, 2, 1.0, 0.2)) < 1e-6
    True
    """
    x, horizon, arms, sigma, kappa = _checked(x, horizon, arms, sigma, kappa)
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
    """What the proof of Thm exp-2-armed gives for every eta > 0 before it is rounded (LightTailed, K = 2):

    exp(-x^2 / (8 sigma^2 T)) + 2 exp(-(x - 2 - 4 c)_+^2 / (32 sigma^2 T))
    + T exp(-x kappa sqrt(ln T) / (2 sigma^2 sqrt T)).

    Corrected: the noise term needs 8 sigma^2 (print: 2); 1 - 8c/x is squared over 8 sigma^2 (print: 2),
    so the rounded second term needs 256 sigma^2 (print: 128); T = exp(2 sigma ln T / (2 sigma)) (print:
    sigma ln T); the last display lacks a minus sign. Its 4 exp(-x / (16 sigma sqrt T)) then stands.

    >>> exp_2_armed(2e6, 10**7, 1.0, 0.2)[2] < exp_k_armed(2e6, 10**7, 2, 1.0, 0.2)[2]
    True
    """
    x, horizon, _, sigma, kappa = _checked(x, horizon, 2, sigma, kappa)
    root, log = sigma * math.sqrt(horizon), math.log(horizon)
    excess = max(0.0, x - 2 - 4 * kappa * math.sqrt(horizon * log))
    rate = quotient((x, kappa, math.sqrt(log)), (sigma, sigma, math.sqrt(horizon)))
    return (
        _term(1.0, _square(x / root) / 8),
        _term(2.0, _square(excess / root) / 32),
        _term(horizon, rate / 2),
    )


def exp_k_armed_optimal(
    x: float, horizon: int, arms: int, sigma: float, kappa: float, floor: float, rule: Rule = "SE"
) -> Terms:
    """Thm exp-K-armed-optimal (2), for ArmOptimal; kappa = sigma sqrt(eta_1), floor = sigma sqrt(eta_2):

    exp(-x^2 / (8 K sigma^2 T)) + 4 K exp(-(x - 2K - 8 max(kappa, floor) sqrt(K T ln T))_+^2
    / (128 sigma^2 K T)) + 2 K^2 T exp(-(x - 2K)_+ kappa sqrt(ln T) / (16 sigma^2 sqrt(K T))).

    UCB: 2 K, 2 K T and 4 sigma^2 in place of 4 K, 2 K^2 T and 16 sigma^2.

    >>> sum(exp_k_armed_optimal(2e7, 10**8, 4, 1.0, 0.2, 0.0)) < 1e-6
    True
    """
    x, horizon, arms, sigma, kappa = _checked(x, horizon, arms, sigma, kappa)
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

    Corrected, in the proof alone: 4 sqrt(t_k T) for 8 sqrt(t_k T) in its first displays, and a ln T lost
    from 16 sigma sqrt(2 eta K T ln T) at its end.

    >>> sum(any_time(2e8, 10**9, 2, 1.0, 0.2)) < 1e-6
    True
    """
    x, horizon, arms, sigma, kappa = _checked(x, horizon, arms, sigma, kappa)
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

    Assumes T >= d, |theta|_inf <= 1 and actions in the unit ball. Corrected: it needs d >= 2, since
    the proof takes x (1 - 1/d) >= x/2 and 1 + T/d <= T; and det V <= (1 + T/d)^d (print: (T/d)^d), so
    that (T/d)^(2d) is here max((T/d)^(2d), (1 + T/d)^(d/2)), which differs for T < 1.23 d alone.

    >>> sum(linear(1e9, 10**9, 2, 1.0, 1.0)) < 1e-6
    True
    """
    dim = whole("dim", dim, 2, ", which the proof needs", MOST)
    x, horizon, _, sigma, kappa = _checked(x, horizon, 2, sigma, kappa)
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
    """Lattimore & Szepesvari, Thm 12.1 (1), in the form of its proof's last line, as a tail:

    (K + 1) exp(-(x - a) / b), a = ln K / eta + span (gamma + eta span / 2) T K,
    b = span (1 + (gamma + eta span / 2)) / (2 gamma).

    span: rewards lie in [upper - span, upper]. For span = 1, eta = sqrt(2 ln(K + 1) / (T K)) and gamma =
    eta / 2, x is below the printed sqrt(8 T K ln(K + 1)) + sqrt(T K / (2 ln(K + 1))) ln(1/delta)
    + ln((K + 1) / delta). The book's regret is against the best arm's rewards, ours against its mean: the
    proof gives that too, since its estimator exceeds the mean loss with the same small chance.

    >>> f"{exp3_ix(2000.0, 10_000, 2, 1.0, 0.0105, 0.00525):.3g}"
    '4.98e-08'
    """
    x, horizon, arms = (
        number("x", x),
        whole("horizon", horizon, 1, most=MOST),
        whole("arms", arms, 2, most=MOST),
    )
    span, eta, gamma = positive("span", span), positive("eta", eta), positive("gamma", gamma)
    price = gamma + eta * span / 2  # above is x / b, below is a / b, each of them divided by span (1 + price)
    share = price / (1.0 + price) if price < 1.0 else 1.0 / (1.0 + 1.0 / price)
    below = 2.0 * quotient((gamma, math.log(arms)), (eta, span, min(1.0 + price, sys.float_info.max)))
    below += 2.0 * gamma * share * horizon * arms
    if math.isinf(price) or math.isinf(below):  # far beyond 1, whatever x is
        return _exp(math.inf)
    above = 2.0 * quotient((gamma, x), (span, 1.0 + price))
    return _exp(math.log(arms + 1.0) - above + below)


def mean_k_armed(horizon: int, arms: int, kappa: float, rule: Rule = "SE") -> float:
    """Thm exp-K-armed (1), for kappa >= 2 sigma (eta >= 4): 4 K + 4 K c. UCB: 3 K + 2 K c.

    >>> round(mean_k_armed(10_000, 2, 2.0), 2)
    4863.77
    """
    _, horizon, arms, _, kappa = _checked(0.0, horizon, arms, 1.0, kappa)
    base, slope = (3, 2) if _is_ucb(rule) else (4, 4)
    return base * arms + slope * arms * kappa * math.sqrt(horizon * math.log(horizon))


def mean_2_armed(horizon: int, kappa: float, rule: Rule = "SE") -> float:
    """Thm exp-2-armed (1), for kappa >= 2 sigma: 6 + 4 c. UCB, by the same proof: 5 + 2 c.

    Corrected: P(a mean outside its interval) is at most 4 T^(1 - eta/2) (print: 4 T^(1 - 2 eta)); for
    eta >= 4 its share of the mean is at most 4 all the same.

    >>> round(mean_2_armed(10_000, 2.0), 2)
    2433.88
    """
    _, horizon, _, _, kappa = _checked(0.0, horizon, 2, 1.0, kappa)
    base, slope = (5, 2) if _is_ucb(rule) else (6, 4)
    return base + slope * kappa * math.sqrt(horizon * math.log(horizon))


def mean_k_armed_optimal(horizon: int, arms: int, kappa: float, floor: float, rule: Rule = "SE") -> float:
    """Thm exp-K-armed-optimal (1), for floor >= 2 sigma (eta_2 >= 4):

    4 K + 8 max(kappa, floor) sqrt(K T ln T). UCB: 4 K + 4 max(kappa, floor) sqrt(K T ln T).

    Corrected: the print asks for eta_1 >= 4 too and bounds P(a mean outside its interval) by the
    eta_1 part of the radius, which is not the larger one once n > T/K; the eta_2 part does it alone.

    >>> round(mean_k_armed_optimal(10_000, 2, 2.0, 2.0), 2)
    6875.09
    """
    _, horizon, arms, _, kappa = _checked(0.0, horizon, arms, 1.0, kappa)
    widest, slope = max(kappa, non_negative("floor", floor)), 4 if _is_ucb(rule) else 8
    return 4 * arms + slope * widest * math.sqrt(arms * horizon * math.log(horizon))


def _checked(
    x: float, horizon: int, arms: int, sigma: float, kappa: float
) -> tuple[float, int, int, float, float]:
    """All five as plain numbers; a negative x bounds nothing and counts as 0."""
    arms = whole("arms", arms, 2, most=MOST)
    horizon = whole("horizon", horizon, max(3, arms), most=MOST)
    return max(0.0, number("x", x)), horizon, arms, positive("sigma", sigma), positive("kappa", kappa)


def _is_ucb(rule: Rule) -> bool:
    return one_of("rule", rule, ("SE", "UCB")) == "UCB"


def _later(x: float, horizon: int, arms: int, sigma: float, kappa: float) -> float:
    """(x - 2K)_+ kappa sqrt(ln T) / (sigma^2 sqrt(K T)), of the arm-optimal and the any-time theorem."""
    above = (max(0.0, x - 2 * arms), kappa, math.sqrt(math.log(horizon)))
    return quotient(above, (sigma, sigma, math.sqrt(arms * horizon)))


def quotient(above: tuple[float, ...], below: tuple[float, ...]) -> float:
    """The product of the finite numbers above over that of those below, which are positive.

    Nothing on the way overflows or vanishes: 0 over something tiny is 0, and never 0 times infinity.

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
    return value * value  # value**2 raises where this is infinite


def _exp(power: float) -> float:
    return math.exp(min(power, 700.0))  # far above 1: it says nothing, and must not overflow


def _term(factor: float, rate: float) -> float:
    return _exp(math.log(factor) - rate)
