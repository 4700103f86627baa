"""The problems on which `simulate` plays a policy; `Bandit` is the problem of arms with known means."""

from __future__ import annotations

import math
import operator
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from lighttail.checks import UNORDERED, array_of, numbers, refuse, shown, whole
from lighttail.members import shipped
from lighttail.noises import Gaussian, Noise, Resampled
from lighttail.records import Counts, Floats, Record
from lighttail.rehearsal import check_finite, try_noise

MOST_PULLS = 10**15  # pulls per path: floats hold such counts exactly
MOST_SUM = 1e150  # reward per path: its square, added up over many paths, is still a float
FAR = 100.0  # standard deviations: hardly any reward is farther from its mean
MOST_ARMS = 10**6  # arms per problem: no method is made for more


class Problem(ABC):
    """The members that `simulate` and the functions that call it use. The defaults are those of a Bandit.

    means, labels: of the arms, or of the actions if the set of actions is fixed; empty if the actions change.
    """

    means: tuple[float, ...]
    noise: Noise
    labels: tuple[str, ...]
    # Whether a reward of one arm tells nothing about the other arms: exact laws, tilts and the GPU need this.
    independent: ClassVar[bool] = True
    # Whether the problem is for policies whose actions are vectors: their class states `linear = True`.
    linear: ClassVar[bool] = False
    # The policies that fit the problem, as a message names them.
    policies: ClassVar[str]
    # The cost of a pull, in pulls of an arm: blocks have fewer paths by this factor.
    dear: ClassVar[int] = 1
    # The most pulls per path that are played one by one.
    most_steps: ClassVar[int] = 10**11

    @property
    @abstractmethod
    def dim(self) -> int:
        """The second argument of `policy.params`: the number of arms, or the dimension."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """An upper bound on the absolute value of every mean reward."""

    @property
    @abstractmethod
    def means_field(self) -> tuple[str, tuple[float, ...]]:
        """The name and the value of the field that determines the means, for messages."""

    @abstractmethod
    def world(self) -> tuple[Any, ...]:
        """The arguments that describe the problem to a kernel."""

    @abstractmethod
    def room(self, paths: int) -> Record:
        """An empty record for this number of paths."""

    @abstractmethod
    def check_horizon(self, horizon: Any) -> int:
        """The horizon as an int. Raises BadInput if a path cannot have this number of pulls."""

    @abstractmethod
    def check_sums(self, horizon: int) -> None:
        """Raise BadInput if the sum of a path's rewards, or its regret, may be too large for a float."""

    @abstractmethod
    def most_lost(self, horizon: int) -> float:
        """An upper bound on the pseudo regret of any policy."""

    @abstractmethod
    def worst_loss(self, horizon: int) -> float:
        """The mean regret of pulling the worst arm in every round, or the worst action of every round."""

    def default_threshold(self, horizon: int) -> float:
        """The loss for which a chance is shown if the user names none, rounded to two digits.

        This loss is a third of the largest possible loss. It is 0.2 T on the paper's problems, whose largest
        gap is 0.6.
        """
        return float(f"{self.worst_loss(horizon) / 3.0 or 0.2 * horizon:.2g}")

    @abstractmethod
    def about(self) -> str:
        """The problem without its noise, in one or two sentences."""

    @property
    def sigma(self) -> float:
        """The noise of the problem: the standard deviation of a reward of the noisiest arm.

        This is sqrt(p (1 - p)) for conversions at the rate p. If the class of the noise does not compute it,
        it is measured from draws.

        >>> from lighttail.noises import Bernoulli
        >>> round(Bandit([0.03, 0.04], Bernoulli()).sigma, 3)
        0.196
        """
        if not self.noise.states_sd:  # draws of functions that may be wrong: a trial refuses them
            check_finite(self.noise, _largest_reward(self.noise, self.means_field[1]))
        return self.noise.sd(self.means)

    @property
    def covered(self) -> bool:
        """Whether the problem meets the assumptions of the paper's theorems."""
        return self.noise.is_sub_gaussian

    @property
    def products(self) -> int:
        """The number of multiplications per pull; 0 if they do not determine the time of a pull."""
        return 0

    @property
    def bytes(self) -> int:
        """The approximate memory of a thread in bytes; 0 if it is negligible."""
        return 0

    def played(self) -> str:
        """Everything about the problem that determines its paths, as text."""
        return repr(self)

    def check(self, policy: Any, horizon: Any) -> int:
        """The horizon as an int. Raises BadInput, before any work, if the policy cannot play this problem."""
        if policy.linear is not self.linear:
            raise refuse("policy", policy, self.policies)
        pulls = self.check_horizon(horizon)
        self.check_sums(pulls)
        self._check_squares(pulls)
        policy.check(pulls, self.dim)
        return pulls

    def _check_squares(self, horizon: int) -> None:
        """Raise BadInput if the square of a sum of rewards may be too large for a float."""
        (field, value), noise = self.means_field, self.noise
        allowed = f"so small that {horizon} pulls add up to less than {MOST_SUM:g}"
        if self.reach * (horizon + 1) > MOST_SUM:
            raise refuse(field, value, allowed)
        largest = _largest_reward(noise, value)
        if math.isinf(largest) and not noise.states_sd:  # `sd` is then measured, from rewards like these
            check_finite(noise, largest)
        if not FAR * noise.sd(self.means) * horizon <= MOST_SUM:
            raise refuse("noise", noise, allowed)
        if math.isinf(largest):
            check_finite(noise, largest)


_tried: list[tuple[Any, tuple[Any, ...], float]] = []  # the latest trial of a shipped noise


def _largest_reward(noise: Noise, means: tuple[float, ...]) -> float:
    """The largest absolute reward in a trial of a noise.

    A noise that lighttail ships is not tried twice in a row, unless its means or its class have changed. A
    user's noise is tried every time.
    """
    kind = type(noise)
    if not shipped(noise):
        return try_noise(noise, means)
    tried = (means, kind.shock, kind.reward, kind.world)
    for known, with_these, largest in _tried:
        if known() is noise and all(map(operator.is_, tried, with_these)):
            return largest
    largest = try_noise(noise, means)
    _tried[:] = [(weakref.ref(noise), tried, largest)]
    return largest


def has_arms(problem: Any) -> bool:
    """Whether `problem` is a problem whose arms tell nothing about each other."""
    return isinstance(problem, Problem) and problem.independent


@dataclass(frozen=True, init=False)
class Bandit(Problem):
    """A bandit: the arms' mean rewards, the noise around them, and names for the arms.

    means: one finite number per arm; at least two arms. noise: `Gaussian(1.0)` by default.
    labels: the arms' names in tables and frames; "arm 1", "arm 2", ... by default.

    >>> problem = Bandit([0.2, 0.8], noise=Gaussian(1.0))
    >>> problem.gaps
    (0.6000000000000001, 0.0)
    """

    means: tuple[float, ...]
    noise: Noise
    labels: tuple[str, ...]
    policies = "for arms, such as UCB(LightTailed(kappa=0.2)), with a Bandit"

    def __init__(
        self, means: Sequence[float] | Floats, noise: Noise | None = None, labels: Sequence[str] = ()
    ) -> None:
        noise = Gaussian(1.0) if noise is None else noise
        if not isinstance(noise, Noise):
            raise refuse("noise", noise, "a noise such as Gaussian(1.0)")
        checked = _check_means(means)
        noise.check(checked)
        vars(self).update(means=checked, noise=noise, labels=_check_labels(labels, len(checked)))

    @classmethod
    def from_samples(cls, samples: Mapping[str, Sequence[float] | Floats]) -> Bandit:
        """A bandit whose rewards are drawn, with replacement, from a user's observations of each arm.

        samples: the observations of each arm by the arm's name. The mean of an arm is the mean of its
        observations.

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
        if math.isinf(max(self.reach, *self.gaps) * (horizon + self.arms)):
            raise refuse("means", self.means, f"so small that {horizon} pulls add up to a finite number")

    def check_horizon(self, horizon: Any) -> int:
        each = f", one pull for each of the {self.arms} arms"
        return whole("horizon", horizon, self.arms, each, MOST_PULLS)

    def world(self) -> tuple[Any, ...]:
        return self.noise.world(self.means)

    def room(self, paths: int) -> Counts:
        return Counts.empty(paths, self.arms)

    def most_lost(self, horizon: int) -> float:
        """The pseudo regret of pulling the worst arm in every round."""
        return max(self.gaps) * horizon

    worst_loss = most_lost

    def about(self) -> str:
        """The means of the arms in a sentence."""
        arms = ", ".join(f"{name}: {mean:g}" for name, mean in zip(self.labels, self.means, strict=True))
        return f"Mean rewards of the arms: {arms}."

    def played(self) -> str:
        """The problem without the names of the arms, which do not change a path."""
        return repr(Bandit(self.means, self.noise))

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.means)

    @property
    def dim(self) -> int:
        return self.arms

    @property
    def reach(self) -> float:
        return max(map(abs, self.means))

    @property
    def means_field(self) -> tuple[str, tuple[float, ...]]:
        return "means", self.means

    @property
    def gaps(self) -> tuple[float, ...]:
        """The best mean minus each arm's mean."""
        best = max(self.means)
        return tuple(best - mean for mean in self.means)


def _check_means(means: Any) -> tuple[float, ...]:
    checked = numbers("means", means, 2, "at least two numbers, one per arm, in a list", MOST_ARMS)
    if math.isinf(max(checked) - min(checked)):
        raise refuse("means", checked, "so small that the gap between them is finite")
    return checked


def _check_labels(labels: Any, arms: int) -> tuple[str, ...]:
    allowed = f"{arms} different names, one per arm"
    names: tuple[str, ...] = ()
    try:
        if not isinstance(labels, UNORDERED):
            names = tuple(str(label) for label in islice(labels, arms + 1))
    except Exception:  # `labels` cannot be iterated over, or a label cannot be converted to text
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
