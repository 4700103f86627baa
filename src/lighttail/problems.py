"""The problems: what `simulate` plays a policy on, and the bandit of arms with known means."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lighttail.checks import UNORDERED, array_of, numbers, refuse, shown, whole
from lighttail.noises import Bernoulli, Gaussian, Laplace, Noise, Resampled, StudentT, Uniform
from lighttail.records import Counts, Record
from lighttail.rehearsal import check_finite, try_noise

__all__ = [
    "MOST_PULLS",
    "Bandit",
    "Bernoulli",
    "Gaussian",
    "Laplace",
    "Noise",
    "Problem",
    "Resampled",
    "StudentT",
    "Uniform",
    "has_arms",
]

Floats = npt.NDArray[np.float64]
MOST_PULLS = 10**15  # of a path: counts stay exact as floats
MOST_SUM = 1e150  # of rewards: its square is a float, and so are the squares of many paths
FAR = 100.0  # standard deviations that hardly any reward is away
MOST_ARMS = 10**6  # of a problem; no method is for more


class Problem(ABC):
    """What `simulate` and all that rests on it ask of a problem; the defaults are those of arms.

    means, labels: of the arms, or of a fixed set of actions; empty where the actions change.
    """

    means: tuple[float, ...]
    noise: Noise
    labels: tuple[str, ...]
    # Whether a reward of one arm tells nothing of the others: exact laws, tilts and the GPU need it.
    independent: ClassVar[bool] = True
    # Whether it is for policies that are handed vectors, whose class states `linear = True`.
    linear: ClassVar[bool] = False
    # Policies for it, in a message.
    policies: ClassVar[str]
    # A pull costs about as much as so many pulls of an arm: blocks are as much shorter.
    dear: ClassVar[int] = 1
    # The most pulls of a path that are played one by one.
    most_steps: ClassVar[int] = 10**11

    @property
    @abstractmethod
    def size(self) -> int:
        """What `policy.params` is handed beside the horizon: how many arms, or the dimension."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """No mean reward is larger in size."""

    @property
    @abstractmethod
    def given(self) -> tuple[str, tuple[float, ...]]:
        """The name and the value of the field that decides the means, for messages."""

    @abstractmethod
    def world(self) -> tuple[Any, ...]:
        """What the kernels are handed."""

    @abstractmethod
    def room(self, paths: int) -> Record:
        """Room for what is written down of so many paths."""

    @abstractmethod
    def check_horizon(self, horizon: Any) -> int:
        """Refuse a number of pulls that a path cannot have."""

    @abstractmethod
    def check_sums(self, horizon: int) -> None:
        """Refuse rewards so large that what a path earns or loses is no float."""

    @abstractmethod
    def most_lost(self, horizon: int) -> float:
        """An upper bound on the pseudo regret of any policy."""

    @abstractmethod
    def worst_loss(self, horizon: int) -> float:
        """What always pulling the worst arm, or taking the worst action of every round, loses on average."""

    def default_threshold(self, horizon: int) -> float:
        """The loss that is asked about where none is named, to two digits.

        It is a third of the largest possible: 0.2 T on the paper's problems, which have a gap of 0.6.
        """
        return float(f"{self.worst_loss(horizon) / 3.0 or 0.2 * horizon:.2g}")

    @abstractmethod
    def about(self) -> str:
        """The problem without its noise, in a sentence or two."""

    @property
    def covered(self) -> bool:
        """Whether the problem is one that the paper's theorems are about."""
        return self.noise.is_sub_gaussian

    @property
    def opening(self) -> int:
        """Pulls with which every path may begin, whatever the policy learns."""
        return 0

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What tells a worker that its problem is the caller's, beside the first pulls of two paths."""
        return ()

    @property
    def products(self) -> int:
        """Products of two numbers that a pull takes, where that decides its time."""
        return 0

    @property
    def bytes(self) -> int:
        """The memory that a thread works with, about, where it is worth a question."""
        return 0

    def played(self) -> str:
        """What of a problem decides its paths, as text."""
        return repr(self)

    def check(self, policy: Any, horizon: Any) -> int:
        """Refuse what cannot be played, before any work; the horizon as a plain number."""
        if policy.linear is not self.linear:
            raise refuse("policy", policy, self.policies)
        pulls = self.check_horizon(horizon)
        self.check_sums(pulls)
        self._check_squares(pulls)
        policy.check(pulls, self.size)
        return pulls

    def _check_squares(self, horizon: int) -> None:
        """Refuse rewards of such a size that the squares of their sums, as in a variance, are no floats."""
        (field, value), noise = self.given, self.noise
        allowed = f"so small that {horizon} pulls add up to less than {MOST_SUM:g}"
        if self.reach * (horizon + 1) > MOST_SUM:
            raise refuse(field, value, allowed)
        largest = try_noise(noise, value)
        if not noise.states_sd:  # it is measured, from such rewards
            check_finite(noise, largest)
        if not FAR * noise.sd(self.means) * horizon <= MOST_SUM:
            raise refuse("noise", noise, allowed)
        check_finite(noise, largest)


def has_arms(problem: Any) -> bool:
    """Whether it is a problem with arms that tell nothing of each other."""
    return isinstance(problem, Problem) and problem.independent


@dataclass(frozen=True, init=False)
class Bandit(Problem):
    """A bandit: the arms' mean rewards, the noise around them, and names for the arms.

    means: one finite number an arm, at least two. noise: `Gaussian(1.0)` unless given.
    labels: the arms' names in tables and frames; "arm 1", "arm 2", ... unless given.

    >>> problem = Bandit([0.2, 0.8], noise=Gaussian(1.0))
    >>> problem.gaps
    (0.6000000000000001, 0.0)
    """

    means: tuple[float, ...]
    noise: Noise
    labels: tuple[str, ...]
    policies: ClassVar[str] = "for arms, such as UCB(LightTailed(kappa=0.2)), with a Bandit"

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

    def check_horizon(self, horizon: Any) -> int:
        each = f", one pull for each of the {self.arms} arms"
        return whole("horizon", horizon, self.arms, each, MOST_PULLS)

    def world(self) -> tuple[Any, ...]:
        """What the kernels are handed: the world of the noise."""
        return self.noise.world(self.means)

    def room(self, paths: int) -> Counts:
        return Counts.empty(paths, self.arms)

    def most_lost(self, horizon: int) -> float:
        """Of any policy: the worst arm is pulled always."""
        return max(self.gaps) * horizon

    worst_loss = most_lost

    def about(self) -> str:
        """The arms in a sentence."""
        arms = ", ".join(f"{name}: {mean:g}" for name, mean in zip(self.labels, self.means, strict=True))
        return f"Mean rewards of the arms: {arms}."

    def played(self) -> str:
        """The names of the arms decide nothing."""
        return repr(Bandit(self.means, self.noise))

    @property
    def numbers(self) -> tuple[Any, ...]:
        return self.world()

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.means)

    @property
    def size(self) -> int:
        return self.arms

    @property
    def opening(self) -> int:
        return self.arms

    @property
    def reach(self) -> float:
        return max(map(abs, self.means))

    @property
    def given(self) -> tuple[str, tuple[float, ...]]:
        return "means", self.means

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
        names = (
            () if isinstance(labels, UNORDERED) else tuple(str(label) for label in islice(labels, arms + 1))
        )
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
