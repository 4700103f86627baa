"""The exact law: tabulated values down to 1e-18, simulation wherever it reaches, and its own consistency."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

import lighttail as lt

exact = importlib.import_module("lighttail.tails.exact")
PROBLEM = lt.Bandit([0.2, 0.8])

# P(pseudo regret > 0.2 T), theta = (0.2, 0.8), sigma = 1, found independently of this code.
TABLE = {
    ("LightTailed", 500): 1.05742e-5,
    ("LightTailed", 1000): 1.89137e-8,
    ("LightTailed", 2000): 1.61046e-12,
    ("LightTailed", 4000): 1.57397e-18,
    ("Standard", 500): 1.18274e-2,
    ("Standard", 1000): 7.5318e-3,
    ("Standard", 2000): 5.0243e-3,
    ("Standard", 4000): 3.4538e-3,
}
TUNED = {"LightTailed": lt.UCB(lt.LightTailed(0.2)), "Standard": lt.UCB(lt.Standard(0.8))}


@pytest.mark.parametrize(("name", "horizon"), TABLE)
def test_the_tabulated_tails(name: str, horizon: int) -> None:
    value = lt.exact_tail(TUNED[name], PROBLEM, horizon=horizon, regret=0.2 * horizon + 1e-6)
    assert value == pytest.approx(TABLE[name, horizon], rel=2e-4)


CASES = [
    (lt.UCB(lt.LightTailed(0.1)), lt.Bandit([0.0, 0.3], lt.Gaussian(0.5)), 120),
    (lt.UCB(lt.Standard(0.3)), lt.Bandit([1.0, -0.5], lt.Gaussian(3.0)), 200),
    (lt.UCB(lt.ArmOptimal(0.4, 0.3)), lt.Bandit([5.0, 5.2]), 150),
    (lt.UCB(lt.Standard(2.0)), lt.Bandit([0.2, 0.8]), 7),
    (lt.UCB(lt.LightTailed(1.0)), lt.Bandit([0.2, 0.8]), 3),
]


@pytest.mark.parametrize(("policy", "problem", "horizon"), CASES, ids=lambda case: str(case)[:24])
def test_the_whole_law_agrees_with_simulation(policy: lt.Policy, problem: lt.Bandit, horizon: int) -> None:
    """At every number of pulls within z = 4.5; a law shifted by one pull fails the same check."""
    paths = 200_000
    law = lt.exact_law(policy, problem, horizon=horizon)
    bad = int(np.argmin(problem.means))
    pulls = lt.simulate(policy, problem, horizon=horizon, paths=paths, seed=11).pulls[:, bad]
    seen = np.array([(pulls >= n).mean() for n in range(horizon + 1)])

    def furthest(survival: np.ndarray) -> float:
        error = np.sqrt(np.maximum(survival * (1 - survival), 1.0 / paths) / paths)
        return float(np.abs((seen - survival) / error).max())

    assert furthest(law.survival) < 4.5
    assert furthest(np.append(law.survival[1:], 0.0)) > 10.0
    assert furthest(np.append(1.0, law.survival[:-1])) > 10.0


def test_a_users_own_bonus_has_an_exact_law() -> None:
    class Own(lt.Bonus):
        @staticmethod
        def radius(n: float, clock: float) -> float:
            return 2.0 / math.sqrt(n + 1.0)

        def params(self, horizon: float, arms: int) -> tuple[float, ...]:
            return ()

    policy = lt.UCB(Own())
    out = lt.simulate(policy, PROBLEM, horizon=60, paths=100_000, seed=1)
    tail = lt.exact_tail(policy, PROBLEM, horizon=60, regret=9.0)
    seen = out.exceedance(9.0, "pseudo_regret").value
    assert abs(seen - tail) < 4.5 * math.sqrt(tail * (1 - tail) / 100_000)


def test_single_tails_and_the_whole_law_are_one() -> None:
    policy = TUNED["Standard"]
    law = lt.exact_law(policy, PROBLEM, horizon=200)
    assert law.survival[0] == law.survival[1] == 1.0
    assert law.survival[200] == 0.0
    assert np.all(np.diff(law.survival[1:]) <= 1e-6)
    for pulls in (2, 3, 9, 17, 40, 100, 198, 199):
        single = lt.exact_tail(policy, PROBLEM, horizon=200, regret=0.6 * pulls)
        assert law.tail(0.6 * pulls) == pytest.approx(single, rel=5e-4)


def test_more_points_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lt.exact_tail(TUNED["LightTailed"], PROBLEM, horizon=500, regret=101)
    monkeypatch.setattr("lighttail.kernels.crossing.SPACING", 0.125)
    monkeypatch.setattr(exact, "COARSE", 97)
    monkeypatch.setattr(exact, "FINE", 401)
    after = lt.exact_tail(TUNED["LightTailed"], PROBLEM, horizon=500, regret=101)
    assert before != after
    assert before == pytest.approx(after, rel=5e-5)


def test_units_do_not_matter() -> None:
    """Rewards and kappa ten times as large, shifted by 7: the same law of the pulls."""
    one = lt.exact_tail(lt.UCB(lt.LightTailed(0.2)), PROBLEM, horizon=300, regret=60)
    ten = lt.Bandit([9.0, 15.0], lt.Gaussian(10.0))
    assert lt.exact_tail(lt.UCB(lt.LightTailed(2.0)), ten, horizon=300, regret=600) == pytest.approx(
        one, rel=1e-4
    )


def test_the_ends_of_the_range() -> None:
    policy = TUNED["LightTailed"]
    assert lt.exact_tail(policy, PROBLEM, horizon=50, regret=0.6) == 1.0  # each arm is pulled once
    assert lt.exact_tail(policy, PROBLEM, horizon=50, regret=-1) == 1.0
    assert lt.exact_tail(policy, PROBLEM, horizon=50, regret=0.6 * 50) == 0.0
    assert lt.exact_tail(policy, lt.Bandit([0.5, 0.5]), horizon=50, regret=1e-9) == 0.0
    assert lt.exact_tail(policy, PROBLEM, horizon=2, regret=1.2) == 0.0


@pytest.mark.parametrize(
    ("policy", "problem", "horizon", "sentence"),
    [
        (
            lt.UCB(lt.AnyTime(0.2)),
            PROBLEM,
            50,
            "policy must be UCB with a bonus that does not change with time",
        ),
        (lt.ThompsonSampling(0.2), PROBLEM, 50, "policy must be UCB"),
        (TUNED["Standard"], lt.Bandit([0.1, 0.2, 0.3]), 50, "problem must be a Bandit with two arms"),
        (TUNED["Standard"], lt.Bandit([0.1, 0.2], lt.Bernoulli()), 50, "Gaussian noise"),
        (TUNED["Standard"], lt.Bandit([0.1, 0.2], lt.Gaussian(0.0)), 50, "sigma must be above 0"),
        (TUNED["Standard"], PROBLEM, 1, "horizon must be a whole number of at least 2"),
    ],
)
def test_what_has_no_exact_law_is_refused(
    policy: lt.Policy, problem: lt.Bandit, horizon: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        lt.exact_tail(policy, problem, horizon=horizon, regret=1.0)
    with pytest.raises(ValueError, match="regret must be a finite number"):
        lt.exact_tail(TUNED["Standard"], PROBLEM, horizon=50, regret=math.nan)


@pytest.mark.parametrize("pulls", [10, 20, 35, 44, 48])
def test_a_gap_of_many_deviations(pulls: int) -> None:
    """Steps that a normal walk never makes: down to 1e-92, against weighted paths."""
    policy, problem = lt.UCB(lt.LightTailed(0.8)), lt.Bandit([0.0, 1.2], lt.Gaussian(0.3))
    exact = lt.exact_tail(policy, problem, horizon=60, regret=1.2 * pulls)
    found = lt.tail_probability(policy, problem, 60, 1.2 * pulls, seed=1, method="importance")
    assert abs(exact - found.value) < 4.0 * found.diagnostics.relative_error * found.value / 1.96
    law = lt.exact_law(policy, problem, horizon=60)
    assert law.tail(1.2 * pulls) == pytest.approx(exact, rel=1e-3)
    assert (np.diff(law.survival) <= 0.0).all()


def test_what_is_too_small_is_zero() -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.8)), lt.Bandit([0.0, 1.2], lt.Gaussian(0.3))
    assert lt.exact_tail(policy, problem, horizon=60, regret=1.2 * 52) == 0.0
