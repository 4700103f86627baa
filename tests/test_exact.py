"""The exact law: tabulated values, brute force, simulation wherever it reaches, and its own consistency."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from brute_force import tail_by_states

import lighttail as lt
from lighttail.tails.groups import groups_of
from lighttail.tails.known import why_no_exact
from lighttail.tails.levels import GaussianArms, integrate
from lighttail.tails.sums import tail_sum
from lighttail.tails.task import Task

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


class Inverse(lt.Bonus):
    """Radius 1 / n: many different (pulls, successes) have the same index."""

    @staticmethod
    def radius(n: float, clock: float) -> float:
        return 1.0 / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


class Level(lt.Bonus):
    """A radius beside which rewards vanish: every arm is tied with every other at all times."""

    @staticmethod
    def radius(n: float, clock: float) -> float:
        return 1e20

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


class Rising(lt.Bonus):
    """A radius that falls and then rises."""

    @staticmethod
    def radius(n: float, clock: float) -> float:
        return 1.0 / n + 0.5 * (n > 5.0)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


@pytest.mark.parametrize(("name", "horizon"), TABLE)
def test_the_tabulated_tails_of_two_arms(name: str, horizon: int) -> None:
    """The table was found with an accuracy of 5 parts in 100,000."""
    value = lt.exact_tail(TUNED[name], PROBLEM, horizon=horizon, regret=0.2 * horizon + 1e-6)
    assert value == pytest.approx(TABLE[name, horizon], rel=6e-5)


@pytest.mark.parametrize(
    ("bonus", "problem", "horizon", "regret", "value"),
    [
        (lt.LightTailed(0.2), lt.Bandit([0.2, 0.5, 0.8]), 500, 200.05, 2.93229e-7),
        (lt.Standard(0.3), lt.Bandit([-2, 0.7, 0.8], lt.Gaussian(0.1)), 100, 7.75, 5.30963e-7),
        (lt.LightTailed(0.2), lt.Bandit([0.2, 0.4, 0.6, 0.8]), 1000, 400.05, 3.03104e-10),
        (lt.LightTailed(0.2), lt.Bandit([0.3, 0.7], lt.Bernoulli()), 100, 20.05, 7.0545274e-5),
        (lt.LightTailed(0.2), lt.Bandit([0.2, 0.5, 0.75], lt.Bernoulli()), 100, 30.02, 1.2721496e-6),
        (lt.LightTailed(0.2), lt.Bandit([0.1, 0.1, 0.7, 0.7], lt.Bernoulli()), 80, 28.05, 3.5981638e-11),
    ],
    ids=str,
)
def test_the_tabulated_tails_of_more_arms(
    bonus: lt.Bonus, problem: lt.Bandit, horizon: int, regret: float, value: float
) -> None:
    found = lt.exact_tail(lt.UCB(bonus), problem, horizon=horizon, regret=regret)
    assert found == pytest.approx(value, rel=2e-6)


def drawn(seed: int, bernoulli: bool) -> tuple[lt.UCB, lt.Bandit, int]:
    """A problem that nobody chose: hopeless, tied and near arms, kappa and sigma over decades."""
    rng = np.random.default_rng(seed)
    arms = int(rng.integers(2, 6))
    if bernoulli:
        means = rng.choice([0.0, 1.0, 0.5, 0.5, 0.1, 0.999, *rng.random(6)], arms)
        own = [Inverse(), Level(), lt.LightTailed(1e-300), Rising()]
        known = [make(10 ** rng.uniform(-2, 1)) for make in (lt.LightTailed, lt.Standard)]
        return (
            lt.UCB([*own, *known][seed % 6]),
            lt.Bandit(means, lt.Bernoulli()),
            arms + int(rng.integers(1, {2: 12, 3: 8, 4: 6, 5: 4}[arms])),
        )
    sigma = 10 ** rng.uniform(-2, 1)
    offsets = rng.choice([0.0, 0.0, 1.0, -8.0], arms) + (rng.random(arms) < 0.7) * rng.normal(size=arms)
    kappa = sigma * 10 ** rng.uniform(-1.5, 0.5)
    bonuses = [lt.LightTailed(kappa), lt.Standard(kappa), lt.ArmOptimal(kappa, kappa), Rising()]
    horizon = arms + int(10 ** rng.uniform(0.5, {2: 2.2, 3: 2.0, 4: 1.6, 5: 1.4}[arms]))
    return lt.UCB(bonuses[seed % 4]), lt.Bandit(sigma * offsets, lt.Gaussian(sigma)), horizon


@pytest.mark.parametrize("seed", range(24))
def test_bernoulli_against_every_state(seed: int) -> None:
    """Every point of the law, to rounding; ties and arms that meet again and again included."""
    policy, problem, horizon = drawn(seed, bernoulli=True)
    law = lt.exact_law(policy, problem, horizon)
    truth = tail_by_states(policy, problem, horizon)
    assert law.tail(max(truth) + 1e-6) == 0.0
    for regret, chance in truth.items():
        assert law.tail(regret) == pytest.approx(chance, rel=1e-9)
        assert lt.exact_tail(policy, problem, horizon, regret) == pytest.approx(chance, rel=1e-9)


def test_the_order_of_tied_arms_matters() -> None:
    """Negative control: a law in which ties go to the first arm fails the comparison."""
    policy, problem = lt.UCB(Inverse()), lt.Bandit([0.3, 0.6], lt.Bernoulli())
    wrong = tail_by_states(policy, problem, 10, ties="first")
    law = lt.exact_law(policy, problem, 10)
    assert max(abs(law.tail(regret) / chance - 1.0) for regret, chance in wrong.items()) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 10))
def test_gaussian_laws_agree_with_simulation(seed: int) -> None:
    """At 20 regrets within z = 4.5; with the next larger regret for each the check fails."""
    policy, problem, horizon = drawn(seed, bernoulli=False)
    paths = 100_000
    regret = lt.simulate(policy, problem, horizon=horizon, paths=paths, seed=seed).pseudo_regret
    asked = np.unique(np.quantile(regret, np.linspace(0.02, 0.9999, 20)))
    law = lt.exact_law(policy, problem, horizon)

    def furthest(shift: int) -> float:
        places = np.minimum(np.searchsorted(law.regrets, asked * (1.0 - 1e-9)) + shift, law.regrets.size - 1)
        chance = law.survival[places]
        seen = np.array([(regret >= x * (1.0 - 1e-9)).mean() for x in asked])
        error = np.sqrt(np.maximum(chance * (1.0 - chance), 1.0 / paths) / paths)
        return float(np.abs((seen - chance) / error).max())

    assert furthest(0) < 4.5
    if asked.size > 3:
        assert furthest(max(1, law.regrets.size // 50)) > 4.5


@pytest.mark.parametrize("seed", range(12, 30))
def test_all_chances_add_up_to_one(seed: int) -> None:
    """A regret below all that can be had: the integral is 1, which checks all of it."""
    policy, problem, horizon = drawn(seed, bernoulli=False)
    groups = groups_of(policy, problem, horizon)
    if len(groups.means) > 1:
        anything = tail_sum(groups.scaled_gaps, -1.0, horizon)
        assert integrate(GaussianArms.of(groups), [anything], anything)[0] == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("seed", range(30, 35))
def test_single_tails_and_the_whole_law_are_one(seed: int) -> None:
    policy, problem, horizon = drawn(seed, bernoulli=False)
    law = lt.exact_law(policy, problem, horizon)
    assert law.survival[0] == 1.0
    assert (np.diff(law.survival) <= 0.0).all()
    assert (np.diff(law.regrets) > 0.0).all()
    for regret in law.regrets[:: max(1, law.regrets.size // 6)]:
        assert law.tail(regret) == pytest.approx(
            lt.exact_tail(policy, problem, horizon, regret), rel=1e-5, abs=1e-100
        )


@pytest.mark.parametrize("seed", [7, 15, 18])
def test_a_finer_grid_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, problem, horizon = drawn(seed, bernoulli=False)
    groups = groups_of(policy, problem, horizon)
    span = groups.most_regret - groups.least_regret
    regrets = [groups.least_regret + share * span for share in (0.05, 0.2, 0.6)]
    before = [lt.exact_tail(policy, problem, horizon, regret) for regret in regrets]
    monkeypatch.setattr("lighttail.kernels.crossing.SPACING", 0.23)
    monkeypatch.setattr("lighttail.tails.levels.TOLERANCE", 1e-10)
    monkeypatch.setattr("lighttail.tails.levels.NEGLIGIBLE", 1e-22)
    monkeypatch.setattr("lighttail.tails.levels.DROPPED", 1e-22)
    after = [lt.exact_tail(policy, problem, horizon, regret) for regret in regrets]
    assert before != after
    assert before == pytest.approx(after, rel=1e-6, abs=1e-270)


@pytest.mark.parametrize("noise", [lt.Gaussian(1.0), lt.Bernoulli()], ids=str)
def test_a_common_unit_of_the_gaps_gives_the_same(noise: lt.Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.1, 0.3, 0.5, 0.9], noise)
    costs = importlib.import_module("lighttail.tails.exact_costs")
    monkeypatch.setattr(costs, "on_lattice", lambda groups, regret: False)
    one, law = lt.exact_tail(policy, problem, 30, 9.0), lt.exact_law(policy, problem, 30)
    monkeypatch.setattr(costs, "on_lattice", lambda groups, regret: True)
    other, other_law = lt.exact_tail(policy, problem, 30, 9.0), lt.exact_law(policy, problem, 30)
    assert one == pytest.approx(other, rel=1e-7)
    for regret in (1.5, 5.0, 9.0, 16.0):
        assert law.tail(regret) == pytest.approx(other_law.tail(regret), rel=1e-7)


def test_gaps_without_a_common_unit() -> None:
    from lighttail.tails.sums import common_unit

    assert common_unit([0.0, 1e-12, 1.0]) is None
    assert common_unit([0.0, math.sqrt(0.5), 1.0]) is None
    unit, wholes = common_unit([0.0, 0.1, 0.2, 0.3, 0.6000000000000001]) or (0.0, ())
    assert unit == pytest.approx(0.1)
    assert wholes == (0, 1, 2, 3, 6)


def test_seven_different_means_with_a_common_unit() -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.2)), lt.Bandit([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    out = lt.simulate(policy, problem, horizon=40, paths=200_000, seed=2)
    for regret in (8.0, 10.0, 12.0):
        tail, seen = lt.exact_tail(policy, problem, 40, regret), out.exceedance(regret, "pseudo_regret").value
        assert abs(seen - tail) < 4.5 * math.sqrt(tail * (1 - tail) / 200_000)


def test_many_equal_arms() -> None:
    policy, problem = lt.UCB(lt.Standard(0.3)), lt.Bandit([0.5] * 19 + [0.9, 0.9])
    out = lt.simulate(policy, problem, horizon=80, paths=200_000, seed=2)
    for regret in (12.0, 16.0, 20.0):
        tail, seen = lt.exact_tail(policy, problem, 80, regret), out.exceedance(regret, "pseudo_regret").value
        assert abs(seen - tail) < 4.5 * math.sqrt(tail * (1 - tail) / 200_000)


def test_units_do_not_matter() -> None:
    """Rewards and kappa ten times as large, shifted by 7: the same law of the pulls."""
    one = lt.exact_tail(lt.UCB(lt.LightTailed(0.2)), PROBLEM, horizon=300, regret=60)
    ten = lt.Bandit([9.0, 15.0], lt.Gaussian(10.0))
    assert lt.exact_tail(lt.UCB(lt.LightTailed(2.0)), ten, horizon=300, regret=600) == pytest.approx(one)


def test_the_ends_of_the_range() -> None:
    policy = TUNED["LightTailed"]
    assert lt.exact_tail(policy, PROBLEM, horizon=50, regret=0.6) == 1.0  # each arm is pulled once
    assert lt.exact_tail(policy, PROBLEM, horizon=50, regret=-1) == 1.0
    assert lt.exact_tail(policy, PROBLEM, horizon=50, regret=0.6 * 50) == 0.0
    assert lt.exact_tail(policy, lt.Bandit([0.5, 0.5]), horizon=50, regret=1e-9) == 0.0
    assert lt.exact_tail(policy, lt.Bandit([0.5, 0.5]), horizon=50, regret=0.0) == 1.0
    assert lt.exact_tail(policy, PROBLEM, horizon=2, regret=1.2) == 0.0
    for noise in (lt.Gaussian(), lt.Bernoulli()):
        law = lt.exact_law(policy, lt.Bandit([0.2, 0.8, 0.9], noise), horizon=3)
        assert law.regrets == pytest.approx([0.8])
        assert law.survival.tolist() == [1.0]
        assert lt.exact_law(policy, lt.Bandit([0.5, 0.5], noise), horizon=9).regrets.tolist() == [0.0]


def test_a_problem_with_almost_no_noise() -> None:
    policy = TUNED["LightTailed"]
    assert lt.exact_tail(policy, lt.Bandit([0.2, 0.8], lt.Gaussian(1e-3)), 20, 9.0) == 0.0
    assert lt.exact_tail(policy, lt.Bandit([1e307, 0.0], lt.Gaussian(1e-5)), 10, 2e307) == 0.0
    law = lt.exact_law(policy, lt.Bandit([1e307, 0.0], lt.Gaussian(1e-5)), 10)
    assert law.regrets.tolist() == [1e307]
    small = lt.exact_law(policy, lt.Bandit([0.2, 0.8], lt.Gaussian(1e-9)), 10)
    played = lt.simulate(policy, lt.Bandit([0.2, 0.8], lt.Gaussian(1e-9)), horizon=10, paths=9, seed=1)
    assert small.regrets == pytest.approx(np.unique(played.pseudo_regret))
    with pytest.raises(ValueError, match="sigma must be at least"):
        lt.exact_law(policy, lt.Bandit([1e-300, 2e-300], lt.Gaussian(1e-320)), 10)
    with pytest.raises(ValueError, match="means must be so small that the gap between them is finite"):
        lt.exact_law(policy, lt.Bandit([1e308, -1e308]), 10)


@pytest.mark.parametrize(
    ("policy", "problem", "horizon", "sentence"),
    [
        (lt.UCB(lt.AnyTime(0.2)), PROBLEM, 50, "policy must be UCB with a bonus that does not change"),
        (lt.UCB, PROBLEM, 50, "policy must be UCB with a bonus that does not change"),
        (lt.ThompsonSampling(0.2), PROBLEM, 50, "policy must be UCB"),
        (TUNED["Standard"], lt.Bandit([0.1, 0.2], lt.Laplace()), 50, "Gaussian noise or Bernoulli"),
        (TUNED["Standard"], PROBLEM, 1, "horizon must be a whole number of at least 2"),
        (TUNED["Standard"], lt.Bandit([math.sqrt(k) for k in range(6)]), 50, "at most 5 different means"),
        (TUNED["Standard"], PROBLEM, 10**12, "would take more than a year"),
        (TUNED["Standard"], PROBLEM, 10**400, "horizon must be a whole number of at most"),
        (TUNED["Standard"], lt.Bandit(np.arange(10_000) / 1e4), 10**6, "10000 different means"),
        (TUNED["Standard"], lt.Bandit(np.arange(10_000) / 1e4, lt.Bernoulli()), 10**5, "different means"),
    ],
    ids=lambda case: str(case)[:24],
)
def test_what_has_no_exact_law_is_refused(
    policy: lt.Policy, problem: lt.Bandit, horizon: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        lt.exact_tail(policy, problem, horizon=horizon, regret=1.0)
    with pytest.raises(ValueError, match=sentence):
        lt.exact_law(policy, problem, horizon=horizon)
    why = exact.exact_seconds(policy, problem, horizon, 1.0)
    assert isinstance(why, lt.BadInput)
    assert sentence in str(why)
    with pytest.raises(ValueError, match="regret must be a finite number"):
        lt.exact_tail(TUNED["Standard"], PROBLEM, horizon=50, regret=math.nan)


def test_what_takes_long_is_said_beforehand(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    lt.exact_tail(TUNED["LightTailed"], PROBLEM, 200, 20.0)  # compiles
    capsys.readouterr()
    monkeypatch.setattr("lighttail.system.progress.FIRST", 0.0)
    lt.exact_tail(TUNED["LightTailed"], PROBLEM, 200, 20.0)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(exact.costs, "seconds", lambda groups, regret: 300.0)
    lt.exact_tail(TUNED["LightTailed"], PROBLEM, 200, 20.0)
    assert capsys.readouterr().err == "lighttail: the exact law takes about 5 minutes\n"
    assert exact.exact_seconds(TUNED["LightTailed"], PROBLEM, 200) == 300.0


def test_a_law_that_takes_more_than_an_hour_is_refused_before_it_is_chosen() -> None:
    """The seconds of a whole law and of one tail differ: each is asked of what is going to be computed."""
    policy, problem = TUNED["LightTailed"], lt.Bandit([0.1, 0.23, 0.51, 0.67, 0.8])
    seen = set()
    for horizon in (500, 2000, 10_000):
        for regret in (1.0, 0.3 * horizon, None):
            takes = exact.exact_seconds(policy, problem, horizon, regret)
            seen.add(isinstance(takes, lt.BadInput))
            assert isinstance(takes, lt.BadInput) or takes <= exact.costs.MOST_SECONDS
    assert seen == {True, False}
    task = Task(policy, problem, 10_000, 1000.0, "pseudo_regret")
    assert "the exact law would take about" in why_no_exact(task, math.inf)


@pytest.mark.parametrize("pulls", [10, 20, 35, 44, 48])
def test_a_gap_of_many_deviations(pulls: int) -> None:
    """Steps that a normal walk never makes: down to 1e-92, against weighted paths."""
    policy, problem = lt.UCB(lt.LightTailed(0.8)), lt.Bandit([0.0, 1.2], lt.Gaussian(0.3))
    exact = lt.exact_tail(policy, problem, horizon=60, regret=1.2 * pulls)
    found = lt.tail_probability(policy, problem, 60, 1.2 * pulls, seed=1, method="importance")
    assert abs(exact - found.value) < 4.0 * found.diagnostics.relative_error * found.value / 1.96


def test_what_is_too_small_is_zero() -> None:
    policy, problem = lt.UCB(lt.LightTailed(0.8)), lt.Bandit([0.0, 1.2], lt.Gaussian(0.1))
    assert lt.exact_tail(policy, problem, horizon=60, regret=1.2 * 50) == 0.0
