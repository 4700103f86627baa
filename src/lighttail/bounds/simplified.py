"""The theorems in the paper's variable y, solved for the regret, and the limits for every policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lighttail.bounds.theorems import MOST, checked
from lighttail.checks import fraction, non_negative, number, positive, refuse, whole


@dataclass(frozen=True)
class Simplified:
    """The bound P(regret >= x) <= factor exp(-min(y^2, slope y)) with y = (x - offset)_+ / unit.

    log_factor: the logarithm of the factor, because the factor of UCB-L can be too large for a float.
    """

    offset: float
    unit: float
    slope: float
    log_factor: float
    source: str

    def tail(self, x: float) -> float:
        """The bound on P(regret >= x), at most 1."""
        y = max(0.0, number("x", x) - self.offset) / self.unit
        rate = min(y * y, self.slope * y) if self.slope > 0.0 else 0.0  # kappa / sigma may be rounded to 0
        return math.exp(min(0.0, self.log_factor - rate))

    def regret(self, delta: float) -> float:
        """A bound on the regret that holds with probability at least 1 - delta.

        It is offset + unit max(sqrt L, L / slope) with L = ln(factor / delta). The paper prints it for
        ArmOptimal and eta = 1.
        """
        log_ratio = max(0.0, self.log_factor - math.log(fraction("delta", delta)))
        if log_ratio > 0.0 and self.slope == 0.0:
            return math.inf
        return self.offset + self.unit * max(math.sqrt(log_ratio), log_ratio / self.slope)


def simplified_k_armed(horizon: int, arms: int, sigma: float, kappa: float) -> Simplified:
    """After Thm exp-K-armed: 4 K exp(-min(y^2, y sqrt(eta ln T))),

    y = (x - 2K - 16 K sigma sqrt(max(eta, 1/eta) T ln T))_+ / (8 sigma K sqrt T).

    Corrected: the step before this bound needs 2 K exp(-y^2) (print: K exp(-y^2)). The sum is still below
    4 K.

    >>> round(simplified_k_armed(10_000, 2, 1.0, 1.0).regret(1e-6), 2)
    18095.48
    """
    _, horizon, arms, sigma, kappa = checked(0.0, horizon, arms, sigma, kappa)
    root, width = _scales(horizon, sigma, kappa)
    return Simplified(
        offset=2 * arms + 16 * arms * width * root * math.sqrt(math.log(horizon)),
        unit=8 * sigma * arms * root,
        slope=kappa / sigma * math.sqrt(math.log(horizon)),
        log_factor=math.log(4.0 * arms),
        source="Thm exp-K-armed, in y",
    )


def simplified_k_armed_optimal(
    horizon: int, arms: int, sigma: float, kappa: float, floor: float
) -> Simplified:
    """After Thm exp-K-armed-optimal: 8 K exp(-min(y^2, y sqrt(eta ln T))),

    y = (x - 2K - 32 sigma sqrt(max(eta, 1/eta) K T ln T))_+ / (16 sigma sqrt(K T)), eta = eta_1.

    The paper assumes eta_2 <= eta_1. Here max(eta_1, eta_2, 1/eta_1) replaces max(eta, 1/eta), so that every
    eta_2 is allowed.

    >>> round(simplified_k_armed_optimal(10_000, 2, 1.0, 1.0, 0.0).regret(1e-6), 2)
    26106.02
    """
    _, horizon, arms, sigma, kappa = checked(0.0, horizon, arms, sigma, kappa)
    root, width = _scales(horizon, sigma, kappa)
    width = max(width, non_negative("floor", floor))
    return Simplified(
        offset=2 * arms + 32 * width * root * math.sqrt(arms * math.log(horizon)),
        unit=16 * sigma * math.sqrt(arms) * root,
        slope=kappa / sigma * math.sqrt(math.log(horizon)),
        log_factor=math.log(8.0 * arms),
        source="Thm exp-K-armed-optimal, in y",
    )


def simplified_linear(horizon: int, dim: int, sigma: float, kappa: float) -> Simplified:
    """After Thm linear: 8 d (T/d)^(2d+1) exp(-min(y^2, y sqrt(eta))), for the pseudo regret,

    y = (x - 4 sqrt d - 32 d sqrt(T) ln T - 16 sigma sqrt(max(eta, 1/eta)) d sqrt(d T) ln^2 T)_+
    / (32 sigma sqrt(d T) ln T). The factor is corrected as in `linear`; d >= 2.

    >>> round(simplified_linear(10_000, 2, 1.0, 1.0).regret(1e-6))
    2909299
    """
    dim = whole("dim", dim, 2, ", which the proof needs", MOST)
    _, horizon, _, sigma, kappa = checked(0.0, horizon, 2, sigma, kappa)
    horizon = whole("horizon", horizon, dim, ", the dimension")
    root, width = _scales(horizon, sigma, kappa)
    log, ratio = math.log(horizon), horizon / dim
    return Simplified(
        offset=4 * math.sqrt(dim) + 32 * dim * root * log + 16 * width * dim * math.sqrt(dim) * root * log**2,
        unit=32 * sigma * math.sqrt(dim) * root * log,
        slope=kappa / sigma,
        log_factor=math.log(8.0 * horizon) + max(2 * dim * math.log(ratio), dim / 2 * math.log1p(ratio)),
        source="Thm linear, in y",
    )


def _scales(horizon: int, sigma: float, kappa: float) -> tuple[float, float]:
    """sqrt T and sigma sqrt(max(eta, 1/eta)) = max(kappa, sigma^2 / kappa)."""
    return math.sqrt(horizon), max(kappa, sigma / kappa * sigma)


def best_tail_exponent(alpha: float) -> float:
    """The largest exponent of a tail that is possible with the best order of the mean regret (Thm tightness).

    For 1/2 < alpha <= 1 and 0 < c < 1/2, there are means for which P(regret >= c T^alpha) does not fall
    faster than exp(-T^beta), for any beta above alpha - 1/2. The light-tailed bonuses reach alpha - 1/2 (Thm
    exp-2-armed).

    >>> best_tail_exponent(1.0)
    0.5
    """
    power = number("alpha", alpha)
    if not 0.5 < power <= 1.0:
        raise refuse("alpha", alpha, "above 1/2 and at most 1")
    return power - 0.5


def consistent_tail_exponent(rate: float, sigma: float, true_sigma: float | None = None) -> float:
    """The power of T with which the tail of a consistent policy falls at best (Thm consistent-vs-light-tail).

    Suppose that the mean regret is at most rate ln T for the means (1/2, 0) and noise sigma. Then, for some
    means and every 0 < c < 1/2, P(regret > c T) >= T^-(power + o(1)). The power is 2 rate / sigma^2. If the
    true noise may have any level up to true_sigma > sigma, the power is 4 rate min over s in [sigma,
    true_sigma] of (ln(s / sigma) - 1/2 + (sigma^2 + 1) / (2 s^2)).

    rate: c_pi sigma^2 of the paper. Corrected: if the noise levels differ, the likelihood ratio in the proof
    lacks the factor (sigma / sigma_0)^n, so the stated C_pi sigma^2 / sigma_0^2 does not follow. With the
    factor the minimum is at s^2 = sigma^2 + 1.

    >>> consistent_tail_exponent(rate=2.0, sigma=1.0), round(consistent_tail_exponent(2.0, 1.0, 3.0), 4)
    (4.0, 2.7726)
    """
    rate, sigma = positive("rate", rate), positive("sigma", sigma)
    largest = sigma if true_sigma is None else positive("true_sigma", true_sigma)
    if largest < sigma:
        raise refuse("true_sigma", true_sigma, f"at least sigma, {sigma:g}")
    s = min(largest, math.hypot(sigma, 1.0))
    apart = math.log(s) - math.log(sigma)
    return 4 * (rate * (apart - 0.5 + 0.5 * (sigma / s) ** 2 + 0.5 / s / s))
