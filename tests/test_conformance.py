"""What all bonuses, policies, noises and problems have in common, one suite over every one of them."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cases import BONUSES, MORE_BONUSES, MORE_POLICIES, NOISES, POLICIES, name, problems
from scipy import stats

import lighttail as lt
from lighttail.noises.formulas import scaled_reward
from lighttail.random.streams import block_generator

Z = 5.0  # standard errors
SAMPLES = {"A": [0.0, 1.0, 4.0], "B": [0.5, 2.0]}
EVERYTHING = [*BONUSES, *POLICIES, *MORE_BONUSES, *MORE_POLICIES, *NOISES, *problems(3)]
LEARNERS = [policy for policy in MORE_POLICIES if policy != lt.EvenSplit()]
WRITTEN = [case for case in EVERYTHING if "Resampled" not in repr(case)]


@pytest.mark.parametrize("case", EVERYTHING, ids=name)
def test_a_copy_is_equal_hashes_alike_and_pickles(case: Any) -> None:
    copy = pickle.loads(pickle.dumps(case))
    assert copy is not case
    assert copy == case
    assert hash(copy) == hash(case)
    assert repr(copy) == repr(case)


@pytest.mark.parametrize("case", WRITTEN, ids=name)
def test_repr_round_trips(case: Any) -> None:
    copy = eval(repr(case), vars(lt))
    assert copy == case
    assert type(copy) is type(case)


def test_all_cases_differ() -> None:
    assert len(set(EVERYTHING)) == len(EVERYTHING)
    assert lt.Bandit.from_samples(SAMPLES) == lt.Bandit.from_samples(SAMPLES)
    assert lt.Bandit.from_samples(SAMPLES) != lt.Bandit.from_samples({**SAMPLES, "B": [0.5, 2.0, 1.25]})


@pytest.mark.parametrize("case", [lt.LightTailed(1), lt.Gaussian(2), lt.ThompsonSampling(1, 0, 2)], ids=name)
def test_whole_numbers_become_floats(case: Any) -> None:
    assert {type(value) for value in vars(case).values()} == {float}


def with_kappa(make: Callable[[Any], Any]) -> list[tuple[Callable[[Any], Any], str, Any]]:
    return [(make, "kappa", bad) for bad in (0, 0.0, -0.5, math.nan, math.inf, "0.2", True, None, [1.0])]


BAD = [
    *with_kappa(lt.Standard),
    *with_kappa(lt.LightTailed),
    *with_kappa(lt.AnyTime),
    *with_kappa(lambda value: lt.ArmOptimal(value, 0.5)),
    *with_kappa(lt.Moss),
    *with_kappa(lt.Eqo),
    *with_kappa(lambda value: lt.TwoPart(value, 0.5)),
    *with_kappa(lt.InflatedThompson),
    *((lambda value: lt.TwoPart(0.5, value), "cap", bad) for bad in (0.0, math.nan, "1")),
    *((lambda value: lt.TwoPart(0.5, 0.5, alpha=value), "alpha", bad) for bad in (0.4, 1.0, "1", None)),
    *((lambda value: lt.TwoPart(0.5, 0.5, beta=value), "beta", bad) for bad in (0.0, 0.6, math.inf)),
    *((lt.KlUcb, "c", bad) for bad in (-0.5, math.nan, "0.5", None)),
    *((lambda value: lt.KlUcb(0.0, sigma=value), "sigma", bad) for bad in (0.0, -1.0, "1", True)),
    *((lt.Imed, "sigma", bad) for bad in (0.0, math.inf, "1")),
    *((lt.BayesUcb, "c", bad) for bad in (-1.0, 50.5, 1e308, "5")),
    *((lambda value: lt.EpsilonGreedy(value, 0.1), "c", bad) for bad in (0.0, -1.0, math.inf)),
    *((lambda value: lt.EpsilonGreedy(5.0, value), "d", bad) for bad in (0.0, math.nan, "1")),
    *((lt.ExploreThenCommit, "m", bad) for bad in (0, -3, 2.5, "20", True, None)),
    *with_kappa(lt.ThompsonSampling),
    *((lambda value: lt.ArmOptimal(0.2, value), "floor", bad) for bad in (-0.1, math.nan, "1", True)),
    *((lambda value: lt.ThompsonSampling(0.2, prior_sd=value), "prior_sd", bad) for bad in (0, -1, math.inf)),
    *(
        (lambda value: lt.ThompsonSampling(0.2, prior_mean=value), "prior_mean", bad)
        for bad in (math.nan, "0")
    ),
    *((lt.Exp3IX, "estimator", bad) for bad in ("gain", "", None, 1)),
    *((lambda value: lt.Exp3IX("reward", upper=value), "upper", bad) for bad in (1.0, 0.0)),
    *((lambda value: lt.Exp3IX(upper=value), "upper", bad) for bad in (math.nan, "1")),
    *((lambda value: lt.Exp3IX(eta=value), "eta", bad) for bad in (0.0, -1.0, math.inf)),
    *((lambda value: lt.Exp3IX(gamma=value), "gamma", bad) for bad in (0.0, math.nan)),
    *((lt.UCB, "bonus", bad) for bad in (0.2, None, lt.LightTailed, "LightTailed")),
    *((lt.SuccessiveElimination, "bonus", bad) for bad in (0.2, lt.UCB(lt.AnyTime(1.0)))),
    *((lt.Gaussian, "sigma", bad) for bad in (-1.0, math.nan, math.inf, "1", True)),
    *((lt.Uniform, "sigma", bad) for bad in (-1.0, math.nan)),
    *((lt.Laplace, "sigma", bad) for bad in (-1.0, math.nan)),
    *((lambda value: lt.StudentT(sigma=value), "sigma", bad) for bad in (-1.0, math.inf)),
    *((lt.StudentT, "df", bad) for bad in (2, 2.0, 1.0, -3.0, math.nan, math.inf, "3", True)),
    *((lt.Bandit, "means", bad) for bad in ([0.5], [], 0.5, "ab", None, [[0.1, 0.2], [0.3, 0.4]])),
    *((lambda value: lt.Bandit([0.5, value]), "means[1]", bad) for bad in (math.nan, math.inf, "1", True)),
    *((lambda value: lt.Bandit([0.5, value], lt.Bernoulli()), "means[1]", bad) for bad in (1.2, -0.1)),
    *((lambda value: lt.Bandit([0, 1], value), "noise", bad) for bad in (1.0, "Gaussian", lt.Gaussian)),
    *((lambda value: lt.Bandit([0, 1], labels=value), "labels", bad) for bad in (["a"], ["a", "a"])),
    *(
        (lambda value: lt.Bandit.from_samples({"A": [1.0], "B": [2.0, value]}), "samples['B'][1]", bad)
        for bad in (math.nan, math.inf)
    ),
    *((lt.Bandit.from_samples, "samples", bad) for bad in ({}, {"A": [1.0]}, [[1.0], [2.0]])),
    *(
        (lambda value: lt.Bandit.from_samples({"A": [1.0], "B": value}), "samples['B']", bad)
        for bad in ([], [[1.0]], ["x"], 3.0)
    ),
]


@pytest.mark.parametrize(("make", "field", "value"), BAD, ids=lambda part: name(part)[:40])
def test_a_bad_value_is_refused_by_name(make: Callable[[Any], Any], field: str, value: Any) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        make(value)
    message = str(caught.value)
    assert message.startswith(field + " must be ")
    assert message.endswith(f"but is {value!r}")
    assert "\n" not in message


@pytest.mark.parametrize("bonus", BONUSES, ids=name)
@pytest.mark.parametrize("arms", [2, 16])
def test_radius_is_positive_and_falls_with_the_pulls(bonus: lt.Bonus, arms: int) -> None:
    params = bonus.params(1000, arms)
    assert {type(value) for value in params} == {float}
    for t in (1.0, 30.0, 1000.0):
        radii = [bonus.radius(float(n), bonus.clock(t, *params), *params) for n in range(1, 1001)]
        assert min(radii) > 0.0
        assert all(after < before for before, after in pairwise(radii))


@pytest.mark.parametrize("bonus", MORE_BONUSES, ids=name)
@pytest.mark.parametrize("arms", [2, 16])
def test_radius_falls_with_the_pulls_until_it_is_zero(bonus: lt.Bonus, arms: int) -> None:
    params = bonus.params(1000, arms)
    assert {type(value) for value in params} == {float}
    for t in (2.0, 30.0, 1000.0):
        radii = [bonus.radius(float(n), bonus.clock(t, *params), *params) for n in range(1, 1001)]
        assert radii[0] > 0.0
        assert all(after < before or after == before == 0.0 for before, after in pairwise(radii))
        assert (radii[-1] == 0.0) == isinstance(bonus, lt.Moss)


@pytest.mark.parametrize("policy", [*POLICIES, *MORE_POLICIES], ids=name)
def test_params_are_finite_floats(policy: lt.Policy) -> None:
    params = policy.params(1000, 3)
    assert {type(value) for value in params} <= {float}
    assert all(math.isfinite(value) for value in params)


def varies(bonus: lt.Bonus) -> bool:
    """Whether the radius is another one at another time, by trying."""
    params = bonus.params(1000, 3)
    return len({bonus.radius(7.0, bonus.clock(float(t), *params), *params) for t in range(1, 1001)}) > 1


class ReadsTheRound(lt.Bonus):
    @staticmethod
    def radius(n: float, t: float) -> float:
        return math.sqrt(t) / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


class ReadsTheRoundInside(ReadsTheRound):
    """The second argument is used in an inner function alone."""

    @staticmethod
    def radius(n: float, when: float) -> float:
        def root() -> float:
            return math.sqrt(when)

        return root() / n


class IgnoresItsClock(ReadsTheRound):
    @staticmethod
    def clock(t: float) -> float:
        return t * t

    @staticmethod
    def radius(n: float, clock: float) -> float:
        return 1.0 / n


@pytest.mark.parametrize(
    "bonus",
    [*BONUSES, *MORE_BONUSES, ReadsTheRound(), ReadsTheRoundInside(), IgnoresItsClock()],
    ids=lambda b: type(b).__name__,
)
def test_changes_with_time_says_what_is_true(bonus: lt.Bonus) -> None:
    assert bonus.changes_with_time() == varies(bonus)


def test_both_kinds_of_bonus_are_among_the_cases() -> None:
    assert {varies(bonus) for bonus in BONUSES} == {True, False}


@pytest.mark.parametrize("case", [*BONUSES, *POLICIES, *MORE_BONUSES, *MORE_POLICIES], ids=name)
def test_needs_horizon_says_what_is_true(case: lt.Bonus | lt.Policy) -> None:
    assert case.needs_horizon == (case.params(100, 2) != case.params(10_000, 2))
    if not case.needs_horizon:
        assert all(math.isfinite(value) for value in case.params(math.nan, 2))


def test_elimination_warns_with_a_bonus_that_needs_no_horizon() -> None:
    with pytest.warns(UserWarning, match="SuccessiveElimination with AnyTime is not light-tailed") as caught:
        lt.SuccessiveElimination(lt.AnyTime(0.2))
    assert caught[0].filename == __file__  # it points at the caller's line


def apart(first: np.ndarray, second: np.ndarray) -> float:
    """How many standard errors the columns' means differ at most."""
    error = np.sqrt(first.var(axis=0, ddof=1) / len(first) + second.var(axis=0, ddof=1) / len(second))
    return float(np.max(np.abs(first.mean(axis=0) - second.mean(axis=0)) / error))


@pytest.mark.parametrize("policy", [*POLICIES, *LEARNERS], ids=name)
def test_relabelling_the_arms_relabels_the_pulls(policy: lt.Policy) -> None:
    means, order = np.array([0.2, 0.8, 0.5]), [1, 2, 0]
    straight = lt.simulate(policy, lt.Bandit(means), horizon=150, paths=3000, seed=1).pulls
    turned = lt.simulate(policy, lt.Bandit(means[order]), horizon=150, paths=3000, seed=2).pulls
    assert apart(straight[:, order], turned) < Z
    assert apart(straight, turned) > Z  # negative control: without relabelling they differ


def unevenness(bonus: lt.Bonus, means: list[float]) -> float:
    """Certain rewards: how many standard errors the arms' shares of the fifth pull differ from 1/4."""
    problem = lt.Bandit(means, lt.Gaussian(0.0))
    pulls = lt.simulate(lt.UCB(bonus), problem, horizon=5, paths=20_000, seed=6).pulls
    assert np.all(pulls >= 1)
    return float(np.max(np.abs((pulls - 1).mean(axis=0) - 0.25)) / math.sqrt(0.25 * 0.75 / 20_000))


def test_an_even_split_is_even_whatever_the_rewards_are() -> None:
    out = lt.simulate(lt.EvenSplit(), lt.Bandit([0.2, 0.8, 0.5]), horizon=150, paths=30, seed=1)
    assert np.all(out.pulls == 50)
    assert np.unique(out.reward).size == 30


@pytest.mark.parametrize("bonus", [*BONUSES, *MORE_BONUSES], ids=name)
def test_ties_are_broken_at_random(bonus: lt.Bonus) -> None:
    assert unevenness(bonus, [0.5, 0.5, 0.5, 0.5]) < Z
    assert unevenness(bonus, [0.5, 0.5, 0.4, 0.5]) > Z  # negative control: three arms tied


def one_pull_each(problem: lt.Bandit, seed: int) -> np.ndarray:
    """Sums of one reward of each arm, from the compiled kernel."""
    policy = lt.UCB(lt.LightTailed(0.2))
    return lt.simulate(policy, problem, horizon=problem.arms, paths=200_000, seed=seed).reward


def moments_off(sums: np.ndarray, mean: float, sd: float) -> float:
    """How many standard errors the mean or the variance of `sums` is away from what is given."""
    squares = (sums - mean) ** 2
    z_mean = (sums.mean() - mean) / (sd / math.sqrt(sums.size))
    z_variance = (squares.mean() - sd**2) / (squares.std() / math.sqrt(sums.size))
    return max(abs(z_mean), abs(z_variance))


MOMENTS = [
    (lt.Gaussian(0.7), 0.7),
    (lt.Uniform(0.7), 0.7),
    (lt.Laplace(0.7), 0.7),
    (lt.StudentT(df=9.0, sigma=0.7), 0.7),  # the fourth moment, hence the standard error, exists
    (lt.Bernoulli(), math.sqrt((0.3 * 0.7 + 0.6 * 0.4) / 2)),
]


@pytest.mark.parametrize(("noise", "sigma"), MOMENTS, ids=name)
def test_rewards_have_the_mean_and_sigma_of_the_problem(noise: lt.Noise, sigma: float) -> None:
    sums = one_pull_each(lt.Bandit([0.3, 0.6], noise), seed=3)
    assert moments_off(sums, 0.9, sigma * math.sqrt(2)) < Z
    assert moments_off(sums, 0.9, 1.05 * sigma * math.sqrt(2)) > Z  # negative controls
    assert moments_off(sums, 0.93, sigma * math.sqrt(2)) > Z


def test_resampled_rewards_have_the_moments_of_the_observations() -> None:
    sums = one_pull_each(lt.Bandit.from_samples(SAMPLES), seed=3)
    mean = np.mean(SAMPLES["A"]) + np.mean(SAMPLES["B"])
    sd = math.sqrt(np.var(SAMPLES["A"]) + np.var(SAMPLES["B"]))
    assert moments_off(sums, mean, sd) < Z
    assert moments_off(sums, mean, 1.05 * sd) > Z  # negative control
    values, counts = np.unique(sums, return_counts=True)
    assert values.tolist() == [0.5, 1.5, 2.0, 3.0, 4.5, 6.0]  # every pair of observations
    assert np.max(np.abs(counts / sums.size - 1 / 6)) < Z * math.sqrt(1 / 6 * 5 / 6 / sums.size)


LAWS = [
    (lt.Gaussian(0.7), stats.norm(0.3, 0.7), stats.norm(0.3, 0.7 * 1.05)),
    (
        lt.Uniform(0.7),
        stats.uniform(0.3 - 0.7 * math.sqrt(3), 1.4 * math.sqrt(3)),
        stats.uniform(0.3 - 0.735 * math.sqrt(3), 1.47 * math.sqrt(3)),
    ),
    (
        lt.Laplace(0.7),
        stats.laplace(0.3, 0.7 / math.sqrt(2)),
        stats.laplace(0.3, 0.7 / math.sqrt(2) * 1.05),
    ),
    (
        lt.StudentT(4.0, 0.7),
        stats.t(4.0, 0.3, 0.7 / math.sqrt(2)),
        stats.t(4.0, 0.3, 0.7 / math.sqrt(2) * 1.05),
    ),
]


def test_every_shipped_noise_has_its_moments_and_its_law_tested() -> None:
    """A law with two outcomes is determined by its mean."""
    shipped = {type(noise) for noise in NOISES}
    assert {type(noise) for noise, _ in MOMENTS} == shipped
    assert {type(noise) for noise, _, _ in LAWS} == {kind for kind in shipped if kind.outcomes is None}


@pytest.mark.parametrize(("noise", "law", "wider"), LAWS, ids=lambda case: type(case).__name__)
def test_rewards_follow_the_law_they_are_named_after(noise: lt.Noise, law: Any, wider: Any) -> None:
    """Kolmogorov-Smirnov, p > 1e-4; 100,000 rewards tell a sigma that is 5 % wider apart."""
    world = noise.world((9.0, 0.3))
    rng = block_generator(5, 0)
    rewards = [noise.reward(noise.shock(rng, *world), 1, *world) for _ in range(100_000)]
    assert stats.kstest(rewards, law.cdf).pvalue > 1e-4
    assert stats.kstest(rewards, wider.cdf).pvalue < 1e-4  # negative control


@dataclass(frozen=True)
class Forgetful(lt.Laplace):
    """A class with a `reward` of its own inherits no facts."""

    reward = staticmethod(scaled_reward)


def true_of(noise: lt.Noise) -> dict[str, bool]:
    """By trying: whether other means in `world` move the rewards, and whether sigma = 0 leaves no noise."""
    means, other = (0.2, 0.6), (0.9, 0.1)

    def rewards(of: lt.Noise, world: tuple[Any, ...]) -> list[float]:
        rng = block_generator(5, 0)
        return [of.reward(of.shock(rng, *world), arm, *world) for arm in (0, 1) * 50]

    first, *rest = noise.world(means)
    moved = rewards(noise, (np.array(other), *rest)) == rewards(noise, noise.world(other))
    still = without_sigma(noise)
    certain = rewards(still, still.world(means)) == list(means) * 50
    return {"moves": np.array_equal(first, means) and moved, "certain": certain, "states_sd": True}


def without_sigma(noise: Any) -> Any:
    return replace(noise, sigma=0.0) if hasattr(noise, "sigma") else noise


def stated(noise: lt.Noise) -> dict[str, bool]:
    return {"moves": noise.moves, "certain": without_sigma(noise).certain, "states_sd": noise.states_sd}


@pytest.mark.parametrize("noise", NOISES, ids=name)
def test_every_noise_states_the_facts_that_are_true(noise: lt.Noise) -> None:
    assert stated(noise) == true_of(noise)


def test_a_noise_that_forgets_a_fact_is_noticed() -> None:
    """Negative control."""
    assert true_of(Forgetful()) == {"moves": True, "certain": True, "states_sd": True}
    assert stated(Forgetful()) == {"moves": False, "certain": False, "states_sd": False}


def rewards_of(problem: lt.Bandit, arm: int) -> np.ndarray:
    noise, world = problem.noise, problem.noise.world(problem.means)
    rng = block_generator(6, 0)
    return np.array([noise.reward(noise.shock(rng, *world), arm, *world) for _ in range(50_000)])


def beyond(errors: np.ndarray, sigma: float) -> float:
    """By how many standard errors E exp(s error) exceeds exp(s^2 sigma^2 / 2), over some s."""
    found = []
    for s in (-2.0 / sigma, -0.5 / sigma, 0.5 / sigma, 2.0 / sigma):
        weights = np.exp(s * errors)
        found.append(
            (weights.mean() - math.exp((s * sigma) ** 2 / 2)) / (weights.std() / math.sqrt(errors.size))
        )
    return max(found)


def false_of(problem: lt.Bandit) -> set[str]:
    """The numbers that a noise states and that many rewards contradict."""
    noise, means, found = problem.noise, problem.means, set()
    drawn = [rewards_of(problem, arm) for arm in range(problem.arms)]
    errors = [rewards - mean for rewards, mean in zip(drawn, means, strict=True)]
    if noise.sd(means) != pytest.approx(max(float(error.std()) for error in errors), rel=0.05):
        found.add("sd")
    if noise.sub_gaussian is not None and max(beyond(error, noise.sub_gaussian) for error in errors) > Z:
        found.add("sub_gaussian")
    if (
        noise.normal is not None
        and min(stats.kstest(error / noise.normal, "norm").pvalue for error in errors) < 1e-4
    ):
        found.add("normal")
    if noise.outcomes is not None and set(np.concatenate(drawn)) != set(noise.outcomes):
        found.add("outcomes")
    if (span := noise.span(means)) is not None:
        low, high, slack = float(np.min(drawn)), float(np.max(drawn)), 0.01 * (span[1] - span[0])
        if not (span[0] <= low < span[0] + slack and span[1] - slack < high <= span[1]):
            found.add("span")
    return found


PROBLEMS_OF_NOISES = [
    *(lt.Bandit([0.3, 0.6], noise) for noise, _ in MOMENTS),
    lt.Bandit.from_samples(SAMPLES),
]


@pytest.mark.parametrize("problem", PROBLEMS_OF_NOISES, ids=lambda problem: type(problem.noise).__name__)
def test_the_numbers_that_a_noise_states_about_its_rewards_are_true(problem: lt.Bandit) -> None:
    """Theorems rest on `sub_gaussian`, exact answers on `outcomes` and `normal`, certificates on `span`."""
    assert false_of(problem) == set()


@dataclass(frozen=True)
class Boastful(lt.Uniform):
    """All numbers that it states are wrong."""

    sub_gaussian = 0.35
    normal = 0.7
    outcomes = (0.0, 1.0)

    def span(self, means: tuple[float, ...]) -> tuple[float, float]:
        return min(means) - self.sigma, max(means) + self.sigma

    def sd(self, means: tuple[float, ...]) -> float:
        return 1.1 * self.sigma


def test_a_noise_that_states_wrong_numbers_is_noticed() -> None:
    """Negative control."""
    assert false_of(lt.Bandit([0.3, 0.6], Boastful(0.7))) == {
        "sd",
        "sub_gaussian",
        "normal",
        "outcomes",
        "span",
    }
