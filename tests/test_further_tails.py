"""How the tails of the further policies fall with the horizon, against what theory says.

P is the chance of a pseudo regret of at least 0.2 T on means (0.2, 0.8) with normal noise, sigma = 1: that
the worse arm is pulled in a third of the rounds. -ln P / ln T is level for a power of T, -ln P / sqrt T for
an exponential of sqrt T.
"""

from __future__ import annotations

import math
from functools import cache

import pytest
from scipy import special

import lighttail as lt

pytestmark = pytest.mark.slow

PROBLEM, GAP = lt.Bandit([0.2, 0.8]), 0.6


@cache
def exact(policy: lt.Policy, horizon: int) -> float:
    return -math.log(lt.exact_tail(policy, PROBLEM, horizon=horizon, regret=0.2 * horizon))


def seen(policy: lt.Policy, horizon: int, paths: int) -> tuple[float, float]:
    """-ln P, and its standard error, from plain paths."""
    out = lt.simulate(policy, PROBLEM, horizon=horizon, paths=paths, seed=1)
    chance = out.exceedance(0.2 * horizon, "pseudo_regret").value
    return -math.log(chance), math.sqrt((1.0 - chance) / (chance * paths))


def test_eqo_falls_exponentially_in_the_root_of_the_horizon() -> None:
    """-ln P grows with sqrt T by 2 kappa gap / (sigma^2 sqrt K), the certificate's rate."""
    policy, rate = lt.UCB(lt.Eqo(0.5)), 2.0 * 0.5 * GAP / math.sqrt(2.0)
    low, high = exact(policy, 250), exact(policy, 1000)
    slope = (high - low) / (math.sqrt(1000) - math.sqrt(250))
    assert slope == pytest.approx(rate, rel=0.03)  # 0.4349 and 0.4243
    assert slope != pytest.approx(1.25 * rate, rel=0.03)  # control
    assert high / low > 1.9  # control: over ln T it is far from level (1.25 would be)


def test_moss_falls_like_a_power_of_the_horizon() -> None:
    """The exponent goes to kappa^2 / (2 sigma^2) from above, as that of the standard bonus does."""
    over_log = [exact(lt.UCB(lt.Moss(0.8)), horizon) / math.log(horizon) for horizon in (250, 1000)]
    standard = [exact(lt.UCB(lt.Standard(0.8)), horizon) / math.log(horizon) for horizon in (250, 1000)]
    assert 0.9 < over_log[1] / over_log[0] < 1.0
    assert 0.32 < over_log[1] < standard[1]
    assert over_log == pytest.approx(standard, rel=0.05)
    light = [exact(lt.UCB(lt.Eqo(0.5)), horizon) / math.log(horizon) for horizon in (250, 1000)]
    assert light[1] / light[0] > 1.5  # control


def test_the_two_part_bonus_falls_as_one_bad_reward_does() -> None:
    """P is close to Phi(-(cap (T/3)^(beta/2) + gap) / sigma), so that -ln P grows with T^beta.

    That is the chance of a first reward of the best arm so low that its index stays below the other arm's
    mean for a third of the rounds.
    """

    def one_bad_reward(horizon: int, cap: float) -> float:
        return -float(special.log_ndtr(-(cap * (horizon / 3.0) ** 0.25 + GAP)))

    policy, ratios = lt.UCB(lt.TwoPart(0.8, 0.8)), []
    for horizon in (500, 8000):
        found = lt.tail_probability(policy, PROBLEM, horizon, 0.2 * horizon, seed=1)
        assert found.reached
        ratios.append(-math.log(found.value) / one_bad_reward(horizon, 0.8))
    assert 0.8 < ratios[0] < ratios[1] < 1.0  # 0.83 and 0.99
    assert ratios[1] > 0.95
    assert ratios[1] * one_bad_reward(8000, 0.8) / one_bad_reward(8000, 1.0) < 0.8  # control: the cap


@pytest.mark.parametrize("policy", [lt.KlUcb(0.0, sigma=0.57), lt.Imed(sigma=0.57)], ids=str)
def test_optimal_indices_fall_like_a_power_of_the_horizon(policy: lt.Policy) -> None:
    """Level over ln T, above the limit (assumed sigma / sigma)^2 = 0.32; z = 4."""
    (low, low_error), (high, high_error) = seen(policy, 250, 20_000), seen(policy, 2000, 10_000)
    level, error = high / math.log(2000), high_error / math.log(2000)
    assert level - 4.0 * error > 0.32
    assert 0.85 - 4.0 * error / level < level / (low / math.log(250)) < 1.1 + 4.0 * error / level
    assert high + 4.0 * high_error < 0.6 * math.sqrt(8.0) * (low - 4.0 * low_error)  # control: sqrt T


def test_inflated_thompson_falls_faster_than_powers() -> None:
    """From T = 50 to 200: -ln P grows at least as sqrt T does, far more than ln T; z = 4."""
    policy = lt.InflatedThompson(0.8)
    (low, low_error), (high, high_error) = seen(policy, 50, 20_000), seen(policy, 200, 40_000)
    least = (high - 4.0 * high_error) / (low + 4.0 * low_error)
    assert least > 2.0  # sqrt(200 / 50)
    assert least > 1.4 * math.log(200) / math.log(50)
    plain = lt.ThompsonSampling(0.57)
    (low, low_error), (high, high_error) = seen(plain, 50, 20_000), seen(plain, 200, 40_000)
    assert (high + 4.0 * high_error) / (low - 4.0 * low_error) < 2.0  # control: a tail that is not light


def test_a_commitment_does_not_improve_with_the_horizon() -> None:
    chances = [seen(lt.ExploreThenCommit(8), horizon, 20_000) for horizon in (50, 400)]
    right = -float(special.log_ndtr(-GAP * math.sqrt(8 / 2)))
    for value, error in chances:
        assert abs(value - right) <= 4.0 * error
        assert abs(value + float(special.log_ndtr(-GAP * math.sqrt(10 / 2)))) > 4.0 * error  # control
