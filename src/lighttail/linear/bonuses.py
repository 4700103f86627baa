"""The linear bonus: the number that is added to an action's estimated reward to make the action's index.

A linear bonus is a frozen dataclass with one scalar function of floats,

    radius(z, t, *params),

a static method that is written with + - * / and `math.sqrt`, `math.log`, `math.exp`, `min`, `max`. z = a'
V^-1 a is the width of the action a. Before the first round z is the squared length of a divided by the ridge,
and after n pulls of a it is about 1/n; z may be 0. `params(horizon, dim)` returns the floats after t, by
default the fields of the bonus. A term that depends on the round alone belongs in `clock(t, growth, ridge,
*params)`, which is evaluated once per round; `radius` then receives its value in place of t. growth is ln det
V - ln det V0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar

from lighttail.bonuses import same_time
from lighttail.checks import accept, fraction, non_negative, positive
from lighttail.members import Tuned, check_radii, check_static

SCALED = ("kappa", "beta", "sigma")  # the names of fields that grow with the noise


class LinearBonus(Tuned):
    """The members that every linear bonus has. The module's docstring says how to write a linear bonus."""

    needs_horizon: ClassVar[bool] = False
    light_tailed: ClassVar[bool] = False  # whether a theorem makes a large regret exponentially unlikely
    radius: ClassVar[Callable[..., float]]
    clock: ClassVar[Callable[..., float]] = staticmethod(same_time)

    def __init_subclass__(cls) -> None:
        check_static(cls, ("radius", "clock"))

    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        """The floats that `radius` and `clock` receive as `params`. `horizon` is nan if it is not known."""
        return tuple(float(getattr(self, f.name)) for f in fields(self)) if is_dataclass(self) else ()

    @classmethod
    def in_units_of_noise(cls) -> tuple[str, ...]:
        """The names of the fields that grow with the noise: kappa, beta and sigma."""
        return tuple(f.name for f in fields(cls) if f.name in SCALED) if is_dataclass(cls) else ()

    def check(self, horizon: float, dim: int, ridge: float) -> None:
        """Raise BadInput if the radius is not a finite number for every sampled width z and round t."""
        last = horizon if math.isfinite(horizon) else 1e6

        def radii() -> Iterator[tuple[str, float]]:
            params = self.params(horizon, dim)
            for t in (1.0, min(2.0, last), math.sqrt(last), last):
                clock = self.clock(t, dim * math.log(1.0 + t / (dim * ridge)), ridge, *params)
                for z in (0.0, 1.0 / (1.0 + t), 0.5 / ridge, 1.0 / ridge):
                    yield f"z={z:g}, t={t:g}", float(self.radius(z, clock, *params))

        check_radii(f"the radius of {self!r}", radii())

    def __str__(self) -> str:
        return super().__str__().removeprefix("Linear")


@dataclass(frozen=True)
class LinearLightTailed(LinearBonus):
    """The paper's linear bonus: radius_t(z) = z * kappa * sqrt(t / d) + sqrt(d * z) (eq. rad:linear).

    The chance of a large regret is exponentially small for every kappa > 0 and every level of
    sub-Gaussian noise (Thm linear: d >= 2, V0 = I, actions no longer than 1, no entry of theta above 1).

    kappa: sigma * sqrt(eta) of the paper. t: the round, from 1. d: the dimension. No horizon is needed.

    >>> bonus = LinearLightTailed(kappa=0.2)
    >>> params = bonus.params(horizon=math.nan, dim=4)
    >>> clock = bonus.clock(100.0, 0.0, 1.0, *params)
    >>> round(bonus.radius(0.25, clock, *params), 4)  # 0.25 * 0.2 * 5 + 1
    1.25
    """

    light_tailed = True
    kappa: float

    def __post_init__(self) -> None:
        accept(self, kappa=positive)

    @staticmethod
    def clock(t: float, growth: float, ridge: float, scale: float, dim_root: float) -> float:
        return scale * math.sqrt(t)

    @staticmethod
    def radius(z: float, clock: float, scale: float, dim_root: float) -> float:
        return z * clock + dim_root * math.sqrt(z)

    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        return self.kappa / math.sqrt(dim), math.sqrt(dim)


@dataclass(frozen=True)
class LinearStandard(LinearBonus):
    """The classical linear bonus with a fixed factor: radius(z) = beta * sqrt(z) (LinUCB).

    beta: the assumed standard deviation of the noise, times a factor. No horizon is needed.

    >>> round(LinearStandard(beta=0.8).radius(0.25, 1.0, 0.8), 4)
    0.4
    """

    beta: float

    def __post_init__(self) -> None:
        accept(self, beta=positive)

    @staticmethod
    def radius(z: float, clock: float, beta: float) -> float:
        return beta * math.sqrt(z)


@dataclass(frozen=True)
class Oful(LinearBonus):
    """The log-determinant width of Abbasi-Yadkori, Pal and Szepesvari (2011, Thm 2):

    radius(z) = sqrt(z) * (sigma * sqrt(ln(det V / det V0) + 2 ln(1 / delta)) + sqrt(ridge) * bound).

    sigma: the assumed standard deviation of the noise. bound: an upper bound on the length of theta. delta:
    the chance that the confidence ellipsoid ever misses theta, if sigma and bound are right. No horizon is
    needed.

    >>> bonus = Oful(sigma=1.0, delta=0.05, bound=1.0)
    >>> params = bonus.params(horizon=math.nan, dim=4)
    >>> round(bonus.clock(10.0, 2.0, 1.0, *params), 4)  # sqrt(2 + 2 ln 20) + 1
    3.8269
    """

    sigma: float = 1.0
    delta: float = 0.05
    bound: float = 1.0

    def __post_init__(self) -> None:
        accept(self, sigma=positive, delta=fraction, bound=non_negative)

    @staticmethod
    def clock(t: float, growth: float, ridge: float, sigma: float, doubt: float, bound: float) -> float:
        return sigma * math.sqrt(max(0.0, growth) + doubt) + math.sqrt(ridge) * bound

    @staticmethod
    def radius(z: float, clock: float, sigma: float, doubt: float, bound: float) -> float:
        return clock * math.sqrt(z)

    def params(self, horizon: float, dim: int) -> tuple[float, ...]:
        return self.sigma, 2.0 * math.log(1.0 / self.delta), self.bound
