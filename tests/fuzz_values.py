"""Nasty values, and good ones, for the calls of `fuzz_calls`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from cases import NOISES as SHIPPED_NOISES

import lighttail as lt
from lighttail.noises.formulas import normal_shock, scaled_reward


class Unwritable:
    """Nothing that a message can show."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Word(str):
    """A text of a class of its own."""


class Whole(int):
    """A whole number of a class of its own."""


class Unhashable:
    """Equal to nothing, and without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("not to be compared")


SCALARS: tuple[Any, ...] = (
    *(
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        0.0,
        5e-324,
        -5e-324,
        1e-300,
        1e308,
        -1e308,
        1.7e308,
        0.5,
        1.5,
        -1.0,
    ),
    *(0, 1, 2, 3, -1, 7, 100, 2**31, 2**53 + 1, 2**63, 2**64, 10**12, 10**18, 10**400, -(10**400), 10**5000),
    *(
        np.uint8(200),
        np.int8(-3),
        np.int8(5),
        np.int64(6),
        np.float32(0.3),
        np.float16(0.1),
        np.longdouble(0.2),
    ),
    *(np.float64(math.nan), np.bool_(True), True, False, Fraction(1, 3), Fraction(10**400), Decimal("0.5")),
    *(
        Whole(4),
        1j,
        np.complex128(0.5),
        np.datetime64("2020-01-01"),
        np.array(0.5),
        np.array(3),
        np.str_("regret"),
    ),
)
OTHERS: tuple[Any, ...] = (
    *(
        None,
        "",
        "regret",
        "pseudo_regret",
        "auto",
        "0.5",
        "x" * 10**5,
        "a\nb",
        "\0",
        b"ab",
        Word("regret"),
        ...,
    ),
    *(
        [],
        (),
        {},
        set(),
        [[]],
        [0.5, 0.5],
        (0.2, 0.8),
        [0.5] * 1000,
        [math.nan, 0.5],
        ["a", "b"],
        [[0.2, 0.8]],
    ),
    *(np.array([]), np.array([0.2, 0.8]), np.zeros((2, 2)), np.array(["regret"]), np.array([None, 1.0])),
    *(
        np.array(["regret", "reward"]),
        range(3),
        range(10**9),
        {"a": [0.0, 1.0], "b": [1.0]},
        object(),
        Unwritable(),
    ),
    *(
        [Unwritable()] * 3,
        Unhashable(),
        lt.UCB,
        lt.Gaussian,
        print,
        iter([0.2, 0.8]),
        (x for x in (0.2, 0.8)),
    ),
    *(
        memoryview(b"ab"),
        bytearray(b"ab"),
        [10**400, 1],
        slice(3),
        NotImplemented,
        {0.5},
        type,
        Exception("no"),
    ),
)
NASTY = SCALARS + OTHERS
UNCALLABLE = tuple(x for x in NASTY if not callable(x))  # a user's own function may raise what it likes
QUICK = tuple(x for x in NASTY if type(x) is not int or not 10**5 < x <= 10**12)  # sizes that one may ask for

NUMBER = (0.2, 1.0, 3, 0.01, 25.0, np.float32(0.5), 0.0, -2.5, 1e-12, 1e6)
POSITIVE = (0.2, 1.0, 0.01, 3, np.float32(0.5), 1e3, 1e-8, 1e8)
EDGES = (5e-324, 1e-320, 1e-300, 1e-160, 1e160, 1e300, 1.7e308)
FRACTIONS = (0.5, 0.9, 0.01, 0.999, 1e-9, 1 - 1e-9)
LEVELS = (0.95, 0.5, 0.9, 0.99, np.float32(0.75))
HORIZONS = (2, 3, 4, 10, 30, np.uint8(200), np.int16(50))
LONG = (1000, 10**6, 10**9, 10**12, 10**15)
ARMS = (2, 3, 10, np.uint8(200), 10**4)
KINDS = ("regret", "pseudo_regret", "reward")
TAIL_KINDS = ("regret", "pseudo_regret")
MEANS = (
    *(
        [0.2, 0.8],
        [0.5, 0.5],
        (0.1, 0.5, 0.9),
        np.array([0.2, 0.8]),
        np.array([0, 1], dtype=np.uint8),
        [0.0, 0.0],
    ),
    *(np.float32([0.1, 0.7]), [1e-300, 2e-300], [1e307, 0.0], [1e308, -1e308], [0.0, 5e-324], [-0.0, 0.0]),
    *([Fraction(1, 3), Fraction(2, 3)], [1e-9, 2e-9, 1.0], [1, 0, 0, 0, 0]),
)


@dataclass(frozen=True)
class Own(lt.Bonus):
    """A bonus of a user's own, with nothing but the formula."""

    kappa: float = 0.3

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return kappa / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


def drawn(rng: np.random.Generator, pool: Sequence[Any]) -> Any:
    """One of them; NumPy's own `choice` would make an array of them first."""
    return pool[int(rng.integers(len(pool)))]


def policies(rng: np.random.Generator) -> Any:
    """A policy that can be made; some with extreme numbers."""
    kappa = float(drawn(rng, POSITIVE if rng.random() < 0.7 else EDGES))
    makers: tuple[Callable[[], Any], ...] = (
        lambda: lt.UCB(lt.LightTailed(kappa)),
        lambda: lt.UCB(lt.Standard(kappa)),
        lambda: lt.UCB(lt.ArmOptimal(kappa, float(drawn(rng, (0.0, 0.3, 2.0, *EDGES))))),
        lambda: lt.UCB(lt.AnyTime(kappa)),
        lambda: lt.UCB(Own(kappa)),
        lambda: lt.SuccessiveElimination(lt.LightTailed(kappa)),
        lambda: lt.ThompsonSampling(float(drawn(rng, POSITIVE))),
        lambda: lt.Exp3IX("loss", upper=float(drawn(rng, (1.0, 5.0, 1e300)))),
        lambda: lt.Exp3IX("reward", eta=kappa),
        lambda: lt.LinearUCB(lt.LinearLightTailed(kappa)),
    )
    return drawn(rng, makers)()


@dataclass(frozen=True)
class OwnNoise(lt.Noise):
    """A noise of a user's own, which states nothing of its rewards."""

    shock = staticmethod(normal_shock)
    reward = staticmethod(scaled_reward)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), 1.0


def noises(rng: np.random.Generator) -> Any:
    """A noise; some with extreme numbers."""
    sigma = float(drawn(rng, POSITIVE if rng.random() < 0.6 else (0.0, *EDGES)))
    shipped: Any = (replace(one, sigma=sigma) if hasattr(one, "sigma") else one for one in SHIPPED_NOISES)
    return drawn(rng, (lt.Gaussian(sigma), *shipped, OwnNoise()))


def problems(rng: np.random.Generator) -> Any:
    """A bandit; some with extreme means or noise, and now and then one with very many arms."""
    if rng.random() < 0.03:
        return lt.Bandit(np.linspace(0.0, 1.0, 10_000))
    if rng.random() < 0.08:
        return lt.Bandit.from_samples(
            {"a": [0.0, 1.0], "b": drawn(rng, ([1.0], [0.5, 0.5], [1e300, -1e300]))}
        )
    while True:
        try:
            return lt.Bandit(drawn(rng, MEANS), noises(rng))
        except ValueError:
            continue


def linear_problems(rng: np.random.Generator) -> Any:
    warnings.simplefilter("ignore", UserWarning)  # of what no theorem covers
    theta = drawn(rng, ([0.5, 0.2], [0.0, 0.0], [1e-300, 0.1], [1.0], [1e100, 1.0]))
    actions = drawn(rng, (lt.SphereActions(3), lt.BallActions(2), np.eye(len(theta))))
    return lt.LinearBandit(
        theta, actions, drawn(rng, (None, lt.Gaussian(0.0), lt.Gaussian(1e-300), lt.Laplace(2.0)))
    )


def gaussian_problems(rng: np.random.Generator) -> Any:
    while True:
        try:
            sigma = float(drawn(rng, POSITIVE if rng.random() < 0.7 else (0.0, *EDGES)))
            return lt.Bandit(drawn(rng, MEANS), lt.Gaussian(sigma))
        except ValueError:
            continue


UNITS = (1.0, 1.0, 1.0, 1.0, *EDGES, 1e150, 1e308)
SHAPES = (
    [0.0, 1.0],
    [0.2, 0.8],
    [0.5, 0.5],
    [0.0, 0.5, 1.0],
    [0.1, 0.1, 0.9],
    [1.0, 1.0, 0.0, 0.0],
    [0.3, 0.31],
)
COINS = (
    [0.0, 1.0],
    [0.0, 0.0],
    [1.0, 1.0],
    [0.2, 0.8],
    [0.5, 0.5, 1.0],
    [5e-324, 1.0],
    [1e-300, 1.0 - 1e-16],
)


@dataclass(frozen=True)
class Share:
    """A share of the largest regret of a problem."""

    value: float

    def of(self, problem: Any, horizon: Any) -> Any:
        if isinstance(problem, lt.Bandit) and isinstance(horizon, (int, np.integer)) and 0 < horizon < 10**9:
            return self.value * (max(problem.means) - min(problem.means)) * int(horizon)
        return self.value


def regrets(rng: np.random.Generator) -> Any:
    """A share of the largest regret, or any number at all."""
    if rng.random() < 0.7:
        return Share(float(rng.random()))
    return drawn(rng, (*NUMBER, *EDGES, -1e308, -5e-324, 1e308))


def ignoring_time(rng: np.random.Generator) -> Any:
    """Mostly a policy that has an exact law."""
    kappa = float(drawn(rng, POSITIVE if rng.random() < 0.6 else EDGES))
    floor = float(drawn(rng, (0.0, 0.3, *EDGES)))
    bonuses = (
        lt.LightTailed(kappa),
        lt.Standard(kappa),
        lt.ArmOptimal(kappa, floor),
        Own(kappa),
        lt.AnyTime(kappa),
    )
    return lt.UCB(drawn(rng, bonuses))


def plain_tail_problems(rng: np.random.Generator) -> Any:
    """A bandit with Gaussian or Bernoulli rewards in ordinary or extreme units."""
    while True:
        try:
            if rng.random() < 0.3:
                return lt.Bandit(drawn(rng, COINS), lt.Bernoulli())
            unit = drawn(rng, UNITS)
            sigma = float(unit * drawn(rng, (1.0, 0.1, 10.0)) if rng.random() < 0.7 else drawn(rng, UNITS))
            return lt.Bandit([unit * mean for mean in drawn(rng, SHAPES)], lt.Gaussian(sigma))
        except ValueError:
            continue


def tail_problems(rng: np.random.Generator) -> Any:
    """The same, or any other bandit."""
    return plain_tail_problems(rng) if rng.random() < 0.7 else problems(rng)
