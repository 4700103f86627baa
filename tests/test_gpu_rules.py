"""Any policy on the device: the generic kernel in numba's simulator of one (see tests/test_gpu.py).

In double precision it equals the unrolled kernels of the policies that have one, and plain Python for those
that a user wrote, to the last bit. With late rewards, batches and a start, a path equals that of an
`Experiment` that is told so late.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import late
import numpy as np
import pytest
from cases import POLICIES, name, problems
from device import PathStream, on_simulator
from device_policies import OWN, Fading, Lost, Own, Squeezed
from numba import cuda
from oracle import play
from scipy import stats
from test_late import COURSES, PROBLEM, halfway

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.course import Course
from lighttail.gpu import accelerations
from lighttail.gpu.formulas import in_precision, on_device
from lighttail.gpu.run import precision_for
from lighttail.random.streams import uniform
from lighttail.rules import mean_heard
from lighttail.study.cells import cells_of
from lighttail.study.file import parse_study

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


@pytest.mark.parametrize("arms", [2, 3, 9])  # nine are found by their number
@pytest.mark.parametrize("policy", OWN, ids=name)
def test_a_policy_of_ones_own_equals_plain_python(policy: lt.Policy, arms: int) -> None:
    for problem in problems(arms):
        reward, pulls = on_simulator(policy, problem, arms + 24, 3, 5)
        plain = play(policy, problem, arms + 24, 3, 5, own=lambda path: PathStream(5, path))
        assert np.array_equal(pulls, plain.pulls)
        assert np.array_equal(reward, plain.reward)


@pytest.mark.parametrize("arms", [2, 9])
@pytest.mark.parametrize("policy", [*POLICIES, lt.UCB(Own(0.4))], ids=name)
def test_without_its_table_the_library_plays_the_same_paths(
    policy: lt.Policy, arms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = problems(arms)[:2]  # Bernoulli rewards have ties
    quick = [on_simulator(policy, problem, arms + 24, 3, 5) for problem in cases]
    monkeypatch.setattr(accelerations, "ACCELERATIONS", {})
    for problem, (reward, pulls) in zip(cases, quick, strict=True):
        slow = on_simulator(policy, problem, arms + 24, 3, 5)
        plain = play(policy, problem, arms + 24, 3, 5, own=lambda path: PathStream(5, path))
        assert np.array_equal(slow[1], pulls)
        assert np.array_equal(slow[0], reward)
        assert np.array_equal(slow[1], plain.pulls)
        assert np.array_equal(slow[0], plain.reward)


def test_a_table_with_another_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the table decides what is played."""
    problem, policy = problems(3)[1], POLICIES[0]
    quick = on_simulator(policy, problem, 40, 3, 5)
    wrong = {lt.UCB: lambda given, *more: accelerations._ucb(lt.UCB(lt.LightTailed(0.2)), *more)}
    monkeypatch.setattr(accelerations, "ACCELERATIONS", wrong)
    assert not np.array_equal(on_simulator(policy, problem, 40, 3, 5)[1], quick[1])


class Later(lt.UCB):
    """A subclass may play by another rule, so it is not in the table."""

    def index_formula(self):
        return last_first


def last_first(n: float, mean: float, clock: float, *params: float) -> float:
    return mean - 0.5 / n


def test_a_subclass_plays_by_its_own_rule() -> None:
    policy, problem = Later(lt.Standard(0.4)), problems(3)[0]
    reward, pulls = on_simulator(policy, problem, 30, 3, 5)
    plain = play(policy, problem, 30, 3, 5, own=lambda path: PathStream(5, path))
    assert np.array_equal(reward, plain.reward)
    assert np.array_equal(pulls, plain.pulls)
    assert not np.array_equal(pulls, on_simulator(lt.UCB(lt.Standard(0.4)), problem, 30, 3, 5)[1])


def test_an_arm_that_there_is_not_is_named() -> None:
    said = "choose of Lost must return the number of an arm, but returned another number"
    with pytest.raises(BadInput, match=re.escape(said)):
        on_simulator(Lost(), lt.Bandit([0.2, 0.8]), 10, 3, 5)


def test_the_law_of_ones_own_policy_in_single_precision_is_the_cpus() -> None:
    problem, policy = lt.Bandit([0.2, 0.8]), Squeezed(1.5)
    reward, pulls = on_simulator(policy, problem, 20, 400, 2, "float32")

    def distance(noise: float) -> float:
        cpu = lt.simulate(policy, lt.Bandit([0.2, 0.8], lt.Gaussian(noise)), horizon=20, paths=20_000, seed=4)
        p_reward = stats.ks_2samp(reward, cpu.reward).pvalue
        return min(p_reward, stats.ks_2samp(pulls[:, 0], cpu.pulls[:, 0]).pvalue)

    assert distance(1.0) > 1e-4
    assert distance(1.7) < 1e-4  # the test's power


def test_constants_in_pairs_and_in_modules_get_the_precision_too() -> None:
    def called(part):
        return on_device(part, np.float32, lambda function: function, {uniform: "uniform"})

    mean = in_precision(mean_heard, np.float32, called)
    heard, total = np.zeros(2, np.float32), np.ones(2, np.float32)
    assert isinstance(mean(0, heard, total), np.float32)
    choose = in_precision(Fading.choose, np.float32, called)
    assert choose.__globals__["lt"].uniform == "uniform"  # through a module, and by its name
    assert choose.__globals__["uniform"] == "uniform"
    assert lt.uniform is uniform  # the caller's own is as it was

    def endless(n: float) -> float:
        return min(n, math.inf)

    single = in_precision(endless, np.float32, called)
    assert isinstance(single(np.float32(np.inf)), np.float32)
    assert isinstance(single.__globals__["math"].inf, np.float32)
    assert isinstance(math.inf, float)


STUDY = """
name = "device"
paths = 40
seeds = [1]
horizons = [12]
[[problem]]
name = "two"
means = [0.2, 0.8]
[[policy]]
policy = "ts:0.8"
"""


def test_a_study_tells_any_policy_from_another_by_its_probe() -> None:
    study = parse_study(STUDY, "study.toml", Path)
    for policy in OWN:
        study.policies[str(policy)] = policy
    cells = cells_of(study, device="cuda")
    assert len({cell.key for cell in cells}) == len(OWN) + 1
    again = cells_of(study, device="cuda")
    assert [cell.key for cell in cells] == [cell.key for cell in again]


SOME = [*(POLICIES[place] for place in (0, 3, 4, 7, 9)), *OWN]


@pytest.mark.parametrize("course", COURSES, ids=str)
@pytest.mark.parametrize("policy", SOME, ids=name)
def test_late_paths_are_those_of_an_experiment(policy: lt.Policy, course: dict) -> None:
    reward, pulls = on_simulator(policy, PROBLEM, 40, 2, 3, **course)
    plain = late.play(policy, PROBLEM, 40, 2, 3, own=lambda path: PathStream(3, path), **course)
    assert np.array_equal(pulls, plain[1])
    assert np.array_equal(reward, plain[0])


@pytest.mark.parametrize("arms", [2, 9])
def test_late_paths_with_few_and_many_arms(arms: int) -> None:
    course = {"delay": lt.GeometricDelay(4.0, never=0.1), "batch": 3}
    for policy in (lt.UCB(lt.Standard(0.4)), lt.Exp3IX(), Fading(2.0, 0.1)):
        for problem in problems(arms):
            reward, pulls = on_simulator(policy, problem, 30, 2, 3, **course)
            plain = late.play(policy, problem, 30, 2, 3, own=lambda path: PathStream(3, path), **course)
            assert np.array_equal(pulls, plain[1])
            assert np.array_equal(reward, plain[0])


@pytest.mark.parametrize(
    "course", [{}, {"delay": 6, "batch": 4}, {"delay": lt.GeometricDelay(8.0, never=0.3)}], ids=str
)
@pytest.mark.parametrize("policy", SOME, ids=name)
def test_a_start_goes_on_from_an_experiment(policy: lt.Policy, course: dict) -> None:
    numbered = halfway(policy)
    numbered.arms = [0, 1, 2]
    reward, pulls = on_simulator(policy, PROBLEM, 50, 2, 3, start=halfway(policy), **course)
    plain = late.play(
        policy, PROBLEM, 50, 2, 3, start=numbered, own=lambda path: PathStream(3, path), **course
    )
    assert np.array_equal(pulls, plain[1])
    assert np.array_equal(reward, plain[0])


def test_the_oracle_notices_a_reward_that_comes_one_pull_early() -> None:
    """Negative control."""
    policy = lt.UCB(lt.Standard(0.4))
    found = on_simulator(policy, PROBLEM, 40, 6, 3, delay=6)
    plain = late.play(policy, PROBLEM, 40, 6, 3, delay=7, own=lambda path: PathStream(3, path))
    assert not np.array_equal(found[1], plain[1])


def test_late_launches_of_any_size_play_the_same_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many paths a launch as the device has room for: 33 with their queues in this memory."""
    whole = on_simulator(Fading(2.0, 0.1), PROBLEM, 12, 80, 9, delay=5)
    sizes = []

    def device_array(shape, kind):
        sizes.append(shape)
        return made(shape, kind)

    made = cuda.device_array
    monkeypatch.setattr(cuda, "device_array", device_array)
    each = 8 * 8 + 8 * (5 + 2 * 8)  # places in the ring: 5 + 1 + 2
    monkeypatch.setattr("lighttail.gpu.run.free_on_device", lambda: 2.0 * 33 * each)
    parts = on_simulator(Fading(2.0, 0.1), PROBLEM, 12, 80, 9, delay=5)
    assert (8, 33) in sizes
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))


def test_a_queue_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.gpu.run.free_on_device", lambda: 1e6)
    said = (
        "horizon must be such that 32 paths with their open rewards fit into the GPU's memory "
        "(about 210 kB per path, of which 1 MB are free), but is 12000"
    )
    with pytest.raises(BadInput, match=re.escape(said)):
        on_simulator(POLICIES[0], PROBLEM, 12_000, 1, 9, delay=10_000)


def test_an_arm_that_there_is_not_is_named_where_rewards_come_late() -> None:
    with pytest.raises(BadInput, match="choose of Lost must return the number of an arm"):
        on_simulator(Lost(), lt.Bandit([0.2, 0.8]), 10, 3, 5, delay=2)


def test_the_law_of_late_paths_in_single_precision_is_the_cpus() -> None:
    policy, delay = lt.UCB(lt.Standard(0.4)), lt.GeometricDelay(4.0)
    out = lt.simulate(
        policy, lt.Bandit([0.2, 0.8]), horizon=20, paths=400, seed=2, device="cuda", delay=delay, batch=2
    )
    assert out.settings["precision"] == "float32"
    assert out.settings["delay"] == "GeometricDelay(mean=4.0, never=0.0)"
    assert out.settings["batch"] == 2

    def distance(mean: float) -> float:
        course = {"delay": lt.GeometricDelay(mean), "batch": 2}
        cpu = lt.simulate(policy, lt.Bandit([0.2, 0.8]), horizon=20, paths=20_000, seed=4, **course)
        return stats.ks_2samp(out.pulls[:, 0], cpu.pulls[:, 0]).pvalue

    assert distance(4.0) > 1e-4
    assert distance(0.0) < 1e-4  # the test's power


def test_sums_of_the_beginning_count_for_the_precision() -> None:
    policy = lt.UCB(lt.Standard(0.4))
    start = lt.Experiment(policy, ["a", "b", "c"], horizon=60, seed=9)
    start.tell(start.ask().id, 1e5)
    problem = lt.Bandit([0.3, 0.6, 0.5])
    assert precision_for(None, problem, 60, Course()) == "float32"
    assert precision_for(None, problem, 60, Course(start=start.beginning())) == "float64"
