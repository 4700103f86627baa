"""Weighted paths that skip ahead: path by path against every pull, in law, and against exact values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from cases import name
from scipy import stats
from test_rare import EXACT, FOUR, TWO, above, effort
from test_skip import GRAIN
from test_skip_law import Spoilt, SpoiltCoins
from tilted import drawn

import lighttail as lt
from lighttail.kernels import skip_kernel_for, tilted_skip
from lighttail.tails import play
from lighttail.tails.mixture import Mixture, tilting_of
from lighttail.tails.play import play_paths, whole_blocks
from lighttail.tails.task import TailEstimate, Task
from lighttail.tails.weighted import Weights, derived

BONUSES = [lt.Standard(0.4), lt.LightTailed(0.1), lt.ArmOptimal(0.2, 0.2)]
ALPHA = 1e-5  # of every two-sample test below; there are about 40 of them


# -- Both see the same hidden noise: one layout for all rounds, one for the last round of a regret.


class Hidden:
    """Noise of every arm, laid out beforehand; `random` is always `u`."""

    def __init__(self, arms: int, horizon: int, seed: int, u: float) -> None:
        rng = np.random.default_rng(seed)
        noise = np.round(rng.standard_normal((2, arms, 3 * horizon)) / GRAIN) * GRAIN
        self.sums = np.concatenate([np.zeros((2, arms, 1)), np.cumsum(noise, axis=2)], axis=2)
        self.u, self.furthest = u, np.zeros((2, arms), dtype=int)
        self.means: Any = None  # of the last round
        self.known: dict[tuple[float, float], tuple[int, int, int, float]] = {}
        self.numbers = 0

    def random(self) -> float:
        return self.u

    def reveal(self, layout: int, arm: int, first: int, last: int, mean: float) -> float:
        total = float(self.sums[layout, arm, last] - self.sums[layout, arm, first]) + (last - first) * mean
        self.known[last - first, total] = (layout, arm, first, mean)
        self.numbers += 1
        return total

    def total(self, arm: int, n: float, means: Any) -> float:
        layout = int(np.array_equal(means, self.means))
        first = self.furthest[layout, arm]
        self.furthest[layout, arm] += int(n)
        return self.reveal(layout, arm, first, first + int(n), float(means[arm]))

    def part(self, n: float, rest: float, total: float) -> float:
        layout, arm, first, mean = self.known[n + rest, total]
        self.reveal(layout, arm, first + int(n), first + int(n + rest), mean)
        return self.reveal(layout, arm, first, first + int(n), mean)


def hidden_total(rng: Hidden, arm: int, n: float, means: Any, sigma: float) -> float:
    return rng.total(int(arm), n, means)


def hidden_part(rng: Hidden, n: float, rest: float, total: float, means: Any, sigma: float) -> float:
    return rng.part(n, rest, total)


@dataclass(frozen=True)
class HiddenRewards(lt.Gaussian):
    total = staticmethod(hidden_total)
    part = staticmethod(hidden_part)


def bold_proxy(means: Any, sigma: float) -> float:
    return 0.02 * sigma


@dataclass(frozen=True)
class BoldRewards(HiddenRewards):
    """Blocks are planned far too long, so that much is drawn ahead."""

    proxy = staticmethod(bold_proxy)


def two_tilts(problem: lt.Bandit) -> Mixture:
    """Two plans of a component each, with two choices for every arm; means are multiples of 1/16."""
    true = np.array(problem.means)
    choices = [[true[::-1], true + 0.0625], [true - 0.0625, true + 0.125]]  # [component][choice]
    means = np.swapaxes(np.array(choices), 1, 2)
    later = np.array([true - 0.25, true[::-1] - 0.125])
    lam, later_lam = means - true[:, None], later - true
    return Mixture(
        log_p=np.log([0.5, 0.5]),
        log_q=np.full(means.shape, math.log(0.5)),
        means=means,
        lam=lam,
        psi=lam * true[:, None] + lam**2 / 2,
        caps=np.full(means.shape, math.inf),
        later_means=later,
        later_lam=later_lam,
        later_psi=later_lam * true + later_lam**2 / 2,
        groups=np.array([0, 1, 2]),
    )


def every_pull(task: Task, mixture: Mixture, walks: Hidden) -> tuple[list[float], int]:
    """(log-likelihood ratio of each component, rounds) of one path, in the plainest way."""
    bonus, gaps, horizon = task.policy.bonus, task.problem.gaps, task.horizon
    arms, params = task.problem.arms, task.policy.params(horizon, task.problem.arms)
    c = drawn(walks.u, mixture.log_p)
    means = [mixture.means[c, arm, drawn(walks.u, mixture.log_q[c, arm])] for arm in range(arms)]
    n, s, luck = np.zeros(arms), np.zeros(arms), np.zeros(arms)  # luck: the last reward of a regret
    index = np.full(arms, math.inf)
    loss, hit, last = 0.0, False, -1
    for t in range(1, horizon + 1):
        tied = np.flatnonzero(index == index.max())
        arm = int(tied[int(walks.u * tied.size)])
        loss += gaps[arm]
        if task.kind == "pseudo_regret":
            hit = loss >= task.target
            if hit or loss + max(gaps) * (horizon - t) < task.target:
                break
        elif t == horizon:
            last = arm
            luck[arm] = walks.sums[1, arm, 1] + mixture.later_means[c, arm]
            break
        place = int(n[arm])
        n[arm] += 1
        s[arm] += walks.sums[0, arm, place + 1] - walks.sums[0, arm, place] + means[arm]
        index[arm] = s[arm] / n[arm] + bonus.radius(n[arm], 0.0, *params)
    if task.kind == "regret":
        hit = max(task.problem.means) * horizon - s.sum() - luck.sum() >= task.target
    if not hit:
        return [-math.inf] * 2, t
    tilted = mixture.log_q + mixture.lam * s[:, None] - mixture.psi * n[:, None]
    values = mixture.log_p + np.logaddexp.reduce(tilted, axis=2).sum(axis=1)
    if last >= 0:
        values += mixture.later_lam[:, last] * luck[last] - mixture.later_psi[:, last]
    return values.tolist(), t


def skipped(task: Task, mixture: Mixture, walks: Hidden, noise: lt.Noise) -> tuple[list[float], int]:
    problem = lt.Bandit(task.problem.means, noise)
    kernel: Any = skip_kernel_for(task.policy, problem, tilted=True)
    kernel = getattr(kernel, "py_func", kernel)
    means, *rest = problem.noise.world(problem.means)
    log_parts, own, rounds = np.empty((1, 2)), np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    head = (walks, task.policy.params(task.horizon, problem.arms), means, tuple(rest), mixture)
    ends = (0.0, task.horizon, task.target, task.luck_counts)
    kernel(*head, np.array(problem.gaps), *ends, own, log_parts, rounds, np.zeros(1, dtype=np.int64))
    assert own[0] == drawn(walks.u, mixture.log_p)
    return log_parts[0].tolist(), int(rounds[0])


MEANS = {2: [0.25, 0.75], 3: [0.5, 0.25, 0.625]}  # multiples of 1/8, so that sums are exact


@dataclass(frozen=True)
class Coupled:
    """One path, every pull and skipped, each as (log-likelihood ratios, rounds)."""

    expected: tuple[list[float], int]
    found: tuple[list[float], int]
    numbers: int  # that skipping ahead revealed

    @property
    def same(self) -> bool:
        close = self.found[0] == pytest.approx(self.expected[0], rel=1e-9, abs=1e-9)
        return bool(close) and self.found[1] == self.expected[1]


def coupled(bonus: lt.Bonus, kind: Any, noise: lt.Noise, last_as_before: bool = False) -> list[Coupled]:
    """Some paths. last_as_before: what skips ahead does not know that the last round has other means."""
    found = []
    for arms, means in MEANS.items():
        problem = lt.Bandit(means)
        for seed in range(6):
            task = Task(lt.UCB(bonus), problem, 900, 60.0, kind)
            mixture = two_tilts(problem)
            walks = Hidden(arms, task.horizon, seed, 0.25 if seed % 2 else 0.75)
            walks.means = mixture.later_means[drawn(walks.u, mixture.log_p)]
            expected = every_pull(task, mixture, walks)
            given = mixture._replace(later_means=mixture.means[:, :, 0]) if last_as_before else mixture
            found.append(Coupled(expected, skipped(task, given, walks, noise), walks.numbers))
    return found


@pytest.mark.parametrize("kind", ["pseudo_regret", "regret"])
@pytest.mark.parametrize("bonus", BONUSES, ids=name)
def test_weights_equal_those_of_every_pull_on_the_same_noise(bonus: lt.Bonus, kind: Any) -> None:
    for noise in (HiddenRewards(), BoldRewards()):
        paths = coupled(bonus, kind, noise)
        assert all(path.same for path in paths)
        assert 2 <= sum(math.isfinite(path.expected[0][0]) for path in paths) < len(paths)
        if noise == HiddenRewards():  # it did skip
            assert sum(path.numbers for path in paths) < sum(path.expected[1] for path in paths)


def test_a_last_round_as_all_others_fails_that_test() -> None:
    """Negative control: paths of the event get other weights if the last round keeps its means."""
    paths = [path for bonus in BONUSES for path in coupled(bonus, "regret", BoldRewards(), True)]
    on = [path for path in paths if math.isfinite(path.expected[0][0])]
    assert not any(path.same for path in on)
    assert len(on) >= 6


def test_a_decision_that_comes_a_pull_late_fails_that_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the paths of the event end where every pull says that they do not."""
    exact = tilted_skip.choices_until
    monkeypatch.setattr(tilted_skip, "choices_until", lambda *level: exact(*level) + 1.0)
    paths = [path for bonus in BONUSES for path in coupled(bonus, "pseudo_regret", HiddenRewards())]
    on = [path for path in paths if math.isfinite(path.expected[0][0])]
    assert not any(path.same for path in on)
    assert len(on) >= 6


def test_how_far_the_next_choice_is() -> None:
    """Against counting, at levels that are hit exactly and at others."""
    for gap, worst in ((0.1, 0.6), (0.0, 0.6), (0.6, 0.6), (1 / 3, 0.7)):
        for loss in (0.0, 0.3, 2.1):
            for level in (loss, loss + gap, loss + 3 * gap, loss + 7.3 * gap, loss + 99.0):
                counted = [q for q in range(1, 13) if loss + q * gap >= level]
                assert tilted_skip.choices_until(loss, gap, level, 12.0) == (counted or [13])[0]
                hopeless = [q for q in range(1, 13) if loss + q * gap + (12 - q) * worst < level]
                found = tilted_skip.choices_until_hopeless(loss, gap, worst, level, 12.0)
                assert found == (hopeless or [13])[0]


# -- In law, and against exact values.


def weights(task: Task, played: Any, paths: int, noise: lt.Noise | None = None) -> np.ndarray:
    """Log weights of at least that many paths of the derived plan, as if it were to skip ahead."""
    found = derived(task)
    assert found is not None
    plan = tilting_of(task, [replace(found, caps=np.full(found.caps.shape, math.inf))])
    task = replace(task, problem=lt.Bandit(task.problem.means, noise or task.problem.noise))
    count = whole_blocks(paths, task.horizon, played)
    settings: Any = {"played": played, "rarity": plan.rarity}
    seed = 1 if played == "step" else 2
    return Weights.of(play_paths(task, plan.mixture, effort(seed), count, **settings), plan).log_weight


def pvalues(first: np.ndarray, second: np.ndarray) -> list[float]:
    """Of the chance to hit, and of the weights of paths that do."""
    hit = [np.isfinite(one) for one in (first, second)]
    table = np.array([[one.sum(), one.size - one.sum()] for one in hit])
    values = [] if (table.sum(axis=0) == 0).any() else [float(stats.chi2_contingency(table).pvalue)]
    return [*values, float(stats.ks_2samp(first[hit[0]], second[hit[1]], method="asymp").pvalue)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pseudo_regret", "regret"])
@pytest.mark.parametrize(
    ("bonus", "noise"),
    [*((bonus, lt.Gaussian(1.0)) for bonus in BONUSES), (BONUSES[0], lt.Bernoulli())],
    ids=name,
)
def test_the_law_of_weights_is_that_of_every_pull(bonus: lt.Bonus, noise: lt.Noise, kind: Any) -> None:
    for means in (TWO.means, FOUR.means):
        task = Task(lt.UCB(bonus), lt.Bandit(means, noise), 1000, 100.0, kind)
        assert min(pvalues(weights(task, "step", 1000), weights(task, "skip", 2000))) > ALPHA


@pytest.mark.parametrize("spoilt", [Spoilt, SpoiltCoins], ids=["Gaussian", "Bernoulli"])
def test_a_wrong_bridge_fails_that_test(spoilt: Any) -> None:
    """Negative control, with blocks that are planned far too long: the right bridge passes."""
    noise = lt.Gaussian() if spoilt is Spoilt else lt.Bernoulli()
    task = Task(lt.UCB(lt.Standard(0.4)), lt.Bandit(TWO.means, noise), 1500, 150.0, "pseudo_regret")
    stepped = weights(task, "step", 4000)
    assert min(pvalues(stepped, weights(task, "skip", 4000, spoilt()))) > ALPHA
    assert min(pvalues(stepped, weights(task, "skip", 4000, spoilt(bridge=0.5)))) < ALPHA


@pytest.fixture
def always_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "TILTED_SHORT", 0)
    monkeypatch.setattr(play, "TILTED_PULLS_PER_NUMBER", 0.0)


@pytest.mark.parametrize("horizon", [500, 1000, 2000, 4000])
@pytest.mark.parametrize("policy", EXACT, ids=name)
def test_the_exact_tail_is_met(policy: lt.Policy, horizon: int, always_skip: None) -> None:
    settings: Any = {"relative_error": 0.02, "seed": 2, "method": "importance"}
    found = lt.tail_probability(policy, TWO, horizon, above(horizon), **settings)
    exact = EXACT[policy][horizon]
    assert found.diagnostics.played == "skip"
    assert found.reached
    assert abs(found.value - exact) < min(4.0 * found.diagnostics.relative_error / 1.96, 0.04) * exact
    assert found.diagnostics.sure_low < exact < found.diagnostics.sure_high


# -- Which way is taken.


def test_long_paths_skip_where_it_pays_and_short_ones_keep_their_bits() -> None:
    def found(policy: lt.Policy, horizon: int, threads: int = 2) -> TailEstimate:
        settings: dict[str, Any] = {
            "method": "importance",
            "relative_error": 0.2,
            "seed": 1,
            "threads": threads,
        }
        return lt.tail_probability(policy, TWO, horizon, 0.2 * horizon, **settings)

    standard = lt.UCB(lt.Standard(0.8))
    assert found(standard, 4000).diagnostics.played == "step"
    assert found(standard, 50_000).diagnostics.played == "skip"
    assert found(standard, 50_000, 1) == found(standard, 50_000)
    assert found(lt.UCB(lt.AnyTime(0.1)), 8000).diagnostics.played == "step"


def test_plain_simulation_skips_too() -> None:
    policy = lt.UCB(lt.Standard(0.8))
    found = lt.tail_probability(policy, TWO, 50_000, 20.0, seed=1, method="plain")
    assert (found.method, found.diagnostics.played) == ("plain simulation", "skip")
