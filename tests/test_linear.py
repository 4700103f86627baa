"""Linear bandits, simulated: long runs, ill-conditioned V, seeds, intervals, and what all classes share."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from linear_cases import LIGHT, OFUL, THOMPSON, problem_of, theta_of, unit_rows
from numba import njit

import lighttail as lt
from lighttail.kernels import kernel_for
from lighttail.kernels.ridge import absorb, blank, products, restart

Z = 4.0  # standard errors


@njit
def follow(actions: Any, rewards: Any, ridge: Any) -> Any:
    """theta-hat after these observations, by the kernel's own steps, and how often P was made anew."""
    state = blank(actions.shape[1])
    restart(state, ridge)
    p, theta, pace = state[0], state[1], state[2]
    u, anew = np.empty(theta.size), 0
    for t in range(len(rewards)):
        a = actions[t]
        products(p, a, u)
        absorb(state, a, rewards[t], np.sum(a * theta), max(0.0, np.sum(a * u)), ridge)
        anew += pace[2] == 0.0
    return theta, anew


@pytest.mark.parametrize("spread", ["sphere", "nearly collinear", "long"])
def test_theta_hat_after_a_hundred_thousand_rounds_is_that_of_a_direct_solve(spread: str) -> None:
    rng, rounds, d = np.random.default_rng(4), 100_000, 6
    actions = unit_rows(rounds, d, 5)
    if spread == "nearly collinear":
        actions[:, 1:] *= 1e-3
    if spread == "long":
        actions *= 30.0
    theta = theta_of(d)
    rewards = actions @ theta + rng.standard_normal(rounds)
    found, anew = follow(actions, rewards, 1.0)
    direct = np.linalg.solve(np.eye(d) + actions.T @ actions, actions.T @ rewards)
    assert np.max(np.abs(found - direct)) < 1e-8
    other = np.linalg.solve(2.0 * np.eye(d) + actions.T @ actions, actions.T @ rewards)
    assert np.max(np.abs(found - other)) > 1e-8  # negative control: another ridge
    assert rounds / 512 - 1 <= anew < rounds / 512 + 60  # not at every round


HARD = {
    "collinear": (np.array([[0.5, 0.5], [0.25, 0.25], [-0.5, -0.5]]), 1.0),
    "duplicated": (np.array([[0.6, 0.8], [0.6, 0.8], [0.6, 0.8], [0.0, 1.0]]), 1.0),
    "nearly the same": (np.array([[0.6, 0.8], [0.6, 0.8 - 1e-13], [0.6, 0.8 - 1e-9]]), 1.0),
    "a tiny ridge": (np.array([[0.6, 0.8], [0.8, 0.6]]), 1e-14),
    "huge": (1e9 * np.array([[0.6, 0.8], [0.8, 0.6], [0.6, 0.8000001]]), 1.0),
    "huge and tiny": (np.array([[1e12, 1e12], [1e-12, 0.0], [1e12, -1e12]]), 1.0),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.filterwarnings("ignore:the paper's theorem")
@pytest.mark.filterwarnings("ignore:overflow")
def test_an_ill_conditioned_v_never_gives_nan(name: str) -> None:
    actions, ridge = HARD[name]
    for problem in (
        lt.LinearBandit([0.3, 0.4], actions),
        lt.LinearBandit([0.3, 0.4], np.broadcast_to(actions, (3000, *actions.shape)).copy()),
    ):
        for policy in (lt.LinearUCB(lt.LinearLightTailed(0.2), ridge), lt.LinearThompson(1.0, ridge)):
            out = lt.simulate(policy, problem, horizon=3000, paths=3, seed=1)
            assert np.all(np.isfinite(out.reward))
            assert np.all(out.pseudo_regret >= 0.0)
            assert problem.fixed is False or np.all(out.pulls.sum(axis=1) == 3000)


def test_a_million_rounds_of_the_same_action() -> None:
    problem = lt.LinearBandit([0.3, 0.4], [[0.6, 0.8]])
    for policy in (LIGHT, THOMPSON):
        out = lt.simulate(policy, problem, horizon=1_000_000, paths=1, seed=1)
        assert out.pulls.tolist() == [[1_000_000]]
        assert abs(out.reward[0] - 500_000.0) < 5.0 * 1000.0
    twice = lt.LinearBandit([0.3, 0.4], [[0.6, 0.8], [0.6, 0.8]])  # every round is a tie
    pulls = lt.simulate(LIGHT, twice, horizon=1_000_000, paths=1, seed=1).pulls[0]
    assert abs(pulls[0] - 500_000) < 5.0 * 500.0


def test_the_same_seed_gives_the_same_bits_for_any_threads() -> None:
    for kind in ("fixed", "sphere"):
        runs = [
            lt.simulate(LIGHT, problem_of(kind, 4, 6), horizon=500, paths=130, seed=5, threads=threads)
            for threads in (1, 2, 5)
        ]
        for first, second in pairwise(runs):
            assert np.array_equal(first.reward, second.reward)
            assert np.array_equal(first.pseudo_regret, second.pseudo_regret)
        more = lt.simulate(LIGHT, problem_of(kind, 4, 6), horizon=500, paths=200, seed=5)
        full = runs[0].settings["block_paths"] * (130 // runs[0].settings["block_paths"])
        assert np.array_equal(more.reward[:full], runs[0].reward[:full])


def test_new_numbers_compile_nothing() -> None:
    lt.simulate(LIGHT, problem_of("sphere", 4, 6), horizon=10, paths=2, seed=1)
    kernel = kernel_for(LIGHT, problem_of("sphere", 4, 6))
    before = len(kernel.signatures)
    problem = lt.LinearBandit([0.1, 0.2, 0.3], lt.SphereActions(4), lt.Gaussian(2.0))
    lt.simulate(lt.LinearUCB(lt.LinearLightTailed(0.9), 3.0), problem, horizon=33, paths=5, seed=2)
    assert kernel_for(LIGHT, problem) is kernel
    assert len(kernel.signatures) == before == 1


def test_an_outcome_without_pulls_is_whole(tmp_path: Any) -> None:
    out = lt.simulate(LIGHT, problem_of("sphere", 3, 5), horizon=200, paths=300, seed=1)
    assert out.pulls is None
    assert (out.labels, out.means.size) == ((), 0)
    assert np.all(out.pseudo_regret >= 0.0)
    noise = (out.regret - out.pseudo_regret) / (0.5 * math.sqrt(200))
    assert abs(noise.mean()) < Z / math.sqrt(300)
    again = lt.Outcome.load(out.save(tmp_path / "out.npz"))
    for kind in ("regret", "pseudo_regret", "reward"):
        assert again.cvar(0.95, kind) == out.cvar(0.95, kind)
        assert again.mean(kind) == out.mean(kind)
        assert again.mean(kind).low <= out.mean(kind).value <= again.mean(kind).high
    assert again.settings == out.settings
    assert list(out.to_frame().columns) == ["reward", "regret", "pseudo_regret"]


def test_intervals_hold_where_the_actions_change() -> None:
    """Coverage of the 95 % intervals over 250 samples of 100 paths: at least 93 % each, as elsewhere."""
    problem = lt.LinearBandit([0.6, 0.3], lt.SphereActions(3))
    out = lt.simulate(LIGHT, problem, horizon=20, paths=25_000, seed=8)
    asked: list[Any] = [
        lambda some: some.mean("regret"),
        lambda some: some.mean("reward"),
        lambda some: some.cvar(0.9, "pseudo_regret"),
    ]
    truth, held = [ask(out).value for ask in asked], np.zeros(len(asked))
    for sample in range(250):
        few = replace(out, record=out.record.rows(slice(100 * sample, 100 * (sample + 1))))
        estimates = [ask(few) for ask in asked]
        held += [e.low <= true <= e.high for e, true in zip(estimates, truth, strict=True)]
    assert np.all(held / 250 >= 0.93), held / 250


@pytest.mark.parametrize("dim", [1, 2, 3, 8])
def test_points_are_uniform_on_the_sphere_and_in_the_ball(dim: int) -> None:
    """The mean of the best of six: the formula, half of what always taking the worst loses, within Z."""
    theta = np.eye(dim)[0]
    highest = {}
    for source in (lt.SphereActions(6), lt.BallActions(6)):
        out = lt.simulate(LIGHT, lt.LinearBandit(theta, source), horizon=1, paths=20_000, seed=dim)
        highest[source] = out.record.best
        error = out.record.best.std() / math.sqrt(out.paths)
        assert abs(out.record.best.mean() - source.worst_loss(theta, 1) / 2) < Z * error
        rows = np.empty((500, dim))
        source.fill(np.random.default_rng(dim), 1, rows, *source.source(dim))
        shares = np.linalg.norm(rows, axis=1) ** dim  # in a ball uniform on [0, 1]
        expected = 1.0 if isinstance(source, lt.SphereActions) else 0.5
        assert abs(shares.mean() - expected) < Z / math.sqrt(12 * 500)
    sphere = highest[lt.SphereActions(6)].mean()
    assert abs(sphere - lt.BallActions(6).worst_loss(theta, 1) / 2) > Z * 0.5 / math.sqrt(20_000)  # control


EVERYTHING = [
    *(lt.LinearLightTailed(0.2), lt.LinearStandard(0.8), lt.Oful(1.0, 0.1, 2.0)),
    *(LIGHT, THOMPSON, OFUL, lt.SphereActions(3), lt.BallActions(4), lt.BallSet(3), lt.BoxSet([0.0], [1.0])),
    *(problem_of(kind, 3, 4) for kind in ("fixed", "sphere", "ball")),
]


@pytest.mark.parametrize("case", EVERYTHING, ids=lambda case: str(case)[:40].replace(" ", ""))
def test_a_copy_is_equal_and_repr_round_trips(case: Any) -> None:
    copy = pickle.loads(pickle.dumps(case))
    assert copy == case
    assert hash(copy) == hash(case)
    written = eval(repr(case), vars(lt))
    assert written == case
    assert repr(written) == repr(case)


@pytest.mark.parametrize("bonus", [lt.LinearLightTailed(0.2), lt.LinearStandard(0.8), lt.Oful()], ids=str)
def test_radius_is_positive_and_grows_with_the_width(bonus: lt.LinearBonus) -> None:
    params = bonus.params(1000, 4)
    for t in (1.0, 30.0, 1000.0):
        time = bonus.clock(t, 2.0, 1.0, *params)
        radii = [bonus.radius(z, time, *params) for z in np.linspace(0.0, 1.0, 50).tolist()]
        assert radii[0] == 0.0
        assert all(after > before for before, after in pairwise(radii))
    assert not any(math.isnan(value) for value in bonus.params(math.nan, 4))  # needs no horizon


def test_what_the_theorem_does_not_cover_is_not_called_light_tailed() -> None:
    assert LIGHT.light_tailed
    assert not lt.LinearUCB(lt.LinearLightTailed(0.2), ridge=2.0).light_tailed
    assert not OFUL.light_tailed
    with pytest.warns(
        UserWarning, match=r"no action is longer than 1.* here they reach 2 and 0\.5"
    ) as caught:
        assert not lt.LinearBandit([0.5, 0.0], [[2.0, 0.0], [0.0, 1.0]]).within_theorem
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="here they reach 1 and 1.5"):
        lt.LinearBandit([1.5, 0.0], lt.SphereActions(3))
