"""The linear bandit: a hidden vector theta, the actions of every round, and the noise around a' theta."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.checks import numbers, refuse, whole
from lighttail.linear.actions import Actions, as_actions
from lighttail.noises import Gaussian, Noise
from lighttail.problems import MOST_PULLS, Problem
from lighttail.records import Counts, Floats, Losses, Record

MOST_DIM = 10**5  # dimensions at most: a matrix with this number of rows takes 80 GB
SLACK = 1e-9  # a length up to 1 + SLACK counts as 1, because of rounding


@dataclass(frozen=True, init=False)
class LinearBandit(Problem):
    """A linear bandit: in each round some actions are offered; action a earns a' theta + noise.

    theta: the hidden vector, d numbers.
    actions: an array (A x d) of actions that are offered in every round; `SphereActions(A)` or
        `BallActions(A)` for new actions in each round; an array (rounds x A x d) of your own contexts, or the
        path of an .npy file with such an array, which is read as it is needed.
    noise: `Gaussian(1.0)` by default.

    The regret of a round is measured against the best action of that round. The paper's theorem assumes that
    no action is longer than 1 and that no entry of theta exceeds 1 in size; otherwise there is a warning.

    >>> problem = LinearBandit([0.6, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> problem.dim, problem.means
    (2, (0.6, 0.0))
    """

    theta: tuple[float, ...]
    actions: Actions
    noise: Noise
    independent = False
    linear = True
    policies = "a linear one, such as LinearUCB(LinearLightTailed(kappa=0.2)), with a LinearBandit"
    dear = 32
    most_steps = 10**10

    def __init__(self, theta: Sequence[float] | Floats, actions: Any, noise: Noise | None = None) -> None:
        noise = Gaussian(1.0) if noise is None else noise
        if not isinstance(noise, Noise) or not noise.moves:
            allowed = "a noise around any mean, such as Gaussian(1.0) or one whose class states moves = True"
            raise refuse("noise", noise, allowed)
        checked = numbers("theta", theta, 1, "a list of at least one number", MOST_DIM)
        source = as_actions(actions)
        source.check(len(checked))
        vars(self).update(theta=checked, actions=source, noise=noise)
        self.check_sums(1)
        _check_means(noise, np.array(checked), source)
        if not self.within_theorem:
            warnings.warn(
                "the paper's theorem assumes that no action is longer than 1 and that no entry of theta "
                f"exceeds 1 in size; here they reach {source.longest():.4g} and {max(map(abs, checked)):.4g}",
                stacklevel=2,
            )

    @property
    def dim(self) -> int:
        """The dimension d."""
        return len(self.theta)

    @property
    def fixed(self) -> bool:
        """Whether the same actions are offered in every round."""
        return self.actions.fixed

    @property
    def means(self) -> tuple[float, ...]:  # type: ignore[override]
        """The mean rewards of a fixed set of actions; empty if the actions change."""
        return self.actions.means(np.array(self.theta))

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of a fixed set of actions; empty if the actions change."""
        return tuple(f"action {place + 1}" for place in range(len(self.means)))

    @property
    def within_theorem(self) -> bool:
        """Whether the actions and theta are as short as the paper's theorem assumes."""
        return max(map(abs, self.theta)) <= 1.0 + SLACK and self.actions.longest() <= 1.0 + SLACK

    @property
    def covered(self) -> bool:
        """Whether the problem meets the assumptions of the theorem, whose proof needs two dimensions."""
        return self.noise.is_sub_gaussian and self.within_theorem and self.dim >= 2

    @property
    def means_field(self) -> tuple[str, tuple[float, ...]]:
        return "theta", self.theta

    def check_horizon(self, horizon: Any) -> int:
        pulls = whole("horizon", horizon, 1, most=MOST_PULLS)
        self.actions.check(self.dim, pulls)
        return pulls

    def room(self, paths: int) -> Record:
        return Counts.empty(paths, self.actions.count) if self.fixed else Losses.empty(paths)

    def about(self) -> str:
        """Theta and the actions in two sentences."""
        theta = ", ".join(f"{value:.4g}" for value in self.theta)
        arms = ", ".join(f"{name}: {mean:g}" for name, mean in zip(self.labels, self.means, strict=True))
        offered = f"Mean rewards of the actions: {arms}" if arms else f"Actions of a round: {self.actions!r}"
        return f"A linear bandit with theta = ({theta}). {offered}."

    def world(self) -> tuple[Any, ...]:
        """The arguments that describe the problem to a kernel (`lighttail.kernels.linear`)."""
        source, noise = self.actions.source(self.dim), self.noise.world(self.theta)[1:]
        return np.array(self.theta), source, noise, self.actions.count, self.fixed

    def check_sums(self, horizon: int) -> None:
        if math.isinf(2.0 * self.reach * horizon):
            raise refuse("theta", self.theta, f"so small that {horizon} pulls add up to a finite number")

    @property
    def reach(self) -> float:
        return math.hypot(*self.theta) * self.actions.longest()

    @property
    def products(self) -> int:
        """The multiplications per pull: those for the inverse and those for the indices."""
        return self.dim * (self.dim + self.actions.count)

    @property
    def bytes(self) -> int:
        """The approximate memory of a thread in bytes: eight matrices, and four copies of the actions."""
        return 8 * (8 * self.dim * self.dim + 4 * self.actions.count * self.dim)

    def most_lost(self, horizon: int) -> float:
        return self.actions.most_lost(np.array(self.theta), horizon)

    def worst_loss(self, horizon: int) -> float:
        return self.actions.worst_loss(np.array(self.theta), horizon)


def _check_means(noise: Noise, theta: Floats, actions: Actions) -> None:
    """Raise BadInput if an action may have a mean that the noise cannot have."""
    if noise.mean_range is None:
        return
    (low, high), (least, largest) = noise.mean_range, actions.mean_range(theta)
    if not low <= least <= largest <= high:
        worst = least if least < low else largest
        raise refuse("the mean of an action", worst, noise.allowed_means)
