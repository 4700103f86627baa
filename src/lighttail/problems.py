"""The problems: arms with known means, and the noise around them.

A noise is a frozen dataclass with two static, scalar functions. `shock(rng, *world)` draws the
random number behind one reward before it is known which arm will be pulled;
`reward(shock, arm, *world)` turns it into that arm's reward. `world(means)` works out what both
are handed.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lighttail.counts import binomial, hypergeometric
from lighttail.streams import block_generator, standard_normal, uniform
from lighttail.validation import (
    UNORDERED,
    accept,
    array_of,
    non_negative,
    number,
    numbers,
    refuse,
    shown,
)

Floats = npt.NDArray[np.float64]
TURN = 2.0 * math.pi
MOST_PULLS = 10**15  # of a path: counts stay exact as floats
MOST_ARMS = 10**6  # of a problem; no method is for more
PILOT, PILOT_ARMS = 1000, 16  # draws, and arms, for the standard deviation of a noise that does not say


def normal_shock(rng: Any, *world: Any) -> float:
    return standard_normal(rng)


def uniform_shock(rng: Any, *world: Any) -> float:
    return uniform(rng)


def laplace_shock(rng: Any, *world: Any) -> float:
    """Inverse of the distribution function of the Laplace law with standard deviation 1."""
    u = uniform(rng) - 0.5
    size = -math.log(max(1.0 - 2.0 * abs(u), 1e-16)) / math.sqrt(2.0)
    return size if u >= 0.0 else -size


def student_shock(rng: Any, means: Floats, scale: float, df: float) -> float:
    """Student's t from two uniforms (Bailey 1994, Math. Comp. 62, 779-781)."""
    u = 1.0 - uniform(rng)  # in (0, 1]
    v = uniform(rng)
    radius = math.sqrt(df * math.expm1(-2.0 / df * math.log(u)))
    return radius * math.cos(TURN * v)


def scaled_reward(shock: float, arm: int, means: Floats, scale: float) -> float:
    return means[arm] + scale * shock  # type: ignore[no-any-return]


def student_reward(shock: float, arm: int, means: Floats, scale: float, df: float) -> float:
    return means[arm] + scale * shock  # type: ignore[no-any-return]


def uniform_reward(shock: float, arm: int, means: Floats, half_width: float) -> float:
    return means[arm] + half_width * (2.0 * shock - 1.0)  # type: ignore[no-any-return]


def bernoulli_reward(shock: float, arm: int, means: Floats) -> float:
    return 1.0 if shock < means[arm] else 0.0


def sample_reward(shock: float, arm: int, values: Floats, starts: npt.NDArray[np.int64]) -> float:
    first = starts[arm]
    return values[first + int(shock * (starts[arm + 1] - first))]  # type: ignore[no-any-return]


def normal_total(rng: Any, arm: int, n: float, means: Floats, sigma: float) -> float:
    return n * means[arm] + sigma * math.sqrt(n) * standard_normal(rng)  # type: ignore[no-any-return]


def normal_part(rng: Any, n: float, rest: float, total: float, means: Floats, sigma: float) -> float:
    """A Brownian bridge: mean total * n / (n + rest), variance sigma^2 n rest / (n + rest)."""
    share = n / (n + rest)
    return total * share + sigma * math.sqrt(share * rest) * standard_normal(rng)


def normal_clear(here: float, there: float, n: float, limit: float, means: Floats, sigma: float) -> bool:
    """A bridge meets its chord with probability exp(-2 here there / (sigma^2 n))."""
    return there > 0.0 and 2.0 * here * there > limit * sigma * sigma * n


def normal_proxy(means: Floats, sigma: float) -> float:
    return sigma


def bernoulli_total(rng: Any, arm: int, n: float, means: Floats) -> float:
    return binomial(rng, n, means[arm])


def bernoulli_part(rng: Any, n: float, rest: float, total: float, means: Floats) -> float:
    """Rewards come in any order: the first n are drawn without replacement from all n + rest."""
    return hypergeometric(rng, n, rest, total)


def bernoulli_clear(here: float, there: float, n: float, limit: float, means: Floats) -> bool:
    """It meets its chord with probability 2 exp(-8 here there (n - 1)(n - 1/2) / n^3) at most."""
    room = 8.0 * here * there * ((n - 1.0) / n) * ((n - 0.5) / n)
    return there > 0.0 and room > (limit + 0.6931471805599453) * n  # ln 2


def bernoulli_proxy(means: Floats) -> float:
    return 0.5


class Noise(ABC):
    """What every noise has; the second group is for skip-ahead alone (docs/skip-ahead.md)."""

    # The sigma with which the noise is sub-Gaussian, E exp(s e) <= exp(s^2 sigma^2 / 2) for every s and arm,
    # as every theorem asks; True: with a sigma that nobody knows. None, unless the author states it.
    sub_gaussian: ClassVar[float | None] = None
    shock: ClassVar[Callable[..., float]]
    reward: ClassVar[Callable[..., float]]

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
        """What is stated of rewards does not hold for a class that draws others, unless it says so."""
        if {"shock", "reward", "world"} & set(vars(cls)):
            for fact in {"sub_gaussian", "span"} - set(vars(cls)):
                setattr(cls, fact, vars(Noise)[fact])

    @property
    def is_sub_gaussian(self) -> bool:
        """Whether its author states that it is."""
        return self.sub_gaussian is not None and self.sub_gaussian is not False

    def span(self, means: tuple[float, ...]) -> tuple[float, float] | None:
        """The least and the largest reward that an arm can give; None unless the author states them."""
        return None

    def check(self, means: tuple[float, ...]) -> None:
        """Refuse means that this noise cannot have; any finite mean will do unless said otherwise."""
        return

    @abstractmethod
    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        """What `shock` and `reward` are handed besides: float64 or int64 arrays, and floats."""

    def sd(self, means: tuple[float, ...]) -> float:
        """The standard deviation of a reward of the noisiest arm; from draws unless a noise knows it.

        It chooses how wide the bins of a law are (docs/streaming.md), and is a part of what `auto` chooses
        a method by (docs/skip-ahead.md).
        """
        means = means or (0.0,)
        world, rng = self.world(means), block_generator(0, 0)
        shocks = [type(self).shock(rng, *world) for _ in range(PILOT)]
        arms = range(min(len(means), PILOT_ARMS))
        return max(float(np.std([type(self).reward(shock, arm, *world) for shock in shocks])) for arm in arms)


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

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        return self.sigma

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

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

    @property
    def sub_gaussian(self) -> float:  # type: ignore[override]
        return self.sigma  # its variance is the parameter, as for a normal law

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        reach = math.sqrt(3.0) * self.sigma
        return min(means) - reach, max(means) + reach

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

    def __post_init__(self) -> None:
        accept(self, sigma=non_negative)

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

    def __post_init__(self) -> None:
        if number("df", self.df, "a finite number above 2, so that the variance exists") <= 2:
            raise refuse("df", self.df, "a finite number above 2, so that the variance exists")
        accept(self, df=number, sigma=non_negative)

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        return np.array(means), self.sigma * math.sqrt((self.df - 2.0) / self.df), self.df

    def sd(self, means: tuple[float, ...]) -> float:
        return self.sigma


@dataclass(frozen=True)
class Bernoulli(Noise):
    """Rewards 1 with the arm's mean as probability, else 0."""

    sub_gaussian: ClassVar[float | None] = 0.5  # Hoeffding's lemma
    shock = staticmethod(uniform_shock)
    reward = staticmethod(bernoulli_reward)
    total = staticmethod(bernoulli_total)
    part = staticmethod(bernoulli_part)
    clear = staticmethod(bernoulli_clear)
    proxy = staticmethod(bernoulli_proxy)

    def check(self, means: tuple[float, ...]) -> None:
        for arm, mean in enumerate(means):
            if not 0.0 <= mean <= 1.0:
                raise refuse(f"means[{arm}]", mean, "between 0 and 1 with Bernoulli rewards")

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        return 0.0, 1.0

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

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        starts = np.cumsum([0, *(len(values) for values in self.samples)], dtype=np.int64)
        return np.concatenate(self.samples), starts

    def sd(self, means: tuple[float, ...]) -> float:
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


@dataclass(frozen=True, init=False)
class Bandit:
    """A bandit: the arms' mean rewards, the noise around them, and names for the arms.

    means: one finite number an arm, at least two. noise: `Gaussian(1.0)` unless given.
    labels: the arms' names in tables and frames; "arm 1", "arm 2", ... unless given.

    >>> problem = Bandit([0.2, 0.8], noise=Gaussian(1.0))
    >>> problem.gaps
    (0.6000000000000001, 0.0)
    """

    means: tuple[float, ...]
    noise: Noise = Gaussian(1.0)
    labels: tuple[str, ...] = ()

    def __init__(
        self, means: Sequence[float] | Floats, noise: Noise | None = None, labels: Sequence[str] = ()
    ) -> None:
        noise = Gaussian(1.0) if noise is None else noise
        if not isinstance(noise, Noise):
            raise refuse("noise", noise, "a noise such as Gaussian(1.0)")
        checked = _check_means(means)
        noise.check(checked)
        object.__setattr__(self, "means", checked)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "labels", _check_labels(labels, len(checked)))

    @classmethod
    def from_samples(cls, samples: Mapping[str, Sequence[float] | Floats]) -> Bandit:
        """Arms resampled from a user's own observations; their means are the samples' means.

        >>> Bandit.from_samples({"A": [0.0, 1.0], "B": [0.0, 1.0, 1.0, 1.0]}).means
        (0.5, 0.75)
        """
        if not isinstance(samples, Mapping) or len(samples) < 2:
            raise refuse("samples", samples, "a mapping of at least two arms to their observations")
        labels = _check_labels(list(samples), len(samples))
        arrays = tuple(
            _check_sample(f"samples[{shown(label)}]", values)
            for label, values in zip(labels, samples.values(), strict=True)
        )
        return cls([_mean(values) for values in arrays], noise=Resampled(arrays), labels=labels)

    def check_sums(self, horizon: int) -> None:
        """Refuse means so large that what a path earns or loses is no float."""
        size = max(*map(abs, self.means), *self.gaps)
        if math.isinf(size * (horizon + self.arms)):
            raise refuse("means", self.means, f"so small that {horizon} pulls add up to a finite number")

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.means)

    @property
    def gaps(self) -> tuple[float, ...]:
        """Best mean minus each arm's mean."""
        best = max(self.means)
        return tuple(best - mean for mean in self.means)


def _check_means(means: Any) -> tuple[float, ...]:
    checked = numbers("means", means, 2, "at least two numbers, one per arm, in a list", MOST_ARMS)
    if math.isinf(max(checked) - min(checked)):
        raise refuse("means", checked, "so small that the gap between them is finite")
    return checked


def _check_labels(labels: Any, arms: int) -> tuple[str, ...]:
    allowed = f"{arms} different names, one per arm"
    try:
        names = () if isinstance(labels, UNORDERED) else tuple(str(label) for label in labels)
    except Exception:  # nothing that can be gone through, or a name that cannot be written
        raise refuse("labels", labels, allowed) from None
    if not names and not isinstance(labels, (str, bytes)):
        return tuple(f"arm {arm + 1}" for arm in range(arms))
    if len(names) != arms or len(set(names)) != arms:
        raise refuse("labels", labels, allowed)
    return names


def _mean(values: Floats) -> float:
    with np.errstate(over="ignore"):
        mean = float(np.mean(values))
    return mean if math.isfinite(mean) else math.fsum((values / values.size).tolist())  # the sum is too large


def _check_sample(field: str, values: Any) -> Floats:
    array = array_of(field, values, "a non-empty array of finite numbers")
    if array.ndim != 1 or array.size == 0:
        raise refuse(field, values, "a non-empty array of finite numbers")
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise refuse(f"{field}[{wrong[0]}]", float(array[wrong[0]]), "a finite number")
    array.setflags(write=False)
    return array
