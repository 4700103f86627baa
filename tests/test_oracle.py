"""The kernels equal plain Python exactly, path by path; the whole file also passes without a compiler.

`make test` runs it a second time with NUMBA_DISABLE_JIT=1, on smaller sizes: there the kernels are
plain Python themselves, so that their logic is seen to be right whatever the compiler does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
import pytest
from cases import MORE_POLICIES, POLICIES, name, problems, spread_means
from oracle import play

import lighttail as lt
from lighttail.kernels import stream
from lighttail.kernels.build import BREATH
from lighttail.random.streams import block_generator, standard_normal, uniform
from lighttail.running.blocks import block_paths

PLAIN = bool(numba.config.DISABLE_JIT)
ARMS = (2, 3, 5, 16)

with pytest.warns(UserWarning, match="not light-tailed"):
    SE_ANY_TIME = lt.SuccessiveElimination(lt.AnyTime(0.1))


@dataclass(frozen=True)
class OwnFixed(lt.Bonus):
    """A user's bonus that calls a helper and a module constant."""

    kappa: float

    @staticmethod
    def radius(n: float, clock: float, scale: float, log_horizon: float) -> float:
        return shrink(scale, n) + WOBBLE * log_horizon / (n + 3.0)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return self.kappa * math.sqrt(horizon), math.log(horizon)


@dataclass(frozen=True)
class OwnMoving(lt.Bonus):
    """A user's bonus that reads the round itself: the plain clock."""

    kappa: float

    @staticmethod
    def radius(n: float, t: float, kappa: float) -> float:
        return kappa * math.sqrt(math.log(1.0 + t) / n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


WOBBLE = 0.125


def shrink(scale: float, n: float) -> float:
    return scale / (n * math.sqrt(n))


OWN = [
    lt.UCB(OwnFixed(0.2)),
    lt.UCB(OwnMoving(0.4)),
    lt.SuccessiveElimination(OwnFixed(0.05)),
    lt.SuccessiveElimination(OwnMoving(0.2)),
]


def assert_equal(policy: lt.Policy, problem: lt.Bandit, horizon: int, paths: int, seed: int = 7) -> None:
    """The kernel and the oracle agree to the last bit."""
    settings = {"horizon": horizon, "paths": paths, "seed": seed}
    kernel = lt.simulate(policy, problem, **settings, threads=1, method="step")
    plain = play(policy, problem, horizon, paths, seed)
    assert np.array_equal(kernel.pulls, plain.pulls)
    assert np.array_equal(kernel.reward, plain.reward)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.running.blocks.BLOCK_PULLS", 1000)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("policy", [*POLICIES, SE_ANY_TIME], ids=name)
@pytest.mark.parametrize("noise", range(6), ids=lambda k: type(problems(2)[k].noise).__name__)
def test_every_policy_on_every_noise(policy: lt.Policy, noise: int) -> None:
    horizon, paths = (100, 11) if PLAIN else (180, 17)
    assert paths > block_paths(horizon)
    for arms in ARMS:
        assert_equal(policy, problems(arms)[noise], horizon, paths if arms < 16 else block_paths(horizon) + 1)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("policy", MORE_POLICIES, ids=name)
def test_further_policies(policy: lt.Policy) -> None:
    """Normal rewards, some of them outside [0, 1], and those of Bernoulli laws."""
    for arms in ARMS[:2] if PLAIN else ARMS:
        for problem in problems(arms)[:2]:
            assert_equal(policy, problem, horizon=60 if PLAIN else 180, paths=3 if PLAIN else 11)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("policy", OWN, ids=name)
def test_a_users_own_bonus(policy: lt.Policy) -> None:
    for arms in ARMS:
        for problem in problems(arms)[:2]:
            assert_equal(policy, problem, horizon=60 if PLAIN else 180, paths=4 if PLAIN else 20)


@pytest.mark.parametrize("policy", [*POLICIES, SE_ANY_TIME, *OWN, *MORE_POLICIES], ids=name)
@pytest.mark.parametrize("arms", [2, 3])
def test_pull_by_pull_at_every_short_horizon(policy: lt.Policy, arms: int) -> None:
    for horizon in range(arms, arms + 41, 5 if PLAIN else 1):
        for problem in problems(arms)[:2]:
            assert_equal(policy, problem, horizon, paths=3, seed=horizon)


@pytest.mark.parametrize("policy", [*POLICIES, SE_ANY_TIME, *OWN, *MORE_POLICIES], ids=name)
def test_where_every_decision_is_a_tie(policy: lt.Policy) -> None:
    for arms in ARMS:
        assert_equal(policy, lt.Bandit([0.5] * arms, lt.Gaussian(0.0)), horizon=70, paths=4)
        assert_equal(policy, lt.Bandit([0.0] * (arms - 1) + [1.0], lt.Bernoulli()), horizon=70, paths=4)


@dataclass(frozen=True)
class OneOverN(lt.LightTailed):
    """radius(n) = 1 / n exactly."""

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (1.0,)


def test_where_an_elimination_is_an_exact_tie() -> None:
    """Certain rewards 0 and 1: after two pulls each 1 - 1/2 = 0 + 1/2, which drops no arm; three do."""
    policy, problem = lt.SuccessiveElimination(OneOverN(1.0)), lt.Bandit([0.0, 1.0], lt.Gaussian(0.0))
    assert_equal(policy, problem, horizon=20, paths=2)
    assert play(policy, problem, 20, 1, 1).arms[0].tolist() == [0, 1] * 3 + [1] * 14


@pytest.mark.parametrize("shift", [-1e12, 1e12])
def test_where_rounding_makes_ties(shift: float) -> None:
    problem = lt.Bandit([shift + mean for mean in spread_means(5)])
    for policy in (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.AnyTime(0.3))):
        assert_equal(policy, problem, horizon=200, paths=10)


@pytest.mark.parametrize(
    "policy",
    [
        lt.UCB(lt.LightTailed(0.2)),
        lt.UCB(lt.AnyTime(0.3)),
        lt.SuccessiveElimination(lt.Standard(0.4)),
        lt.SuccessiveElimination(lt.Standard(50.0)),
        lt.ThompsonSampling(0.5),
        lt.Exp3IX(),
    ],
    ids=name,
)
def test_across_the_pauses_of_a_long_path(policy: lt.Policy) -> None:
    """A kernel looks at its stop flag every BREATH pulls; play goes on as if it had not."""
    assert_equal(policy, lt.Bandit([0.79, 0.8]), horizon=BREATH + 3, paths=2)


def test_across_blocks_of_their_real_size() -> None:
    horizon = 12
    paths = block_paths(horizon) + 5
    assert block_paths(horizon) == 4096
    assert_equal(lt.UCB(lt.Standard(0.4)), lt.Bandit([0.2, 0.8]), horizon, paths)


def test_another_kappa_is_told_apart() -> None:
    """Negative control: the comparison sees 1 % of kappa."""
    problem = lt.Bandit([0.2, 0.8])
    for kappa in (0.2 * 1.01, 0.2 * 0.99):
        kernel = lt.simulate(lt.UCB(lt.LightTailed(0.2)), problem, horizon=200, paths=20, seed=7)
        plain = play(lt.UCB(lt.LightTailed(kappa)), problem, 200, 20, 7)
        assert not np.array_equal(kernel.pulls, plain.pulls)
        assert not np.array_equal(kernel.reward, plain.reward)


def test_one_draw_too_many_is_told_apart() -> None:
    """Negative control: an oracle one random number out of step differs from the first path on."""
    problem = lt.Bandit([0.2, 0.8])
    kernel = lt.simulate(lt.ThompsonSampling(0.5), problem, horizon=50, paths=1, seed=7)
    rng = block_generator(7, 0)
    rng.random()
    experiment = lt.Experiment(lt.ThompsonSampling(0.5), [0, 1], seed=rng)
    total = 0.0
    for _ in range(50):
        shock = rng.standard_normal()
        trial = experiment.ask()
        experiment.tell(trial.id, problem.means[trial.arm] + shock)
        total += problem.means[trial.arm] + shock
    assert abs(total - kernel.reward[0]) > 0.1


@numba.njit
def fill_normals(rng, out):
    for i in range(out.size):
        out[i] = standard_normal(rng)


@numba.njit
def fill_uniforms(rng, out):
    for i in range(out.size):
        out[i] = uniform(rng)


DRAWS = 20_000 if PLAIN else 3_000_000


@pytest.mark.parametrize(
    ("fill", "draw"),
    [(fill_normals, np.random.Generator.standard_normal), (fill_uniforms, np.random.Generator.random)],
    ids=["standard_normal", "uniform"],
)
def test_the_compiled_draws_are_numpys_own(fill, draw) -> None:
    compiled, numpys = block_generator(3, 1), block_generator(3, 1)
    ours = np.empty(DRAWS)
    fill(stream(compiled), ours)
    theirs = draw(numpys, DRAWS)
    assert np.array_equal(ours, theirs)
    ours_after, theirs_after = compiled.bit_generator.state, numpys.bit_generator.state
    assert np.array_equal(ours_after["state"]["state"], theirs_after["state"]["state"])
    assert np.array_equal(compiled.random(5), numpys.random(5))
    if fill is fill_normals:  # the sample reached the ziggurat's tail, both ways
        assert ours.min() < -3.6541528853610088 < 3.6541528853610088 < ours.max()
