"""The noises: how the rewards of an arm with a known mean are drawn, and what is stated of them.

A noise is a frozen dataclass with two static, scalar functions. `shock(rng, *world)` draws the
random number behind one reward before it is known which arm will be pulled;
`reward(shock, arm, *world)` turns it into that arm's reward. `world(means)` works out what both
are handed. All else that anything asks of a noise is a fact that its class states; docs/own-noises.md
says which fact is for what.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lighttail.checks import accept, non_negative, number, refuse, shown
from lighttail.noises.formulas import (
    Floats,
    bernoulli_clear,
    bernoulli_part,
    bernoulli_proxy,
    bernoulli_reward,
    bernoulli_total,
    laplace_shock,
    normal_clear,
    normal_part,
    normal_proxy,
    normal_shock,
    normal_total,
    sample_reward,
    scaled_reward,
    student_reward,
    student_shock,
    uniform_reward,
    uniform_shock,
)
from lighttail.noises.tilts import BernoulliTilt, Family, GaussianTilt
from lighttail.random.streams import block_generator

PILOT, PILOT_ARMS = 1000, 16  # draws, and arms, for the standard deviation of a noise that does not say
RARE = 1e-3  # a chance beside which the cells of a uniform of 23 bits show
DRAWS = ("shock", "reward")
SUMS = ("total", "part", "clear", "proxy")
FACTS = ("sub_gaussian", "span", "outcomes", "normal", "certain", "moves", "tilt", "single", "sd")


class Noise(ABC):
    """What every noise has. A fact that its class does not state is not assumed (docs/own-noises.md).

    A class that draws other rewards than the class that it derives from inherits none of its facts.
    """

    shock: ClassVar[Callable[..., float]]
    reward: ClassVar[Callable[..., float]]

    # The sigma with which the noise is sub-Gaussian, E exp(s e) <= exp(s^2 sigma^2 / 2) for every s and arm,
    # as every theorem asks; True: with a sigma that nobody knows.
    sub_gaussian: ClassVar[float | None] = None
    # The two values that a reward can have, the lower one first: the mean then decides all of its law.
    outcomes: ClassVar[tuple[float, float] | None] = None
    # The standard deviation with which every reward is normal around its arm's mean.
    normal: ClassVar[float | None] = None
    # Whether a reward is its arm's mean, always.
    certain: ClassVar[bool] = False
    # Whether `world` begins with the array of the means, and whether `shock` and `reward`, handed another
    # array of means there, draw the rewards of those means.
    moves: ClassVar[bool] = False
    # The means that an arm can have, the least and the largest; None: any.
    mean_range: ClassVar[tuple[float, float] | None] = None

    # For skip-ahead alone (docs/skip-ahead.md).
    # total(rng, arm, n, *world): the sum of n rewards of an arm, as one draw.
    total: ClassVar[Callable[..., float] | None] = None
    # part(rng, n, rest, total, *world): the sum of the first n of n + rest rewards that sum to total.
    part: ClassVar[Callable[..., float] | None] = None
    # clear(here, there, n, limit, *world): whether the sums between two points that are n pulls
    # apart, `here` and `there` above a line, meet that line with probability exp(-limit) at most.
    clear: ClassVar[Callable[..., bool] | None] = None
    # proxy(*world): a reward's sub-Gaussian constant; it chooses how far to skip and changes no law.
    proxy: ClassVar[Callable[..., float] | None] = None

    def __init_subclass__(cls) -> None:
        """What is stated of rewards does not hold for a class that draws others, unless it says so.

        Sums are handed the same world as rewards, so that another `world` alone leaves them as they are.
        """
        for name in (*DRAWS, *SUMS):
            member = inspect.getattr_static(cls, name, None)
            if member is not None and not isinstance(member, staticmethod):
                raise TypeError(
                    f"{name} of {cls.__name__} must be a static method: write @staticmethod above it"
                )
        drawn = min(_place(cls, name) for name in DRAWS)
        for fact in (*FACTS, *SUMS):
            if _place(cls, fact) > (drawn if fact in SUMS else min(drawn, _place(cls, "world"))):
                setattr(cls, fact, vars(Noise)[fact])

    @property
    def is_sub_gaussian(self) -> bool:
        """Whether its author states that it is."""
        return self.sub_gaussian is not None and self.sub_gaussian is not False

    def span(self, means: tuple[float, ...]) -> tuple[float, float] | None:
        """The least and the largest reward that an arm can give; None unless the author states them."""
        return None

    def tilt(self) -> Family | None:
        """The exponential tilts of a reward, where a tilted reward is one of this noise around another mean;
        None unless the author states them. They need `moves`, too."""
        return None

    def single(self, means: tuple[float, ...]) -> float | None:
        """Where uniforms of 23 bits, and normals that end at 6.8, are good enough: the size of the numbers
        around which the noise is, for their rounding. None unless the author states it, and a GPU then
        computes in double precision."""
        return None

    def check(self, means: tuple[float, ...]) -> None:
        """Refuse means that this noise cannot have."""
        if self.mean_range is None:
            return
        low, high = self.mean_range
        for arm, mean in enumerate(means):
            if not low <= mean <= high:
                raise refuse(f"means[{arm}]", mean, self.allowed_means)

    @property
    def allowed_means(self) -> str:
        """The range of means, for a message."""
        low, high = self.mean_range or (-math.inf, math.inf)
        return f"between {low:g} and {high:g} with {type(self).__name__} rewards"

    @abstractmethod
    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        """What `shock` and `reward` are handed besides: float64 or int64 arrays, and floats."""

    @property
    def states_sd(self) -> bool:
        """Whether the class knows the standard deviation, which is measured otherwise."""
        return type(self).sd is not Noise.sd

    def sd(self, means: tuple[float, ...]) -> float:
        """The standard deviation of a reward of the noisiest arm; from draws unless a noise knows it.

        It chooses how wide the bins of a law are (docs/streaming.md), and is a part of what `auto` chooses
        a method by (docs/skip-ahead.md).
        """
        means = means or (0.0,)
        return max(map(float, rewards_drawn(self, means, range(min(len(means), PILOT_ARMS))).std(axis=1)))


def rewards_drawn(noise: Noise, means: tuple[float, ...], arms: range) -> Floats:
    """[arm, draw]: a few rewards of each of these arms, always the same."""
    kind: Any = type(noise)
    world, rng = noise.world(means), block_generator(0, 0)
    shocks = [kind.shock(rng, *world) for _ in range(PILOT)]
    return np.array([[kind.reward(shock, arm, *world) for shock in shocks] for arm in arms])


def _place(kind: type, name: str) -> float:
    """How far up a class's line the class that states `name` is."""
    return next((place for place, one in enumerate(kind.__mro__) if name in vars(one)), math.inf)


def _size(means: tuple[float, ...]) -> float:
    return max(map(abs, means), default=0.0)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise with standard deviation sigma; 0 makes the rewards certain."""

    sigma: float = 1.0
    shock = staticmethod(normal_shock)
    reward = staticmethod(scaled_reward)
    total = staticmethod(normal_total)
    part = staticmethod(normal_part)
    clear = staticmethod(normal_clear)
    proxy = staticmethod(normal_proxy)
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        return self.sigma

    @property
    def normal(self) -> float:  # type: ignore[override]
        return self.sigma

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return self.sigma == 0.0

    def tilt(self) -> Family | None:
        return GaussianTilt(self.sigma) if self.sigma > 0.0 else None

    def single(self, means: tuple[float, ...]) -> float:
        return _size(means)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.sigma

    def sd(self, means: tuple[float, ...]) -> float:
        return self.sigma


@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform noise with standard deviation sigma: on [-sqrt(3) sigma, sqrt(3) sigma]."""

    sigma: float = 1.0
    shock = staticmethod(uniform_shock)
    reward = staticmethod(uniform_reward)
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        return self.sigma  # its variance is the parameter, as for a normal law

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        reach = math.sqrt(3.0) * self.sigma
        return min(means) - reach, max(means) + reach

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return self.sigma == 0.0

    def single(self, means: tuple[float, ...]) -> float:
        return _size(means)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), math.sqrt(3.0) * self.sigma

    def sd(self, means: tuple[float, ...]) -> float:
        return self.sigma


@dataclass(frozen=True)
class Laplace(Noise):
    """Two-sided exponential noise with standard deviation sigma: scale sigma / sqrt(2).

    Not sub-Gaussian: no theorem of the paper covers it.
    """

    sigma: float = 1.0
    shock = staticmethod(laplace_shock)
    reward = staticmethod(scaled_reward)
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return self.sigma == 0.0

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.sigma

    def sd(self, means: tuple[float, ...]) -> float:
        return self.sigma


@dataclass(frozen=True)
class StudentT(Noise):
    """Student's t noise with df > 2 degrees of freedom, scaled to the standard deviation sigma.

    Not sub-Gaussian: no theorem of the paper covers it.
    """

    df: float = 3.0
    sigma: float = 1.0
    shock = staticmethod(student_shock)
    reward = staticmethod(student_reward)
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if number("df", self.df, "a finite number above 2, so that the variance exists") <= 2:
            raise refuse("df", self.df, "a finite number above 2, so that the variance exists")
        accept(self, df=number, sigma=non_negative)

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return self.sigma == 0.0

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.sigma * math.sqrt((self.df - 2.0) / self.df), self.df

    def sd(self, means: tuple[float, ...]) -> float:
        return self.sigma


@dataclass(frozen=True)
class Bernoulli(Noise):
    """Rewards 1 with the arm's mean as probability, else 0."""

    sub_gaussian: ClassVar[float | None] = 0.5  # Hoeffding's lemma
    outcomes: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    mean_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    moves: ClassVar[bool] = True
    shock = staticmethod(uniform_shock)
    reward = staticmethod(bernoulli_reward)
    total = staticmethod(bernoulli_total)
    part = staticmethod(bernoulli_part)
    clear = staticmethod(bernoulli_clear)
    proxy = staticmethod(bernoulli_proxy)

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        return 0.0, 1.0

    def tilt(self) -> Family:
        return BernoulliTilt()

    def single(self, means: tuple[float, ...]) -> float | None:
        """Not for a mean so near 0 or 1 that the cells of a uniform show."""
        rare = any(0.0 < min(mean, 1.0 - mean) < RARE for mean in means)
        return None if rare else _size(means)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return (np.array(means),)

    def sd(self, means: tuple[float, ...]) -> float:
        return max((math.sqrt(mean * (1.0 - mean)) for mean in means), default=0.5)


@dataclass(frozen=True, eq=False, repr=False)
class Resampled(Noise):
    """Rewards drawn with replacement from observations, one array an arm (`Bandit.from_samples`)."""

    samples: tuple[Floats, ...]
    shock = staticmethod(uniform_shock)
    reward = staticmethod(sample_reward)

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        """Half the range of the observations of an arm (Hoeffding's lemma)."""
        return max(float(values.max()) / 2.0 - float(values.min()) / 2.0 for values in self.samples)

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        return min(float(v.min()) for v in self.samples), max(float(v.max()) for v in self.samples)

    def single(self, means: tuple[float, ...]) -> float:
        return _size(self.span(means))

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        starts = np.cumsum([0, *(len(values) for values in self.samples)], dtype=np.int64)
        return np.concatenate(self.samples), starts

    def sd(self, means: tuple[float, ...]) -> float:
        with np.errstate(over="ignore"):
            return max(float(np.std(values)) for values in self.samples)

    @property
    def digest(self) -> str:
        """Names the observations in a repr, where they would not fit."""
        content = hashlib.sha256()
        for values in self.samples:
            content.update(f"{len(values)}:".encode() + values.tobytes())
        return content.hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resampled) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        sizes = shown([len(values) for values in self.samples])
        return f"Resampled({sizes} observations, digest {self.digest})"
