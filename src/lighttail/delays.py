"""Delays: after how many pulls a reward becomes known, if it ever does.

The reward of round t with a delay of d pulls is known before the choice of round t + 1 + d. With a delay of 0
the reward is known before the next choice. A delay is a frozen dataclass; its `params()` are arguments of the
scalar function `wait`, which draws the delay of one reward: a whole number of pulls as a float, or infinity
for a reward that never becomes known.

>>> as_delay(100)
FixedDelay(pulls=100, never=0.0)
>>> as_delay([0, 3, float("inf")])
ObservedDelays(3 delays, digest fa5f8ba4b88d, never=0.0)
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.checks import accept, array_of, chance, non_negative, refuse, whole
from lighttail.random.streams import uniform

LONGEST = 10**9  # the longest fixed, uniform or observed delay, in pulls
FIXED, UNIFORM, GEOMETRIC, OBSERVED = 0.0, 1.0, 2.0, 3.0  # the laws that `wait` can draw from
NO_DELAYS = np.zeros(1)  # the array of observed delays for a law that has none
NO_DELAYS.flags.writeable = False  # as the observed delays are, so that a kernel fits both


def wait(rng: Any, never: float, law: float, low: float, high: float, delays: Any) -> float:
    """The delay of one reward, or infinity with the chance `never`.

    All laws are in one function, because a kernel is compiled around this function: one kernel then plays
    every delay. FIXED: `low`. UNIFORM: a whole number from `low` to `high`; each has the same chance.
    GEOMETRIC: a draw with P(delay >= d) = exp(low d), by the inverse of the distribution function. OBSERVED:
    one of `delays`; each has the same chance.
    """
    if never > 0.0 and uniform(rng) < never:
        return math.inf
    if law == FIXED:
        return low
    if law == UNIFORM:
        return low + float(int(uniform(rng) * (high - low + 1.0)))
    if law == GEOMETRIC:
        return float(int(math.log(1.0 - uniform(rng)) / low)) if low < 0.0 else 0.0
    return delays[int(uniform(rng) * len(delays))]  # type: ignore[no-any-return]


class Delay(ABC):
    """The members that every delay has. `never` is the chance that a reward never becomes known."""

    never: float

    @abstractmethod
    def params(self) -> tuple[Any, ...]:
        """The arguments of `wait` after `rng`: `never`, the law, its two numbers, and observed delays."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """The longest delay, in pulls, of a reward that becomes known; infinite if delays have no limit."""

    @property
    def shortest(self) -> float:
        """The shortest delay, in pulls, of a reward that becomes known."""
        return 0.0

    @abstractmethod
    def short(self) -> str:
        """The delay in a title, such as "delay 2,000"; empty if every reward is known at once."""

    @abstractmethod
    def lateness(self) -> str:
        """The end of the sentence "Every reward becomes known ..."; empty if rewards are known at once."""

    def words(self) -> str:
        """The delay in one or two sentences; empty if every reward is known at once.

        >>> FixedDelay(2000, never=0.1).words()
        'Every reward becomes known 2,000 pulls late. 10 % of the rewards never become known.'
        """
        known = f"Every reward becomes known {self.lateness()}." if self.lateness() else ""
        never = f"{100 * self.never:g} % of the rewards never become known." if self.never else ""
        return " ".join(filter(None, (known, never)))


@dataclass(frozen=True)
class FixedDelay(Delay):
    """Every reward becomes known after the same number of pulls.

    pulls: the delay. never: the chance that a reward never becomes known.

    >>> FixedDelay(2000).longest
    2000.0
    """

    pulls: int = 0
    never: float = 0.0

    def __post_init__(self) -> None:
        accept(self, pulls=partial(whole, least=0, most=LONGEST), never=chance)

    def params(self) -> tuple[Any, ...]:
        return self.never, FIXED, float(self.pulls), 0.0, NO_DELAYS

    def short(self) -> str:
        return f"delay {self.pulls:,}" if self.pulls else ""

    def lateness(self) -> str:
        return f"{self.pulls:,} pull{'s' if self.pulls > 1 else ''} late" if self.pulls else ""

    @property
    def longest(self) -> float:
        return float(self.pulls)

    shortest = longest


@dataclass(frozen=True)
class UniformDelay(Delay):
    """Every whole number of pulls from `low` to `high` is equally likely.

    never: the chance that a reward never becomes known.
    """

    low: int
    high: int
    never: float = 0.0

    def __post_init__(self) -> None:
        accept(self, low=partial(whole, least=0, most=LONGEST))
        high = partial(whole, least=self.low, why=", the value of low", most=LONGEST)
        accept(self, high=high, never=chance)

    def params(self) -> tuple[Any, ...]:
        return self.never, UNIFORM, float(self.low), float(self.high), NO_DELAYS

    def short(self) -> str:
        return f"delay {self.low:,} to {self.high:,}"

    def lateness(self) -> str:
        return f"{self.low:,} to {self.high:,} pulls late, each number with the same chance"

    @property
    def longest(self) -> float:
        return float(self.high)

    @property
    def shortest(self) -> float:
        return float(self.low)


@dataclass(frozen=True)
class GeometricDelay(Delay):
    """At every pull an open reward becomes known with the same chance, 1 / (1 + mean).

    mean: the mean delay in pulls. never: the chance that a reward never becomes known.
    """

    mean: float
    never: float = 0.0

    def __post_init__(self) -> None:
        accept(self, mean=non_negative, never=chance)
        if self.mean > LONGEST:
            raise refuse("mean", self.mean, f"at most {LONGEST} pulls")

    def params(self) -> tuple[Any, ...]:
        log_stay = math.log(self.mean) - math.log1p(self.mean) if self.mean > 0.0 else 0.0
        return self.never, GEOMETRIC, log_stay, 0.0, NO_DELAYS

    def short(self) -> str:
        return f"delay {self.mean:,.10g} on average"

    def lateness(self) -> str:
        return f"{self.mean:,.10g} pulls late on average, by a geometric law"

    @property
    def longest(self) -> float:
        return math.inf if self.mean > 0.0 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class ObservedDelays(Delay):
    """Delays that are drawn, with replacement, from observed delays.

    delays: whole numbers of pulls; infinity for a reward that never became known. never: the chance that a
    reward never becomes known for another reason.
    """

    delays: npt.NDArray[np.float64]
    never: float = 0.0

    def __post_init__(self) -> None:
        accept(self, delays=_observations, never=chance)

    def params(self) -> tuple[Any, ...]:
        return self.never, OBSERVED, 0.0, 0.0, self.delays

    def short(self) -> str:
        return f"{len(self.delays):,} observed delays"

    def lateness(self) -> str:
        known = self.delays[np.isfinite(self.delays)]
        mean = f", {known.mean():,.4g} pulls on average" if known.size else ""
        lost = 1.0 - known.size / self.delays.size
        never = f", {100 * lost:.3g} % of which never came" if lost else ""
        return f"late by one of {len(self.delays):,} observed delays{mean}{never}"

    @property
    def longest(self) -> float:
        known = self.delays[np.isfinite(self.delays)]
        return float(known.max()) if known.size else 0.0

    @property
    def shortest(self) -> float:
        return float(self.delays.min())

    @property
    def digest(self) -> str:
        """A short name of the observations, for a repr in which they would not fit."""
        return hashlib.sha256(self.delays.tobytes()).hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObservedDelays) and (self.digest, self.never) == (other.digest, other.never)

    def __hash__(self) -> int:
        return hash((self.digest, self.never))

    def __repr__(self) -> str:
        return f"ObservedDelays({len(self.delays)} delays, digest {self.digest}, never={self.never})"


def _observations(field: str, values: Any) -> npt.NDArray[np.float64]:
    allowed = "a list of whole numbers of pulls, 0 or more, or infinity for a reward that never came"
    delays = array_of("delay", values, allowed)
    known = delays[np.isfinite(delays)]
    fits = delays.ndim == 1 and delays.size > 0 and not np.isnan(delays).any() and not (delays < 0.0).any()
    if not fits or not np.all(known == np.floor(known)) or np.any(known > LONGEST):
        raise refuse("delay", values, allowed)
    delays.flags.writeable = False
    return delays


DelayLike = Delay | int | Sequence[float] | npt.NDArray[np.float64] | None


def as_delay(value: Any) -> Delay:
    """`value` as a `Delay`. It may be a delay, a number of pulls, or a list or array of observed delays."""
    # Only for the classes of this module is it certain that no delay exceeds `longest`.
    if type(value).__module__ == __name__ and isinstance(value, Delay):
        return value
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0):
        return ObservedDelays(value)  # type: ignore[arg-type]
    others = " (in pulls), a delay such as GeometricDelay(500), or a list of delays"
    return FixedDelay(whole("delay", value, 0, others, LONGEST))
