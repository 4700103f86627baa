"""A noise states its facts: each buys its feature for a noise of a user's own, and none is assumed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from own_noises import Coins, Exponential, Outspoken, Silent, Wrong

import lighttail as lt
from lighttail import bounds
from lighttail.gpu.run import precision_for
from lighttail.noises.noise import FACTS, SUMS
from lighttail.outcomes.comparison import uncovered
from lighttail.running.prepare import why_not_skip

UCB = lt.UCB(lt.LightTailed(0.2))
MEANS = (0.2, 0.8)
Z = 4.0


def of(noise: lt.Noise, name: str) -> Any:
    """A fact of a noise; of one that depends on the means, there."""
    fact = getattr(noise, name)
    return fact if not callable(fact) or name in SUMS else fact() if name == "tilt" else fact(MEANS)


class Louder(lt.Gaussian):
    """Draws other rewards than the class that it derives from."""

    @staticmethod
    def reward(shock: float, arm: int, means: Any, scale: float) -> float:
        return means[arm] + scale * shock * shock


class Moved:
    """Nothing of ours, with other rewards."""

    @staticmethod
    def reward(shock: float, arm: int, means: Any, scale: float) -> float:
        return means[arm] + 2.0 * scale * shock


class Mixed(Moved, lt.Gaussian):
    """Has its rewards from elsewhere."""


@pytest.mark.parametrize("noise", [Silent(), Louder(1.0), Mixed(1.0)], ids=lambda one: type(one).__name__)
def test_what_is_not_stated_is_not_assumed(noise: lt.Noise) -> None:
    for name in (*FACTS, *SUMS):
        if name != "sd":
            assert of(noise, name) in (None, False), name
    problem = lt.Bandit(MEANS, noise)
    assert not problem.covered
    assert uncovered(problem) == f"no theorem covers {type(noise).__name__} noise"
    assert "whose sums are not drawn at once" in why_not_skip(UCB, problem)
    assert precision_for(None, problem, 100) == "float64"
    with pytest.raises(lt.bounds.NoBound):
        bounds.tail(UCB, problem, 100, 5.0)
    with pytest.raises(ValueError, match=r"^noise must be Gaussian or Bernoulli, or of a class that states"):
        lt.tail_probability(UCB, problem, 50, 20, method="importance")
    with pytest.raises(ValueError, match=r"^problem must be a Bandit with Gaussian noise or Bernoulli"):
        lt.exact_tail(UCB, problem, 50, 20)
    with pytest.raises(ValueError, match=r"^noise must be a noise around any mean, .* moves = True"):
        lt.LinearBandit([0.5, 0.2], [[1.0, 0.0], [0.0, 1.0]], noise)


def test_the_standard_deviation_is_that_of_the_rewards_which_the_class_draws() -> None:
    assert lt.Gaussian(1.0).sd(MEANS) == 1.0
    assert abs(Louder(1.0).sd(MEANS) - math.sqrt(2.0)) < 0.3  # of a squared normal
    assert abs(Mixed(1.0).sd(MEANS) - 2.0) < 0.2


def test_what_is_stated_is_used() -> None:
    """Rewards that equal those of Gaussian, and facts that do: all answers are the same."""
    ours, theirs = (lt.Bandit(MEANS, noise) for noise in (Outspoken(0.7), lt.Gaussian(0.7)))
    assert ours.covered
    assert precision_for(None, ours, 100) == "float32"
    assert bounds.certificate(UCB, ours, 4000, 801.0) == bounds.certificate(UCB, theirs, 4000, 801.0)
    assert lt.exact_tail(UCB, ours, 100, 20) == lt.exact_tail(UCB, theirs, 100, 20)
    weighted = [lt.tail_probability(UCB, one, 60, 30, method="importance", seed=1) for one in (ours, theirs)]
    assert weighted[0] == weighted[1]
    linear = [
        lt.simulate(
            lt.LinearThompson(0.5),
            lt.LinearBandit([0.5, 0.2], np.eye(2), one.noise),
            horizon=50,
            paths=20,
            seed=1,
        )
        for one in (ours, theirs)
    ]
    assert np.array_equal(linear[0].reward, linear[1].reward)


def test_a_tilt_of_ones_own_is_sampled_under() -> None:
    """Exponential rewards, a law that the library does not know: weighted paths agree with plain ones."""
    policy, problem = lt.UCB(lt.Standard(0.5)), lt.Bandit([0.5, 1.0], Exponential())
    plain = lt.simulate(policy, problem, horizon=60, paths=200_000, seed=2).exceedance(22, "pseudo_regret")
    found = lt.tail_probability(policy, problem, 60, 22, method="importance", seed=3)
    assert (found.method, found.reached) == ("importance sampling", True)
    error = math.hypot(plain.high - plain.low, found.high - found.low) / (2.0 * 1.96)
    assert abs(found.value - plain.value) < Z * error
    assert abs(1.3 * found.value - plain.value) > Z * error  # the test's power


def test_a_tilt_of_another_law_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Wrong.tilt must be the tilts of its rewards, but its psi at"):
        lt.tail_probability(UCB, lt.Bandit([0.3, 0.6], Wrong()), 50, 10, method="importance")


def test_two_outcomes_and_a_mean_are_a_law() -> None:
    ours, theirs = (lt.Bandit([0.3, 0.7], noise) for noise in (Coins(), lt.Bernoulli()))
    for policy in (UCB, lt.ThompsonSampling(0.5)):
        chances = [lt.tail_probability(policy, one, 30, 6, method="exact").value for one in (ours, theirs)]
        assert chances[0] == chances[1] > 0.0
    with pytest.raises(ValueError, match=r"^means\[1\] must be between 0 and 1 with Coins rewards"):
        lt.Bandit([0.3, 1.5], Coins())


@pytest.mark.parametrize("noise", [Coins(), lt.Uniform(0.5)], ids=lambda one: type(one).__name__)
def test_a_span_says_what_cannot_happen(noise: lt.Noise) -> None:
    problem = lt.Bandit([0.3, 0.7], noise)
    low = noise.span(problem.means)[0]  # type: ignore[index]
    most = (0.7 - low) * 20
    impossible = lt.tail_probability(UCB, problem, 20, most + 0.1, kind="regret", seed=1)
    assert (impossible.value, impossible.method) == (0.0, "certain")
    assert lt.tail_probability(UCB, problem, 20, most - 12.0, kind="regret", seed=1).value > 0.0
