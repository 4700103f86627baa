"""The exact programme for Bernoulli rewards equals plain enumeration, known values and simulation."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from brute_force import merged, programme_law
from cases import name
from numba.core import event
from scipy.integrate import quad
from scipy.special import ndtr
from test_simulate import Compilations

import lighttail as lt
from lighttail.kernels import programme_kernel_for
from lighttail.kernels.programme import NEVER, SURE
from lighttail.tails.programme import programme_seconds, programme_tail
from lighttail.tails.rare import Task

KINDS = ("pseudo_regret", "regret")


@dataclass(frozen=True)
class OwnMoving(lt.Bonus):
    """A bonus of one's own with a helper, many ties and a clock on which every single round counts."""

    kappa: float

    @staticmethod
    def radius(n: float, t: float, kappa: float) -> float:
        return kappa * swing(t) / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


def swing(t: float) -> float:
    return 0.5 if t - 3.0 * math.floor(t / 3.0) < 1.0 else 1.5


with pytest.warns(UserWarning, match="not light-tailed"):
    SE_ANY_TIME = lt.SuccessiveElimination(lt.AnyTime(0.1))

POLICIES = [
    lt.UCB(lt.Standard(0.3)),
    lt.UCB(lt.LightTailed(0.1)),
    lt.UCB(lt.ArmOptimal(0.1, 0.3)),
    lt.UCB(lt.AnyTime(0.3)),
    lt.UCB(OwnMoving(0.5)),
    lt.SuccessiveElimination(lt.Standard(0.2)),
    lt.SuccessiveElimination(lt.LightTailed(0.05)),
    lt.SuccessiveElimination(OwnMoving(1.0)),
    SE_ANY_TIME,
    lt.ThompsonSampling(0.5),
    lt.ThompsonSampling(0.2, prior_mean=-0.5, prior_sd=2.0),
]

# The oracle: all states in a dictionary, round by round; a state is the pulls, the sums and the dropped arms.
State = tuple[tuple[int, ...], tuple[int, ...], frozenset[int]]
Choices = list[tuple[int, float, frozenset[int]]]


def index_choices(policy: Any, params: Any, t: int, state: State, uneven: bool) -> Choices:
    pulls, sums, dropped = state
    time = policy.bonus.clock(float(t), *params)
    index = [
        s / n + policy.bonus.radius(float(n), time, *params) if n else math.inf
        for n, s in zip(pulls, sums, strict=True)
    ]
    tied = [arm for arm, value in enumerate(index) if value == max(index)]
    if uneven:  # the first of the tied arms: a wrong rule
        return [(tied[0], 1.0, dropped)]
    return [(arm, 1.0 / len(tied), dropped) for arm in tied]


def phase_choices(policy: Any, params: Any, t: int, state: State, uneven: bool) -> Choices:
    pulls, sums, dropped = state
    active = [arm for arm in range(len(pulls)) if arm not in dropped]
    counts = {pulls[arm] for arm in active}
    if len(active) > 1 and len(counts) == 1 and counts != {0}:
        n = counts.pop()
        width = policy.bonus.radius(float(n), policy.bonus.clock(t - 1.0, *params), *params)
        best = max(sums[arm] / n for arm in active)
        dropped = dropped | {arm for arm in active if best - width > sums[arm] / n + width}
        active = [arm for arm in active if arm not in dropped]
    return [(min(active, key=lambda arm: (pulls[arm], -arm if uneven else arm)), 1.0, dropped)]


@cache
def largest(middles: tuple[float, ...], sds: tuple[float, ...], arm: int) -> float:
    """The chance that this arm's normal draw is the largest, by adaptive quadrature."""

    def density(x: float) -> float:
        z = [(x - middle) / sd for middle, sd in zip(middles, sds, strict=True)]
        others = math.prod(float(ndtr(z[k])) for k in range(len(z)) if k != arm)
        return math.exp(-0.5 * z[arm] ** 2) / (sds[arm] * math.sqrt(2.0 * math.pi)) * others

    low, high = middles[arm] - 9.0 * sds[arm], max(middles) + 11.0 * sds[arm]
    ends = np.linspace(low, high, 13)
    return math.fsum(quad(density, *part, epsabs=0.0, epsrel=1e-13)[0] for part in pairwise(ends))


def draw_choices(policy: Any, params: Any, t: int, state: State, uneven: bool) -> Choices:
    pulls, sums, dropped = state
    middles = tuple(
        policy.posterior_mean(float(n), float(s), *params) for n, s in zip(pulls, sums, strict=True)
    )
    sds = tuple(policy.posterior_sd(float(n + uneven), *params) for n in pulls)
    return [(arm, largest(middles, sds, arm), dropped) for arm in range(len(pulls))]


CHOICES = {
    lt.UCB: index_choices,
    lt.SuccessiveElimination: phase_choices,
    lt.ThompsonSampling: draw_choices,
}


def oracle(
    policy: lt.Policy, problem: lt.Bandit, horizon: int, uneven: bool = False
) -> dict[tuple[tuple[int, ...], int], float]:
    """The chance of all pulls together with the sum of all rewards."""
    params = policy.params(horizon, problem.arms)
    nothing = (0,) * problem.arms
    states: dict[State, float] = {(nothing, nothing, frozenset()): 1.0}
    for t in range(1, horizon + 1):
        following: dict[State, float] = defaultdict(float)
        for state, p in states.items():
            pulls, sums, _ = state
            for arm, share, dropped in CHOICES[type(policy)](policy, params, t, state, uneven):
                mean = problem.means[arm]
                for reward, chance in ((0, 1.0 - mean), (1, mean)):
                    n = tuple(value + (k == arm) for k, value in enumerate(pulls))
                    s = tuple(value + reward * (k == arm) for k, value in enumerate(sums))
                    following[n, s, dropped] += p * share * chance
        states = following
    ends: dict[tuple[tuple[int, ...], int], float] = defaultdict(float)
    for (pulls, sums, _), p in states.items():
        ends[pulls, sum(sums)] += p
    return ends


def oracle_tail(ends: Any, problem: lt.Bandit, horizon: int, target: float, kind: str) -> float:
    def value(pulls: tuple[int, ...], reward: int) -> float:
        if kind == "regret":
            return max(problem.means) * horizon - reward
        return sum(gap * n for gap, n in zip(problem.gaps, pulls, strict=True))

    return math.fsum(p for end, p in ends.items() if value(*end) >= target)


def largest_error(policy: lt.Policy, problem: lt.Bandit, horizon: int, uneven: bool = False) -> float:
    """Of tails at every value and between them, relative; both kinds, from the law and one by one."""
    ends, worst = oracle(policy, problem, horizon, uneven), 0.0
    for kind in KINDS:
        values, chances = programme_law(policy, problem, horizon, kind)
        assert np.all(np.diff(values) > 0.0)
        assert np.all(chances > 0.0)
        assert chances.sum() == pytest.approx(1.0, abs=1e-12)
        for place in sorted({*range(0, values.size, max(1, values.size // 8)), values.size - 1}):
            for regret in (values[place], values[place] + 1e-4):
                target = Task(policy, problem, horizon, float(regret), kind).target
                truth = oracle_tail(ends, problem, horizon, target, kind)
                single = programme_tail(policy, problem, horizon, target, kind)
                whole = float(chances[values >= target].sum())
                scale = truth if truth > 0.0 else 1.0
                worst = max(worst, abs(single - truth) / scale, abs(whole - truth) / scale)
    return worst


def drawn_problem(rng: np.random.Generator, arms: int) -> lt.Bandit:
    """Means at, near and far from 0 and 1, often the same twice."""
    some = [0.0, 1.0, 1e-6, 1.0 - 1e-6, 0.5, *rng.uniform(0.0, 1.0, 5)]
    return lt.Bandit(rng.choice(some, arms), lt.Bernoulli())


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_every_policy_equals_enumeration(policy: lt.Policy) -> None:
    """Two to six arms, from a horizon of one pull per arm on."""
    rng = np.random.default_rng(12)
    sizes = [(2, 2), (2, 7), (2, 6), (3, 3), (3, 5), (3, 7), (4, 4), (4, 6), (5, 6), (6, 6)]
    for arms, horizon in sizes:
        slow = isinstance(policy, lt.ThompsonSampling) and arms > 2  # its oracle integrates numerically
        problem = drawn_problem(rng, arms)
        error = largest_error(policy, problem, {3: 4, 4: 3}.get(arms, 2) if slow else horizon)
        assert error < (1e-12 if slow else 1e-13), problem


@pytest.mark.parametrize("policy", [POLICIES[4], POLICIES[7], POLICIES[9]], ids=name)
def test_a_wrong_rule_is_noticed(policy: lt.Policy) -> None:
    """The control: ties to the first arm, phases in falling order, or posteriors of one pull too many."""
    problem = lt.Bandit([0.3, 0.8], lt.Bernoulli())
    assert largest_error(policy, problem, 5, uneven=True) > 1e-3


KNOWN = [
    (lt.UCB(lt.LightTailed(0.1)), (0.3, 0.7), 30, 20, "regret", 2.2967e-8, 3e-5),
    (lt.SuccessiveElimination(lt.Standard(0.3)), (0.5, 0.9, 0.9), 16, 12.4, "regret", 8.550e-6, 1e-4),
    (lt.UCB(lt.Standard(0.3)), (0.05, 0.5), 30, 13, "regret", 9.386e-4, 1e-4),
    (lt.UCB(lt.LightTailed(0.1)), (0.3, 0.7), 100, 53, "regret", 1.423e-8, 5e-4),
    (lt.SuccessiveElimination(lt.Standard(0.4)), (0.2, 0.5, 0.9), 16, 7, "pseudo_regret", 1.074e-3, 5e-4),
    (lt.UCB(lt.LightTailed(0.2)), (0.3, 0.7), 100, 20.05, "pseudo_regret", 7.0545274e-5, 1e-8),
    (lt.UCB(lt.LightTailed(0.2)), (0.2, 0.5, 0.75), 60, 18.02, "pseudo_regret", 5.9075704e-5, 1e-8),
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: f"{name(case[0])}-{case[2]}-{case[4]}")
def test_known_values(case: Any) -> None:
    """From independent programmes; the last number is what the printed digits leave open."""
    policy, means, horizon, regret, kind, truth, digits = case
    problem = lt.Bandit(means, lt.Bernoulli())
    target = Task(policy, problem, horizon, regret, kind).target
    assert programme_tail(policy, problem, horizon, target, kind) == pytest.approx(truth, rel=digits)


def chi_square_z(policy: lt.Policy, problem: lt.Bandit, horizon: int, kind: str, shift: int = 0) -> float:
    """How many standard deviations the counts of simulated values are off the law, in cells of 20 or more."""
    paths = 40_000
    values, chances = programme_law(policy, problem, horizon, kind)
    out = lt.simulate(policy, problem, horizon=horizon, paths=paths, seed=5, threads=1)
    middles = (values[1:] + values[:-1]) / 2.0
    counts = np.bincount(np.searchsorted(middles, getattr(out, kind)), minlength=values.size)
    expected = paths * np.roll(chances, shift)
    cells = expected >= 20.0
    seen, due = (
        np.append(counts[cells], counts[~cells].sum()),
        np.append(expected[cells], expected[~cells].sum()),
    )
    square = float(np.sum((seen - due) ** 2 / np.maximum(due, 1e-9)))
    return (square - cells.sum()) / math.sqrt(2.0 * cells.sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("policy", "means", "horizon"),
    [
        (lt.UCB(lt.LightTailed(0.1)), (0.3, 0.6), 60),
        (lt.UCB(lt.AnyTime(0.3)), (0.2, 0.5, 0.5), 25),
        (lt.SuccessiveElimination(lt.Standard(0.2)), (0.3, 0.5, 0.6), 40),
        (lt.ThompsonSampling(0.5), (0.3, 0.5, 0.6), 20),
    ],
    ids=name,
)
def test_simulation_has_this_law(
    policy: lt.Policy, means: tuple[float, ...], horizon: int, kind: str
) -> None:
    """Within z = 4.5; the same law shifted by one value is beyond 20."""
    problem = lt.Bandit(means, lt.Bernoulli())
    assert abs(chi_square_z(policy, problem, horizon, kind)) < 4.5
    assert chi_square_z(policy, problem, horizon, kind, shift=1) > 20.0


def chance(policy: lt.Policy, pulls: list[int], sums: list[int], arm: int) -> float:
    """What the kernel takes for the chance that this arm is pulled next: every other arm misses the event."""
    onto = np.full((1, len(pulls)), NEVER)
    onto[0, arm] = SURE
    mass = np.zeros([n + 1 for n in pulls])
    mass[tuple(sums)] = 1.0
    state = np.full(len(pulls), 0.5), np.array([pulls]), np.array([0]), onto
    params = policy.params(math.nan, len(pulls))
    kernel = programme_kernel_for(policy)
    return kernel(params, sum(pulls), *state, -1, sum(pulls), mass.ravel(), np.empty(0))


def test_thompson_chances_are_exact_however_small() -> None:
    """Two to four arms, posteriors narrow and wide, the wide ones of arms never pulled among them."""
    rng = np.random.default_rng(4)
    seen = []
    for _ in range(20):
        kappa, prior_mean, prior_sd = (rng.choice(some) for some in ([0.05, 0.5, 3], [0, -2, 2], [0.1, 1, 2]))
        policy = lt.ThompsonSampling(float(kappa), float(prior_mean), float(prior_sd))
        pulls = [int(n) for n in rng.choice([0, 0, 1, 2, 5, 30], int(rng.integers(2, 5)))]
        sums = [int(rng.integers(0, n + 1)) for n in pulls]
        found = [chance(policy, pulls, sums, arm) for arm in range(len(pulls))]
        choices = draw_choices(
            policy, policy.params(math.nan, 2), 1, (tuple(pulls), tuple(sums), frozenset()), False
        )
        assert sum(found) == pytest.approx(1.0, abs=1e-13)
        for value, (_, truth, _) in zip(found, choices, strict=True):
            assert value == pytest.approx(truth, rel=1e-12, abs=1e-290)
            seen.append(value)
    assert min(value for value in seen if value > 0.0) < 1e-50


def test_means_near_0_and_1_over_many_rounds() -> None:
    """Chances below the smallest float are lost, and nothing else: the sums stay 1."""
    problem = lt.Bandit([1e-9, 1.0 - 1e-9], lt.Bernoulli())
    for kind in KINDS:
        values, chances = programme_law(lt.UCB(lt.LightTailed(0.2)), problem, 60, kind)
        assert chances.sum() == pytest.approx(1.0, abs=1e-12)
        assert 0.0 < chances.min() < 1e-200
        assert values.size == chances.size


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.LightTailed(3.0))),
        (lt.UCB(lt.AnyTime(0.2)), lt.UCB(lt.AnyTime(1))),
        (lt.SuccessiveElimination(lt.Standard(0.2)), lt.SuccessiveElimination(lt.Standard(1))),
        (lt.ThompsonSampling(0.2), lt.ThompsonSampling(1, 3, 2)),
    ],
    ids=name,
)
def test_new_numbers_compile_nothing(first: lt.Policy, other: lt.Policy) -> None:
    for kind in KINDS:
        programme_law(first, lt.Bandit([0.2, 0.7], lt.Bernoulli()), 5, kind)
    with event.install_listener("numba:compile", Compilations()) as compiled:
        for kind in KINDS:
            programme_law(other, lt.Bandit([0.1, 0.4, 0.4], lt.Bernoulli()), 7, kind)
            programme_tail(other, lt.Bandit([0, 1, 1], lt.Bernoulli()), 4, 1.0, kind)
    assert compiled.count == 0
    assert programme_kernel_for(first) is programme_kernel_for(other)


def test_what_there_is_no_programme_for() -> None:
    bernoulli, policy = lt.Bandit([0.2, 0.7], lt.Bernoulli()), lt.UCB(lt.Standard(0.3))
    many = lt.Bandit(np.linspace(0.0, 1.0, 10_000), lt.Bernoulli())
    for rule in POLICIES:
        assert not isinstance(programme_seconds(rule, bernoulli, 60, "regret"), lt.BadInput)
        for problem, horizon in ((bernoulli, 10**12), (many, 10**6), (many, 10_000)):
            assert "memory" in str(programme_seconds(rule, problem, horizon, "pseudo_regret"))
    assert "Bernoulli" in str(programme_seconds(policy, lt.Bandit([0.2, 0.7]), 20, "regret"))
    assert "Exp3IX" in str(programme_seconds(lt.Exp3IX(), bernoulli, 20, "regret"))
    with pytest.raises(lt.BadInput, match="kind must be"):
        lt.tail_probability(policy, bernoulli, 20, 1.0, kind="reward")
    for other in (lt.Exp3IX(), lt.KlUcb()):
        with pytest.raises(TypeError, match="there is no exact programme for"):
            programme_tail(other, bernoulli, 20, 1.0, "regret")
    extreme = lt.ThompsonSampling(1e-200, prior_sd=1e-200)
    assert "posteriors" in str(programme_seconds(extreme, bernoulli, 20, "regret"))


@dataclass(frozen=True)
class Singular(lt.Bonus):
    """A radius that is infinite at a number of pulls that no check tries; Python would divide by zero."""

    kappa: float

    @staticmethod
    def radius(n: float, clock: float, kappa: float) -> float:
        return kappa / abs(n - 35.0)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


def test_an_exact_programme_has_the_radii_that_are_simulated() -> None:
    policy, problem = lt.SuccessiveElimination(Singular(0.5)), lt.Bandit([0.3, 0.7], lt.Bernoulli())
    exact = programme_tail(policy, problem, 90, 5.9999, "pseudo_regret")
    out = lt.simulate(policy, problem, horizon=90, paths=100_000, seed=1)
    found = out.exceedance(6.0, "pseudo_regret", level=0.9999)
    assert found.low < exact < found.high


@pytest.mark.parametrize("kind_of_policy", [lt.UCB, lt.SuccessiveElimination])
@pytest.mark.parametrize("means", [(0.3, 0.7), (0.3, 0.5, 0.7)])
def test_a_radius_without_a_value_is_named(kind_of_policy: Any, means: tuple[float, ...]) -> None:
    """Tails and bounds compute radii in plain Python, where 1 / 0 is an error."""
    policy, problem = kind_of_policy(Singular(0.5)), lt.Bandit(means)
    for method in ("importance", "auto"):
        with pytest.raises(
            lt.BadInput, match=r"the radius of Singular\(kappa=0.5\) at n=35 must be a finite"
        ):
            lt.tail_probability(policy, problem, 90, 20.0, method=method, seed=1)
    found = lt.tail_probability(policy, problem, 90, 20.0, method="plain", seed=1, most_pulls=10**5)
    assert found.low < found.high


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[5], POLICIES[9]], ids=name)
@pytest.mark.parametrize("kind", KINDS)
def test_more_rounds_and_more_arms_take_longer(policy: lt.Policy, kind: str) -> None:
    def seconds(arms: int, horizon: int) -> float:
        problem = lt.Bandit(np.linspace(0.1, 0.9, arms), lt.Bernoulli())
        return programme_seconds(policy, problem, horizon, kind)

    for arms in (2, 3, 4):
        assert 0.0 < seconds(arms, 10) < seconds(arms, 15) < seconds(arms + 1, 15) < math.inf


def test_values_that_differ_by_rounding_are_one() -> None:
    values, chances = merged(np.array([0.3, 0.1 + 0.2, 0.0, 0.5]), np.array([0.1, 0.2, 0.7, 0.0]))
    assert values.tolist() == [0.0, 0.3]
    assert chances == pytest.approx([0.7, 0.3])
