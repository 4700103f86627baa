"""The theorems in the paper's variable y, solved for the regret; and what no policy can do better."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lighttail.bounds.theorems import MOST
from lighttail.checks import fraction, non_negative, number, positive, refuse, whole


@dataclass(frozen=True)
class Simplified:
    """P(regret >= x) <= factor exp(-min(y^2, slope y)) with y = (x - offset)_+ / unit.

    log_factor: the logarithm of the factor, which for UCB-L can be larger than any float.
    """

    offset: float
    unit: float
    slope: float
    log_factor: float
    source: str

    def tail(self, x: float) -> float:
        """The bound on P(regret >= x), at most 1."""
        y = max(0.0, number("x", x) - self.offset) / self.unit
        rate = min(y * y, self.slope * y) if self.slope > 0.0 else 0.0  # a ratio too small for a float is 0
        return math.exp(min(0.0, self.log_factor - rate))

    def regret(self, delta: float) -> float:
        """With probability at least 1 - delta the regret is below offset + unit max(sqrt L, L / slope),

        L = ln(factor / delta). The paper prints it for ArmOptimal and eta = 1.
        """
        level = max(0.0, self.log_factor - math.log(fraction("delta", delta)))
        if level > 0.0 and self.slope == 0.0:
            return math.inf
        return self.offset + self.unit * max(math.sqrt(level), level / self.slope)


def simplified_k_armed(horizon: int, arms: int, sigma: float, kappa: float) -> Simplified:
    """After Thm exp-K-armed: 4 K exp(-min(y^2, y sqrt(eta ln T))),

    y = (x - 2K - 16 K sigma sqrt(max(eta, 1/eta) T ln T))_+ / (8 sigma K sqrt T).

    Corrected, in the step before: 2 K exp(-y^2) for K exp(-y^2). The sum is below 4 K all the same.

    >>> round(simplified_k_armed(10_000, 2, 1.0, 1.0).regret(1e-6), 2)
    18095.48
    """
    horizon, arms, sigma, kappa = _checked(horizon, arms, sigma, kappa)
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

    The paper takes eta_2 <= eta_1; max(eta_1, eta_2, 1/eta_1) in its place allows every eta_2.

    >>> round(simplified_k_armed_optimal(10_000, 2, 1.0, 1.0, 0.0).regret(1e-6), 2)
    26106.02
    """
    horizon, arms, sigma, kappa = _checked(horizon, arms, sigma, kappa)
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
    horizon, _, sigma, kappa = _checked(horizon, 2, sigma, kappa)
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


def _checked(horizon: int, arms: int, sigma: float, kappa: float) -> tuple[int, int, float, float]:
    arms = whole("arms", arms, 2, most=MOST)
    horizon = whole("horizon", horizon, max(3, arms), most=MOST)
    return horizon, arms, positive("sigma", sigma), positive("kappa", kappa)


def _scales(horizon: int, sigma: float, kappa: float) -> tuple[float, float]:
    """sqrt T and sigma sqrt(max(eta, 1/eta)) = max(kappa, sigma^2 / kappa)."""
    return math.sqrt(horizon), max(kappa, sigma / kappa * sigma)


def best_tail_exponent(alpha: float) -> float:
    """Thm tightness: with the best order of the mean regret, P(regret >= c T^alpha), 0 < c < 1/2, falls
    for some means no faster than exp(-T^beta) for any beta above this: alpha - 1/2, for 1/2 < alpha <= 1.

    The light-tailed bonuses reach it (Thm exp-2-armed).

    >>> best_tail_exponent(1.0)
    0.5
    """
    power = number("alpha", alpha)
    if not 0.5 < power <= 1.0:
        raise refuse("alpha", alpha, "above 1/2 and at most 1")
    return power - 0.5


def consistent_tail_exponent(rate: float, sigma: float, true_sigma: float | None = None) -> float:
    """Thm consistent-vs-light-tail: a policy with a mean regret of at most rate ln T on the means
    (1/2, 0) with noise sigma has, for some means, P(regret > c T) >= T^-(this + o(1)), 0 < c < 1/2:

    2 rate / sigma^2; and where the true noise may have any level up to true_sigma > sigma,
    4 rate min over s in [sigma, true_sigma] of (ln(s / sigma) - 1/2 + (sigma^2 + 1) / (2 s^2)).

    rate: c_pi sigma^2 of the paper. Corrected: where the noise levels differ, the likelihood ratio in the
    proof lacks the factor (sigma / sigma_0)^n; the stated C_pi sigma^2 / sigma_0^2 does not follow from
    it. With the factor the least is at s^2 = sigma^2 + 1.

    >>> consistent_tail_exponent(rate=2.0, sigma=1.0), round(consistent_tail_exponent(2.0, 1.0, 3.0), 4)
    (4.0, 2.7726)
    """
    rate, sigma = positive("rate", rate), positive("sigma", sigma)
    level = sigma if true_sigma is None else positive("true_sigma", true_sigma)
    if level < sigma:
        raise refuse("true_sigma", true_sigma, f"at least sigma, {sigma:g}")
    s = min(level, math.hypot(sigma, 1.0))
    apart = math.log(s) - math.log(sigma)
    return 4 * (rate * (apart - 0.5 + 0.5 * (sigma / s) ** 2 + 0.5 / s / s))
