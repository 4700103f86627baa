"""Skip-ahead plays what playing every pull plays, path by path where both see the same rewards; its blocks,
methods and seeds. `test_skip_law.py` compares the laws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases import BONUSES, name, spread_means
from numba.core import event
from test_simulate import Compilations

import lighttail as lt
from lighttail.kernels import skip, skip_kernel_for
from lighttail.noises.formulas import bernoulli_clear, normal_clear
from lighttail.running.prepare import choose_method, numbers_drawn

POLICIES = [
    *(lt.UCB(bonus) for bonus in BONUSES),
    lt.SuccessiveElimination(lt.Standard(0.4)),
    lt.SuccessiveElimination(lt.LightTailed(0.05)),
]
GRAIN = 2.0**-30  # rewards are multiples of it, so that sums and differences of sums are exact


# -- The coupling of the proof: both methods see the same hidden rewards, and must agree path by path.


class Hidden:
    """Rewards of every arm, laid out beforehand; in place of a generator."""

    def __init__(self, means: list[float], horizon: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        noise = self.rng.standard_normal((len(means), 2 * horizon + 64)) + np.array(means)[:, None]
        rewards = np.round(noise / GRAIN) * GRAIN
        self.sums = np.concatenate([np.zeros((len(means), 1)), np.cumsum(rewards, axis=1)], axis=1)
        self.furthest = [0] * len(means)
        self.known: dict[tuple[float, float], tuple[int, int]] = {}
        self.numbers = 0

    def random(self) -> float:
        return float(self.rng.random())

    def reveal(self, arm: int, first: int, last: int) -> float:
        """The sum over the pulls after `first` up to `last`, which is then known by its length and sum."""
        total = float(self.sums[arm, last] - self.sums[arm, first])
        self.known[last - first, total] = (arm, first)
        self.numbers += 1
        return total

    def total(self, arm: int, n: float) -> float:
        first = self.furthest[arm]
        self.furthest[arm] = first + int(n)
        return self.reveal(arm, first, first + int(n))

    def part(self, n: float, rest: float, total: float) -> float:
        arm, first = self.known[n + rest, total]
        self.reveal(arm, first + int(n), first + int(n + rest))
        return self.reveal(arm, first, first + int(n))


def hidden_total(rng: Hidden, arm: int, n: float, *world: Any) -> float:
    return rng.total(int(arm), n)


def hidden_part(rng: Hidden, n: float, rest: float, total: float, *world: Any) -> float:
    return rng.part(n, rest, total)


@dataclass(frozen=True)
class HiddenRewards(lt.Gaussian):
    """Gaussian noise whose draws are read off `Hidden`."""

    total = staticmethod(hidden_total)
    part = staticmethod(hidden_part)


def small_sigma(means: Any, sigma: float) -> float:
    return 0.05 * sigma


def hasty_clear(here: float, there: float, n: float, limit: float, means: Any, sigma: float) -> bool:
    return normal_clear(here, there, n, limit, means, 0.05 * sigma)


@dataclass(frozen=True)
class HastyRewards(HiddenRewards):
    """A twentieth of sigma where blocks are chosen and accepted, so that many of them have crossed."""

    clear = staticmethod(hasty_clear)
    proxy = staticmethod(small_sigma)


def play_every_pull(bonus: lt.Bonus, walks: Hidden, horizon: int) -> tuple[list[int], float]:
    """UCB on the hidden rewards, in the plainest way."""
    sums = walks.sums
    params = bonus.params(horizon, len(sums))
    pulls = [1] * len(sums)
    for t in range(len(sums) + 1, horizon + 1):
        clock = bonus.clock(float(t), *params)
        index = [sums[arm, n] / n + bonus.radius(float(n), clock, *params) for arm, n in enumerate(pulls)]
        pulls[int(np.argmax(index))] += 1
    return pulls, float(sum(sums[arm, n] for arm, n in enumerate(pulls)))


def skip_ahead(
    noise: lt.Noise, bonus: lt.Bonus, walks: Hidden, means: Any, horizon: int
) -> tuple[Any, float]:
    problem = lt.Bandit(means, noise)
    kernel: Any = skip_kernel_for(lt.UCB(bonus), problem)
    kernel = getattr(kernel, "py_func", kernel)  # the kernel as plain Python
    reward, pulls = np.empty(1), np.empty((1, problem.arms), dtype=np.int64)
    params, world = bonus.params(horizon, problem.arms), noise.world(problem.means)
    kernel(walks, params, world, horizon, reward, pulls, np.zeros(1, dtype=np.int64))
    return pulls[0].tolist(), float(reward[0])


@dataclass(frozen=True)
class Moss(lt.Bonus):
    """A user's bonus: sqrt(4/n * ln(1 + T / (K n))), for which n * radius(n) is concave."""

    concave = True

    @staticmethod
    def radius(n: float, clock: float, share: float) -> float:
        return math.sqrt(4.0 / n * math.log1p(share / n))

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (horizon / arms,)


@dataclass(frozen=True)
class Growing(lt.Bonus):
    """A user's bonus that grows with the round: kappa * sqrt(ln(1 + t) / n)."""

    concave = True
    kappa: float = 0.5

    @staticmethod
    def radius(n: float, t: float, kappa: float) -> float:
        return kappa * math.sqrt(math.log1p(t) / n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.kappa,)


OWN = [Moss(), Growing()]
EQUAL = [0.5] * 4  # the leaders change often, so that every crossing counts


@pytest.mark.parametrize("bonus", [*BONUSES, *OWN], ids=name)
def test_skipping_equals_every_pull_on_the_same_rewards(bonus: lt.Bonus) -> None:
    numbers = pulls = 0
    for arms, horizon, seed in [(2, 9000, 1), (2, 700, 2), (3, 1500, 3), (5, 3000, 4), (5, 60, 5), (2, 2, 6)]:
        means = spread_means(arms) if seed != 4 else EQUAL
        walks = Hidden(means, horizon, seed)
        expected, reward = play_every_pull(bonus, walks, horizon)
        played, total = skip_ahead(HiddenRewards(), bonus, walks, means, horizon)
        assert played == expected
        assert math.isclose(total, reward, rel_tol=1e-12)
        numbers, pulls = numbers + walks.numbers, pulls + horizon
    assert numbers < pulls / 2  # it did skip


@pytest.mark.parametrize("bonus", [lt.LightTailed(0.2), lt.AnyTime(0.3)], ids=name)
def test_a_hasty_block_is_told_apart(bonus: lt.Bonus) -> None:
    """Negative control: accepting blocks that may have crossed plays other pulls."""
    differ = 0
    for seed in range(6):
        walks = Hidden(EQUAL, 3000, seed)
        expected, _ = play_every_pull(bonus, walks, 3000)
        differ += skip_ahead(HastyRewards(), bonus, walks, EQUAL, 3000)[0] != expected
    assert differ >= 3


def test_more_known_points_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skip, "ROOM", skip.RESERVE + 8)
    widened = []
    wider = skip.wider
    monkeypatch.setattr(skip, "wider", lambda points: widened.append(points.shape) or wider(points))
    for seed in range(4):
        walks = Hidden(spread_means(3), 4000, seed)
        expected, _ = play_every_pull(lt.LightTailed(0.1), walks, 4000)
        assert skip_ahead(HiddenRewards(), lt.LightTailed(0.1), walks, spread_means(3), 4000)[0] == expected
    assert (3, skip.RESERVE + 8) in widened


def test_the_longest_horizon_takes_no_longer() -> None:
    """Where two arms' first rewards differ most, leaps reveal thousands of points far ahead."""
    problem, policy = lt.Bandit([0.2, 0.8], lt.Bernoulli()), lt.UCB(lt.LightTailed(0.2))
    out = lt.simulate(policy, problem, horizon=10**15, paths=20, seed=1, method="skip")
    assert np.all(out.pulls.sum(axis=1) == 10**15)


@pytest.mark.parametrize("noise", [lt.Gaussian(1.0), lt.Bernoulli()], ids=name)
def test_a_radius_whose_square_no_number_holds_is_skipped_along(noise: lt.Noise) -> None:
    """Blocks had one pull each, and it took a minute to count the numbers of a path of 10^7 pulls."""
    problem = lt.Bandit([0.2, 0.8], noise)
    drawn = [numbers_drawn(lt.UCB(lt.LightTailed(kappa)), problem, 10**5) for kappa in (1e150, 1e300)]
    assert drawn[1] == pytest.approx(drawn[0], rel=0.5)
    assert max(drawn) < 2000


# -- The chance that a block crosses its chord.


def crossing_chance(ones: int, n: int, here: float, there: float) -> float:
    """Exact: n rewards of which `ones` are 1, in random order, meet the chord from `here` to `there`."""
    alive = {0: 1.0}
    for j in range(1, n):
        following: dict[int, float] = {}
        for count, chance in alive.items():
            success = (ones - count) / (n - j + 1)
            for more, share in ((1, success), (0, 1.0 - success)):
                height = here + (there - here) * j / n + count + more - j * ones / n
                if share > 0.0 and height > 0.0:
                    following[count + more] = following.get(count + more, 0.0) + chance * share
        alive = following
    return 1.0 - sum(alive.values())


def test_a_block_of_bernoulli_rewards_crosses_no_more_often_than_stated() -> None:
    tightest = 0.0
    for n in (2, 3, 5, 8, 20, 60):
        for ones in sorted({1, n // 3, n // 2, n - 1}):
            for here in (0.3, 1.0, 2.0, 4.0):
                for there in (0.3, 1.0, 2.0, 4.0):
                    room = 8.0 * here * there * (n - 1.0) * (n - 0.5) / n**3
                    chance = crossing_chance(ones, n, here, there)
                    if chance > 1e-10:
                        assert chance <= 2.0 * math.exp(-room)
                        tightest = max(tightest, chance / math.exp(-4.0 * room))
    assert tightest > 1.0  # negative control: with four times the exponent the bound is false


@pytest.mark.parametrize(
    "clear", [lambda *a: normal_clear(*a, None, 0.5), lambda *a: bernoulli_clear(*a, None)]
)
def test_a_block_at_its_boundary_is_never_clear(clear: Any) -> None:
    for here, there in ((0.0, 9e9), (9e9, 0.0), (-1.0, -1e9), (1e9, -1.0)):
        assert not clear(here, there, 8.0, 40.0)
    assert clear(30.0, 30.0, 8.0, 40.0)


# -- Method, seeds, and what is refused.


def run(**changes: Any) -> lt.Outcome:
    settings = {"horizon": 3000, "paths": 300, "seed": 4, "method": "skip", **changes}
    return lt.simulate(
        settings.pop("policy", lt.UCB(lt.LightTailed(0.2))),
        settings.pop("problem", lt.Bandit([0.2, 0.8])),
        **settings,
    )


def same(first: lt.Outcome, second: lt.Outcome) -> bool:
    return np.array_equal(first.reward, second.reward) and np.array_equal(first.pulls, second.pulls)


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_any_number_of_threads_gives_the_same_bits(policy: lt.Policy) -> None:
    alone = run(policy=policy, threads=1)
    assert alone.method == alone.settings["method"] == "skip"
    assert alone.settings["block_paths"] < 300
    assert same(alone, run(policy=policy, threads=3))
    few = run(policy=policy, paths=130)
    assert np.array_equal(few.reward, alone.reward[:130])
    assert not same(alone, run(policy=policy, seed=5))


def test_auto_keeps_short_paths_as_they_were_and_skips_long_ones() -> None:
    short = run(horizon=500, method="auto")
    assert short.method == "step"
    assert same(short, run(horizon=500, method="step"))
    long = run(horizon=10**6, method="auto")
    assert long.method == "skip"
    assert same(long, run(horizon=10**6, method="skip"))
    assert run(policy=lt.ThompsonSampling(0.5), method="auto").method == "step"
    assert run(problem=lt.Bandit([0.2, 0.8], lt.Laplace()), method="auto").method == "step"


def test_auto_looks_at_the_policy_and_the_problem() -> None:
    easy, hard = lt.Bandit([0.2, 0.8]), lt.Bandit(np.linspace(0.2, 0.8, 16), lt.Bernoulli())
    assert choose_method(lt.UCB(lt.Standard(0.3)), easy, 2000, "auto") == "skip"
    assert choose_method(lt.UCB(lt.LightTailed(0.2)), hard, 2000, "auto") == "step"
    assert choose_method(lt.SuccessiveElimination(lt.LightTailed(0.1)), easy, 1000, "auto") == "skip"


@pytest.mark.parametrize("method", ["fast", "", None, 1, ["skip"]])
def test_an_unknown_method_is_refused(method: Any) -> None:
    with pytest.raises(ValueError, match=r"^method must be 'auto', 'step' or 'skip', but is "):
        run(method=method)


class Undeclared(lt.LightTailed):
    concave = False


def doubled_reward(shock: float, arm: int, means: Any, scale: float) -> float:
    return 2.0 * (means[arm] + scale * shock)


class Doubled(lt.Gaussian):
    """Other rewards, whose sums are not those that it inherits."""

    reward = staticmethod(doubled_reward)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"policy": lt.ThompsonSampling(0.5)}, "TS"),
        ({"policy": lt.Exp3IX()}, "EXP3-IX"),
        ({"problem": lt.Bandit([0.2, 0.8], lt.Laplace())}, "Laplace noise"),
        ({"problem": lt.Bandit.from_samples({"A": [0.0, 1.0], "B": [1.0]})}, "Resampled noise"),
        ({"problem": lt.Bandit([0.2, 0.8], Doubled())}, "Doubled noise"),
        ({"problem": lt.Bandit([0.2, 0.8], lt.Gaussian(0.0))}, "sigma 0"),
        (
            {"problem": lt.Bandit([2e-322, 8e-322], lt.Gaussian(5e-324))},
            "a noise of 4.94066e-324, whose variance",
        ),
        ({"problem": lt.Bandit([2e139, 8e139], lt.Gaussian(1e141))}, r"a noise of 1e\+141, whose variance"),
        ({"policy": lt.UCB(Undeclared(0.2))}, r"Undeclared\(0.2\), which does not declare"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_skip_is_refused_where_there_is_none(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^method must be 'auto' or 'step' with {reason}.*, but is 'skip'$"
    ):
        run(**changes)
    assert run(**changes, method="auto", paths=2).method == "step"


class FalselyConcave(lt.Standard):
    """n * radius(n) = scale * n^1.5 is convex."""

    @staticmethod
    def radius(n: float, clock: float, scale: float) -> float:
        return scale * math.sqrt(n)


class WithoutItsBend(lt.ArmOptimal):
    @staticmethod
    def bend(*params: float) -> float:
        return math.inf


class Shrinking(Growing):
    @staticmethod
    def radius(n: float, t: float, kappa: float) -> float:
        return kappa / math.sqrt(n * t)


@pytest.mark.parametrize("bonus", [FalselyConcave(0.4), WithoutItsBend(0.3, 0.5), Shrinking()], ids=name)
@pytest.mark.parametrize("method", ["auto", "skip"])
def test_a_false_declaration_is_refused(bonus: lt.Bonus, method: str) -> None:
    with pytest.raises(ValueError, match=rf"radius of {type(bonus).__name__}.* must be at least .* concave"):
        run(policy=lt.UCB(bonus), method=method)
    assert run(policy=lt.UCB(bonus), method="step", paths=2).method == "step"


@pytest.mark.parametrize("bonus", [*BONUSES, *OWN], ids=name)
def test_what_is_declared_concave_is(bonus: lt.Bonus) -> None:
    assert bonus.concave
    for arms in (2, 16):
        params = bonus.params(5000, arms)
        bend = bonus.bend(*params)
        for t in (1.0, 50.0, 5000.0):
            clock = bonus.clock(t, *params)
            f = np.array([n * bonus.radius(float(n), clock, *params) for n in range(1, 3001)])
            second = f[2:] - 2 * f[1:-1] + f[:-2]
            n = np.arange(2, 3000)
            inside = (n < math.floor(min(bend, 1e9))) | (n > math.floor(min(bend, 1e9)) + 1)
            assert np.all(second[inside] <= 1e-9 * np.abs(f).max())


def test_new_numbers_compile_nothing() -> None:
    for first, other in [
        (lt.UCB(lt.LightTailed(0.2)), lt.UCB(lt.LightTailed(3))),
        (lt.UCB(lt.AnyTime(0.2)), lt.UCB(lt.AnyTime(1))),
        (lt.SuccessiveElimination(lt.Standard(0.4)), lt.SuccessiveElimination(lt.Standard(1))),
    ]:
        run(policy=first)
        with event.install_listener("numba:compile", Compilations()) as compiled:
            run(policy=other, horizon=77, paths=1)
            run(policy=other, horizon=np.int64(4000), paths=np.int64(3), seed=np.uint8(2))
            run(policy=other, problem=lt.Bandit([1, -3, 7], lt.Gaussian(2)))
        assert compiled.count == 0
