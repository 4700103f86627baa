"""The noises: how the rewards of an arm with a known mean are drawn, and the facts that are known about them.

A noise is a frozen dataclass with two static, scalar functions. `shock(rng, *world)` draws the random number
behind one reward before it is known which arm will be pulled. `reward(shock, arm, *world)` turns the shock
into the reward of that arm. `world(means)` computes the arguments `world` of both functions. Everything else
that the library needs to know about a noise is a fact that the class of the noise states; docs/own-noises.md
explains the use of each fact.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lighttail.checks import accept, non_negative, number, refuse, shown
from lighttail.members import check_static, place_of
from lighttail.noises import formulas
from lighttail.noises.tilts import BernoulliTilt, GaussianTilt, Tilts
from lighttail.random.streams import block_generator
from lighttail.records import Floats

PILOT, PILOT_ARMS = 1000, 16  # draws per arm, and arms, from which an unstated standard deviation is measured
RARE = 1e-3  # the smallest chance for which the steps of a uniform number of 23 bits do not matter
DRAWS = ("shock", "reward")
SUMS = ("total", "part", "clear", "proxy")
FACTS = (
    *("sub_gaussian", "span", "outcomes", "normal", "certain", "moves", "mean_range", "tilt", "single", "sd"),
)


class Noise(ABC):
    """The members that every noise has. A fact that the class does not state is not assumed
    (docs/own-noises.md).

    A class that draws other rewards than its base class inherits no fact of the base class.
    """

    shock: ClassVar[Callable[..., float]]
    reward: ClassVar[Callable[..., float]]

    # The sigma with which the noise e is sub-Gaussian: E exp(s e) <= exp(s^2 sigma^2 / 2) for every s and
    # arm, as every theorem assumes. True: the noise is sub-Gaussian, but sigma is not known.
    sub_gaussian: ClassVar[float | None] = None
    # The two values that a reward can have, the lower value first: the mean then determines the whole law.
    outcomes: ClassVar[tuple[float, float] | None] = None
    # The standard deviation of every reward, if rewards are normal around the mean of their arm.
    normal: ClassVar[float | None] = None
    # Whether a reward always equals the mean of its arm.
    certain: ClassVar[bool] = False
    # Whether `world` begins with the array of the means, and whether `shock` and `reward` draw the rewards
    # of other means if another array of means stands there.
    moves: ClassVar[bool] = False
    # The smallest and the largest mean that an arm can have; None if every mean is allowed.
    mean_range: ClassVar[tuple[float, float] | None] = None

    # The next four functions are for skip-ahead alone (docs/skip-ahead.md).
    # total(rng, arm, n, *world): the sum of n rewards of an arm, as one draw.
    total: ClassVar[Callable[..., float] | None] = None
    # part(rng, n, rest, total, *world): the sum of the first n of n + rest rewards that add up to total.
    part: ClassVar[Callable[..., float] | None] = None
    # clear(here, there, n, limit, *world): whether the sums between two points that are n pulls apart, `here`
    # and `there` above a line, meet that line with probability at most exp(-limit).
    clear: ClassVar[Callable[..., bool] | None] = None
    # proxy(*world): the sub-Gaussian sigma of a reward, by which the length of a skip is chosen. It changes
    # no law.
    proxy: ClassVar[Callable[..., float] | None] = None

    def __init_subclass__(cls) -> None:
        """Remove every inherited fact from a class that draws other rewards, unless the class states the fact
        again.

        The functions of sums receive the same `world` as the rewards, so a new `world` alone does not remove
        them.
        """
        check_static(cls, (*DRAWS, *SUMS))
        drawn = min(place_of(cls, name) for name in DRAWS)
        for fact in (*FACTS, *SUMS):
            if place_of(cls, fact) > (drawn if fact in SUMS else min(drawn, place_of(cls, "world"))):
                setattr(cls, fact, vars(Noise)[fact])

    @property
    def is_sub_gaussian(self) -> bool:
        """Whether the class states that the noise is sub-Gaussian."""
        return self.sub_gaussian is not None and self.sub_gaussian is not False

    @property
    def is_coin(self) -> bool:
        """Whether every reward is 0 or 1."""
        return self.outcomes == (0.0, 1.0)

    def span(self, means: tuple[float, ...]) -> tuple[float, float] | None:
        """The smallest and the largest reward that an arm can give; None if the class does not state them."""
        return None

    def tilt(self) -> Tilts | None:
        """The exponential tilts of a reward; None if the class does not state them.

        A tilted reward must be a reward of this noise around another mean, and `moves` must be True.
        """
        return None

    def single(self, means: tuple[float, ...]) -> float | None:
        """The largest absolute value around which the noise lies, if single precision is good enough.

        Single precision means uniform numbers of 23 bits and normal numbers of at most 6.8 in size; the value
        bounds their rounding. None if the class does not state it: a GPU then computes in double precision.
        """
        return None

    def check(self, means: tuple[float, ...]) -> None:
        """Raise BadInput if this noise cannot have these means."""
        if self.mean_range is None:
            return
        low, high = self.mean_range
        for arm, mean in enumerate(means):
            if not low <= mean <= high:
                raise refuse(f"means[{arm}]", mean, self.allowed_means)

    @property
    def allowed_means(self) -> str:
        """The range of means in a message."""
        low, high = self.mean_range or (-math.inf, math.inf)
        return f"between {low:g} and {high:g} with {type(self).__name__} rewards"

    @abstractmethod
    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        """The arguments `world` of `shock` and `reward`: float64 or int64 arrays, and floats."""

    @property
    def states_sd(self) -> bool:
        """Whether the class computes the standard deviation, which is otherwise measured from draws."""
        return type(self).sd is not Noise.sd

    def sd(self, means: tuple[float, ...]) -> float:
        """The standard deviation of a reward of the noisiest arm, measured from draws by default.

        The width of the bins of a law depends on this number (docs/streaming.md), and so does the method that
        `auto` chooses (docs/skip-ahead.md).
        """
        means = means or (0.0,)
        return max(map(float, rewards_drawn(self, means, range(min(len(means), PILOT_ARMS))).std(axis=1)))


def rewards_drawn(noise: Noise, means: tuple[float, ...], arms: range) -> Floats:
    """Some rewards of each of these arms, in an array [arm, draw]. The rewards are the same at every call."""
    kind: Any = type(noise)
    world, rng = noise.world(means), block_generator(0, 0)
    shocks = [kind.shock(rng, *world) for _ in range(PILOT)]
    return np.array([[kind.reward(shock, arm, *world) for shock in shocks] for arm in arms])


# Members of several noises. Each class states them for itself, because it inherits no facts.
def _sigma(noise: Any, means: tuple[float, ...]) -> float:
    return noise.sigma  # type: ignore[no-any-return]


def _scaled_world(noise: Any, means: tuple[float, ...]) -> tuple[Any, ...]:
    return np.array(means), noise.sigma


def _largest(noise: Any, means: tuple[float, ...]) -> float:
    return max(map(abs, means), default=0.0)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise with standard deviation sigma. With sigma = 0 every reward is the mean of its arm."""

    sigma: float = 1.0
    shock = staticmethod(formulas.normal_shock)
    reward = staticmethod(formulas.scaled_reward)
    total = staticmethod(formulas.normal_total)
    part = staticmethod(formulas.normal_part)
    clear = staticmethod(formulas.normal_clear)
    proxy = staticmethod(formulas.normal_proxy)
    moves = True
    world, sd, single = _scaled_world, _sigma, _largest

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

    def tilt(self) -> Tilts | None:
        return GaussianTilt(self.sigma) if self.sigma > 0.0 else None


@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform noise with standard deviation sigma: on [-sqrt(3) sigma, sqrt(3) sigma]."""

    sigma: float = 1.0
    shock = staticmethod(formulas.uniform_shock)
    reward = staticmethod(formulas.uniform_reward)
    moves = True
    sd, single = _sigma, _largest

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        return self.sigma  # a uniform law is sub-Gaussian with its own standard deviation

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return self.sigma == 0.0

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        reach = math.sqrt(3.0) * self.sigma
        return min(means) - reach, max(means) + reach

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), math.sqrt(3.0) * self.sigma


@dataclass(frozen=True)
class Laplace(Noise):
    """Laplace noise (two-sided exponential) with standard deviation sigma, that is, with scale sigma /
    sqrt(2).

    This noise is not sub-Gaussian, so no theorem of the paper covers it.
    """

    sigma: float = 1.0
    shock = staticmethod(formulas.laplace_shock)
    reward = staticmethod(formulas.scaled_reward)
    moves = True
    world, sd = _scaled_world, _sigma

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return self.sigma == 0.0


@dataclass(frozen=True)
class StudentT(Noise):
    """Student's t noise with df > 2 degrees of freedom, scaled to the standard deviation sigma.

    This noise is not sub-Gaussian, so no theorem of the paper covers it.
    """

    df: float = 3.0
    sigma: float = 1.0
    shock = staticmethod(formulas.student_shock)
    reward = staticmethod(formulas.scaled_reward)
    moves = True
    sd = _sigma

    def __post_init__(self) -> None:
        allowed = "a finite number above 2, so that the variance exists"
        if number("df", self.df, allowed) <= 2:
            raise refuse("df", self.df, allowed)
        accept(self, df=number, sigma=non_negative)

    @property
    def certain(self) -> bool:  # type: ignore[override]
        return self.sigma == 0.0

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.sigma * math.sqrt((self.df - 2.0) / self.df), self.df


@dataclass(frozen=True)
class Bernoulli(Noise):
    """Rewards of 0 or 1: a reward is 1 with the arm's mean as probability, otherwise 0."""

    sub_gaussian: ClassVar[float | None] = 0.5  # Hoeffding's lemma
    outcomes: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    mean_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    moves = True
    shock = staticmethod(formulas.uniform_shock)
    reward = staticmethod(formulas.bernoulli_reward)
    total = staticmethod(formulas.bernoulli_total)
    part = staticmethod(formulas.bernoulli_part)
    clear = staticmethod(formulas.bernoulli_clear)
    proxy = staticmethod(formulas.bernoulli_proxy)

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        return 0.0, 1.0

    def tilt(self) -> Tilts:
        return BernoulliTilt()

    def single(self, means: tuple[float, ...]) -> float | None:
        """None if a mean is so near 0 or 1 that the steps of a uniform number of 23 bits matter."""
        rare = any(0.0 < min(mean, 1.0 - mean) < RARE for mean in means)
        return None if rare else _largest(self, means)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return (np.array(means),)

    def sd(self, means: tuple[float, ...]) -> float:
        return max((math.sqrt(mean * (1.0 - mean)) for mean in means), default=0.5)


@dataclass(frozen=True, eq=False, repr=False)
class Resampled(Noise):
    """Rewards that are drawn, with replacement, from observations (`Bandit.from_samples`).

    samples: one array of observations per arm.
    """

    samples: tuple[Floats, ...]
    shock = staticmethod(formulas.uniform_shock)
    reward = staticmethod(formulas.sample_reward)

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        """Half the largest range of the observations of an arm (Hoeffding's lemma)."""
        return max(float(values.max()) / 2.0 - float(values.min()) / 2.0 for values in self.samples)

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        return min(float(v.min()) for v in self.samples), max(float(v.max()) for v in self.samples)

    def single(self, means: tuple[float, ...]) -> float:
        return _largest(self, self.span(means))

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        starts = np.cumsum([0, *(len(values) for values in self.samples)], dtype=np.int64)
        return np.concatenate(self.samples), starts

    def sd(self, means: tuple[float, ...]) -> float:
        with np.errstate(over="ignore"):
            return max(float(np.std(values)) for values in self.samples)

    @property
    def digest(self) -> str:
        """A short name of the observations, for a repr in which they would not fit."""
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
