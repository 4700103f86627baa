"""The bonus: the number that is added to an arm's mean to make the arm's index.

The paper's policies differ from the classical ones in the bonus alone.

A bonus is a frozen dataclass with two members:

- `radius(n, clock, *params)` is a static method, a pure scalar function of floats. It returns the bonus
  after `n` pulls of the arm. Plain Python runs the function online, and numba compiles it for simulation, so
  write it with + - * / and `math.sqrt`, `math.log`, `math.exp`, `min`, `max`.
- `params(horizon, arms)` computes the floats that stay the same during an experiment.

A radius that changes with the round t reads its second argument. A term that depends on t alone belongs in
`clock(t, *params)`, which is evaluated once per round and not once per arm. By default the clock shows t.

A bonus may declare `concave = True`. The author then states that n * radius(n) is concave in n and that the
radius never falls with time, and `simulate` may skip ahead (docs/skip-ahead.md). If n * radius(n) has one
bend upwards, as the maximum of two concave bonuses has, `bend(*params)` returns the n of that bend.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import ClassVar

from lighttail.checks import BadInput, accept, non_negative, positive, refuse
from lighttail.members import FAILURES, Tuned, check_radii, check_static, check_takes, reads


def same_time(t: float, *params: float) -> float:
    """The default clock: the round t itself."""
    return t


def nowhere(*params: float) -> float:
    """The default bend: infinity, because n * radius(n) has no bend."""
    return math.inf


class Bonus(Tuned):
    """The members that every bonus has. The module's docstring says how to write a bonus."""

    needs_horizon: ClassVar[bool] = True
    light_tailed: ClassVar[bool] = False  # whether a theorem makes a large regret exponentially unlikely
    concave: ClassVar[bool] = False  # whether n * radius(n) is concave in n; `simulate` may then skip ahead
    unscaled: ClassVar[tuple[str, ...]] = ()  # fields that do not grow with the noise, such as exponents
    radius: ClassVar[Callable[..., float]]
    clock: ClassVar[Callable[..., float]] = staticmethod(same_time)
    bend: ClassVar[Callable[..., float]] = staticmethod(nowhere)

    @abstractmethod
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        """The floats that `radius` and `clock` receive as `params`. `horizon` is nan if it is not known."""

    @classmethod
    def in_units_of_noise(cls) -> tuple[str, ...]:
        """The names of the fields that grow with the noise: all fields but those in `unscaled`."""
        return tuple(f.name for f in fields(cls) if f.name not in cls.unscaled)  # type: ignore[arg-type]

    def __init_subclass__(cls) -> None:
        check_static(cls, ("radius", "clock", "bend"))

    def sample(self, horizon: float, arms: int) -> Iterator[tuple[float, float, float]]:
        """(n, t, radius) over the range of an experiment: all small n and t, and a few of the large ones."""
        params = self.params(horizon, arms)
        last = int(horizon) if math.isfinite(horizon) else 1_000_000
        steps = sorted({min(last, round(1.3**k)) for k in range(math.ceil(math.log(last, 1.3)) + 1)})
        for t in sorted({1, min(2, last), min(3, last), *steps[::6], last}):
            clock = self.clock(float(t), *params)
            for n in (n for n in sorted({*range(1, 33), *steps}) if n <= last):
                yield float(n), float(t), float(self.radius(float(n), clock, *params))

    def check(self, horizon: float, arms: int) -> None:
        """Raise BadInput if the radius is not a finite number for every sampled n and t."""
        params, name = len(self.params(horizon, arms)), type(self).__name__
        check_takes(f"clock of {name}", type(self).clock, "t, *params", 1 + params)
        check_takes(f"radius of {name}", type(self).radius, "n, clock, *params", 2 + params)
        radii = ((f"n={n:g}, t={t:g}", radius) for n, t, radius in self.sample(horizon, arms))
        check_radii(f"the radius of {self!r}", radii)

    def finite_radius(self, n: float, clock: float, params: tuple[float, ...]) -> float:
        """The radius in plain Python. Raises BadInput unless it is a finite number: `check` tries some n."""
        try:
            radius: float | str = float(self.radius(n, clock, *params))
        except FAILURES as error:
            radius = str(error)
        if isinstance(radius, str) or not math.isfinite(radius):
            raise refuse(f"the radius of {self!r} at n={n:g}", radius, "a finite number")
        return radius

    def check_concave(self, horizon: float, arms: int) -> None:
        """Raise BadInput if the bonus declares `concave = True` and n * radius(n) is not concave in n, or if
        the radius falls with time."""
        bend = self.bend(*self.params(horizon, arms))
        lines: dict[float, list[tuple[float, float]]] = {}  # t -> (n, n * radius)
        for n, t, radius in self.sample(horizon, arms):
            lines.setdefault(t, []).append((n, n * radius))
        slack = 1e-9 * max(abs(value) for line in lines.values() for _, value in line)
        least = dict.fromkeys((n for n, _ in lines[1.0]), -math.inf)  # n -> n * radius at earlier times
        for t, line in lines.items():
            for n, value in line:
                if value < least[n] - slack:
                    raise self._not_concave("radius", n, t, value / n, least[n] / n)
                least[n] = value
            for (a, at_a), (b, at_b), (c, at_c) in zip(line, line[1:], line[2:], strict=False):
                chord = at_a + (at_c - at_a) * (b - a) / (c - a)
                if at_b < chord - slack and not a <= bend < c:
                    raise self._not_concave("n * radius", b, t, at_b, chord)

    def _not_concave(self, name: str, n: float, t: float, value: float, least: float) -> BadInput:
        allowed = f"at least {least} for a bonus that declares concave = True"
        return refuse(f"{name} of {self!r} at n={n:g}, t={t:g}", value, allowed)

    @classmethod
    def changes_with_time(cls) -> bool:
        """Whether the radius depends on the clock: whether the code of `radius` uses that argument."""
        check_takes(f"radius of {cls.__name__}", cls.radius, "n, clock, *params")
        return reads(cls.radius, 1)


@dataclass(frozen=True)
class _KappaBonus(Bonus):
    """A bonus with the one number `kappa`, which is above 0."""

    kappa: float

    def __post_init__(self) -> None:
        accept(self, kappa=positive)


@dataclass(frozen=True)
class Standard(_KappaBonus):
    """The classical bonus: radius(n) = kappa * sqrt(ln T / n) (eq. rad:standard).

    The regret of a policy with this bonus has a heavy tail: the chance of a linear regret falls only
    polynomially in T.

    kappa: sigma * sqrt(eta) of the paper. T: the horizon, which must be known.

    >>> bonus = Standard(kappa=0.8)
    >>> round(bonus.radius(4.0, 1.0, *bonus.params(horizon=500, arms=2)), 4)
    0.9972
    """

    concave = True

    @staticmethod
    def radius(n: float, clock: float, scale: float) -> float:
        return scale / math.sqrt(n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa * math.sqrt(math.log(horizon)),)


@dataclass(frozen=True)
class LightTailed(_KappaBonus):
    """The paper's bonus: radius(n) = kappa * sqrt(T ln T) / n (eq. rad:new).

    The chance of a large regret is exponentially small for every kappa > 0 and every level of
    sub-Gaussian noise.

    kappa: sigma * sqrt(eta) of the paper. T: the horizon, which must be known.

    >>> bonus = LightTailed(kappa=0.2)
    >>> round(bonus.radius(4.0, 1.0, *bonus.params(horizon=500, arms=2)), 4)
    2.7872
    """

    light_tailed = True
    concave = True

    @staticmethod
    def radius(n: float, clock: float, scale: float) -> float:
        return scale / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa * math.sqrt(horizon * math.log(horizon)),)


@dataclass(frozen=True)
class ArmOptimal(Bonus):
    """A light-tailed bonus whose regret also has the best order in the number of arms K (eq. rad:optimal):

    radius(n) = sqrt(ln T / n) * max(kappa * sqrt(T / (n K)), floor).

    kappa: sigma * sqrt(eta_1) of the paper. floor: sigma * sqrt(eta_2) of the paper, 0 or more.
    T: the horizon, which must be known. K: the number of arms.

    >>> bonus = ArmOptimal(kappa=0.4, floor=0.4)
    >>> round(bonus.radius(4.0, 1.0, *bonus.params(horizon=500, arms=4)), 4)
    2.7872
    """

    light_tailed = True
    concave = True
    kappa: float
    floor: float

    def __post_init__(self) -> None:
        accept(self, kappa=positive, floor=non_negative)

    @staticmethod
    def radius(n: float, clock: float, log_root: float, scale: float, floor: float) -> float:
        share = 1.0 / math.sqrt(n)
        return log_root * share * max(scale * share, floor)

    @staticmethod
    def bend(log_root: float, scale: float, floor: float) -> float:
        """The n with scale / sqrt(n) = floor. n * radius(n) is constant below this n and grows like sqrt(n)
        above it."""
        return (scale / floor) * (scale / floor) if floor > 0.0 else math.inf

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return math.sqrt(math.log(horizon)), self.kappa * math.sqrt(horizon / arms), self.floor


@dataclass(frozen=True)
class AnyTime(_KappaBonus):
    """The paper's light-tailed bonus that needs no horizon (Thm any-time):

    radius_t(n) = kappa * sqrt(t * max(1, ln(K t))) / (n * sqrt K).

    kappa: sigma * sqrt(eta) of the paper. t: the round, from 1. K: the number of arms.

    The paper's numerical tables leave out the factor 1 / sqrt K: they show `AnyTime(kappa * sqrt(K))`.

    >>> bonus = AnyTime(kappa=0.2)
    >>> params = bonus.params(horizon=math.nan, arms=2)
    >>> round(bonus.radius(4.0, bonus.clock(100.0, *params), *params), 4)
    0.8138
    """

    needs_horizon = False
    light_tailed = True
    concave = True

    @staticmethod
    def clock(t: float, scale: float, arms: float) -> float:
        growth = math.log(arms * t)
        return scale * math.sqrt(t * (growth if growth > 1.0 else 1.0))  # max() is slower in plain Python

    @staticmethod
    def radius(n: float, clock: float, scale: float, arms: float) -> float:
        return clock / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.kappa / math.sqrt(arms), float(arms)


@dataclass(frozen=True)
class Moss(_KappaBonus):
    """The bonus of MOSS: radius(n) = kappa * sqrt(max(0, ln(T / (K n))) / n) (Audibert & Bubeck 2009).

    The mean regret in the worst case has the best order in T and K. The tail of the regret is as heavy as
    with `Standard`.

    kappa: 1 in Audibert & Bubeck, for rewards in [0, 1]; 2 sigma in Lattimore & Szepesvari, Alg. 7.
    T: the horizon, which must be known. K: the number of arms.

    >>> bonus = Moss(kappa=1.0)
    >>> round(bonus.radius(4.0, 1.0, *bonus.params(horizon=500, arms=2)), 4)
    1.0168
    """

    concave = True
    kappa: float = 1.0

    @staticmethod
    def radius(n: float, clock: float, kappa: float, share: float) -> float:
        return kappa * math.sqrt(max(0.0, math.log(share / n)) / n)

    @staticmethod
    def bend(kappa: float, share: float) -> float:
        """The n at which the radius reaches 0. n * radius(n) falls steeply to 0 and stays there."""
        return share

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.kappa, horizon / arms


@dataclass(frozen=True)
class Eqo(_KappaBonus):
    """A light-tailed bonus without a logarithm: radius(n) = kappa * sqrt(T / K) / n (Lee & Oh 2026).

    "Exploration via quasi-optimism": with chance 1 - delta the regret is of order sqrt(K T) ln(1 / delta),
    for all delta at once. This is the best order in T and K for the mean and for the tail.

    kappa: sigma in the theory. T: the horizon, which must be known. K: the number of arms.

    >>> bonus = Eqo(kappa=0.5)
    >>> round(bonus.radius(4.0, 1.0, *bonus.params(horizon=500, arms=2)), 4)
    1.9764
    """

    light_tailed = True
    concave = True

    @staticmethod
    def radius(n: float, clock: float, scale: float) -> float:
        return scale / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa * math.sqrt(horizon / arms),)


@dataclass(frozen=True)
class TwoPart(Bonus):
    """The two-part bonus of Simchi-Levi, Zheng & Zhu 2023 (arXiv 2304.04341), which needs no horizon:

    radius_t(n) = min{kappa (t / K)^alpha sqrt(ln K) / n, cap sqrt(t^beta / n)}.

    The mean regret is of order T^alpha in the worst case and T^beta on each problem, up to logarithms. The
    chance of a linear regret falls like exp(-constant T^beta).

    kappa, cap: eta_1 and eta_2 of that paper. t: the round, from 1. K: the number of arms.
    alpha: at least 1/2 and below 1. beta: above 0 and at most alpha.

    >>> bonus = TwoPart(kappa=0.5, cap=0.5)
    >>> params = bonus.params(horizon=math.nan, arms=2)
    >>> round(bonus.radius(4.0, bonus.clock(100.0, *params), *params), 4)
    0.7359
    """

    needs_horizon = False
    light_tailed = True
    concave = True
    unscaled = ("alpha", "beta")
    kappa: float
    cap: float
    alpha: float = 0.5
    beta: float = 0.5

    def __post_init__(self) -> None:
        accept(self, kappa=positive, cap=positive, alpha=positive, beta=positive)
        if not 0.5 <= self.alpha < 1.0:
            raise refuse("alpha", self.alpha, "a number from 0.5 up to but not including 1")
        if self.beta > self.alpha:
            raise refuse("beta", self.beta, f"a number above 0 and at most alpha, {self.alpha}")

    @staticmethod
    def clock(t: float, scale: float, cap: float, alpha: float, half_beta: float) -> float:
        return math.log(t)

    @staticmethod
    def radius(n: float, clock: float, scale: float, cap: float, alpha: float, half_beta: float) -> float:
        return min(scale * math.exp(alpha * clock) / n, cap * math.exp(half_beta * clock) / math.sqrt(n))

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        scale = self.kappa * math.sqrt(math.log(arms)) * math.exp(-self.alpha * math.log(arms))
        return scale, self.cap, self.alpha, self.beta / 2.0
