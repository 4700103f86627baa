"""The problems: what `simulate` plays a policy on, and the bandit of arms with known means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttail.noises import Bernoulli, Gaussian, Laplace, Noise, Resampled, StudentT, Uniform
from lighttail.validation import UNORDERED, array_of, numbers, refuse, shown

__all__ = [
    "MOST_PULLS",
    "Bandit",
    "Bernoulli",
    "Gaussian",
    "Laplace",
    "Noise",
    "Resampled",
    "StudentT",
    "Uniform",
]

Floats = npt.NDArray[np.float64]
MOST_PULLS = 10**15  # of a path: counts stay exact as floats
MOST_ARMS = 10**6  # of a problem; no method is for more


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
    noise: Noise
    labels: tuple[str, ...]

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
