"""A live experiment: rewards late, shuffled, repeated or missing, and batches of open trials.

How it plays when every reward comes at once is the subject of `test_oracle`.
"""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from cases import BONUSES, POLICIES, name
from hypothesis import given, settings
from hypothesis import strategies as st
from live import ARMS, copy, follow, scripts, start

import lighttail as lt

BATCHED = [policy for policy in POLICIES if isinstance(policy, (lt.UCB, lt.SuccessiveElimination))]


# Rewards


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_the_order_in_which_late_rewards_arrive_does_not_matter(policy: lt.Policy) -> None:
    rewards = np.random.default_rng(1).integers(-8, 8, 30).tolist()
    forwards, backwards = start(policy), start(policy)
    arms = [forwards.ask().arm for _ in rewards]
    assert arms == [backwards.ask().arm for _ in rewards]
    for id in range(1, 31):
        forwards.tell(id, rewards[id - 1])
        backwards.tell(31 - id, rewards[30 - id])
    told = {
        arm: [reward for reward, pulled in zip(rewards, arms, strict=True) if pulled == arm] for arm in ARMS
    }
    assert forwards.means == backwards.means == {arm: float(np.mean(told[arm])) for arm in ARMS}
    assert [forwards.ask() for _ in range(20)] == [backwards.ask() for _ in range(20)]


def test_missing_rewards_stay_open_and_out_of_the_means() -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)))
    trials = [experiment.ask() for _ in range(6)]
    for trial in trials[:4]:
        experiment.tell(trial.id, 2.0)
    assert experiment.open_trials == trials[4:]
    assert sum(experiment.pulls.values()) == 6
    assert set(experiment.means.values()) == {2.0}
    for _ in range(100):
        experiment.ask()
    experiment.tell(trials[5].id, 5.0)
    assert trials[5] not in experiment.open_trials


def test_no_reward_is_no_mean() -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)))
    trial = experiment.ask()
    experiment.tell(trial.id, 1.0)
    assert experiment.means[trial.arm] == 1.0
    assert [math.isnan(mean) for arm, mean in experiment.means.items() if arm != trial.arm] == [True, True]


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_an_equal_repeat_is_ignored_and_another_one_refused(policy: lt.Policy) -> None:
    experiment = start(policy)
    trial = experiment.ask()
    experiment.tell(trial.id, 1.5)
    before = experiment.to_json()
    experiment.tell(trial.id, 1.5)
    experiment.tell(trial.id, np.float64(1.5))
    assert experiment.to_json() == before
    with pytest.raises(
        ValueError, match=r"^reward must be 1\.5, which was told before for trial 1, but is 2\.0$"
    ):
        experiment.tell(trial.id, 2.0)
    assert experiment.to_json() == before


@pytest.mark.parametrize("policy", POLICIES, ids=name)
@pytest.mark.parametrize(
    ("id", "reward", "field"),
    [
        *((id, 1.0, "id") for id in (0, -1, 3, True, "1", 1.0, None)),
        *((1, reward, "reward") for reward in (math.nan, math.inf, "1", None, [1.0], 1j)),
    ],
)
def test_a_bad_report_is_refused_and_changes_nothing(
    policy: lt.Policy, id: Any, reward: Any, field: str
) -> None:
    experiment = start(policy)
    experiment.ask(), experiment.ask()
    before = experiment.to_json()
    with pytest.raises(ValueError, match=f"^{field} must be .*, but is ") as caught:
        experiment.tell(id, reward)
    assert str(caught.value).endswith(repr(id if field == "id" else reward))
    assert experiment.to_json() == before


def test_nothing_asked_nothing_to_tell() -> None:
    with pytest.raises(ValueError, match="no trial was asked yet"):
        start(lt.UCB(lt.AnyTime(0.3))).tell(1, 1.0)


# Open trials


@pytest.mark.parametrize("policy", BATCHED, ids=name)
@pytest.mark.parametrize("arms", [2, 5])
def test_a_batch_without_rewards_spreads_over_the_arms(policy: lt.Policy, arms: int) -> None:
    experiment = start(policy, range(arms))
    for round in range(1, 4):
        for _ in range(arms):
            experiment.ask()
        assert set(experiment.pulls.values()) == {round}


@pytest.mark.parametrize("policy", BATCHED, ids=name)
def test_an_arm_far_ahead_still_shares_a_batch(policy: lt.Policy) -> None:
    """Open pulls narrow the leader's radius, so a long batch does not go to it alone."""
    experiment = start(policy)
    for _ in range(3):
        trial = experiment.ask()
        experiment.tell(trial.id, 0.3 if trial.arm == "B" else 0.0)
    for _ in range(150):
        experiment.ask()
    assert min(experiment.pulls.values()) > 1


@settings(deadline=None, max_examples=60, derandomize=True)
@given(scripts, st.sampled_from(BATCHED), st.sampled_from([-(2**20), -1, 7, 2**30]))
def test_adding_a_constant_to_every_reward_changes_no_choice(
    script: Any, policy: lt.Policy, shift: int
) -> None:
    """Whole rewards, so that equal means stay equal in floating point."""
    assert follow(script, start(policy)) == follow(script, start(policy), shift=shift)


def test_a_constant_does_change_the_choices_of_thompson_sampling() -> None:
    """Negative control: its prior has a place, so the comparison above can fail."""
    script = [step for k in range(40) for step in (("ask", 0, 0), ("tell", k, k % 3))]
    policy = lt.ThompsonSampling(0.5)
    assert follow(script, start(policy)) != follow(script, start(policy), shift=7)


def test_elimination_waits_for_rewards() -> None:
    """With 30 open pulls of B counted, its radius would be 0.3 and it would be gone; with one it is 9."""
    experiment = start(lt.SuccessiveElimination(lt.LightTailed(0.28)), ["A", "B"], horizon=200)
    radius = lt.LightTailed(0.28).radius
    params = lt.LightTailed(0.28).params(200, 2)
    assert 2 * radius(30.0, 0.0, *params) < 5.0 < 2 * radius(1.0, 0.0, *params)
    trials = [experiment.ask() for _ in range(60)]
    first = {trial.arm: trial for trial in reversed(trials)}
    experiment.tell(first["A"].id, 5.0)
    experiment.tell(first["B"].id, 0.0)
    assert {experiment.ask().arm for _ in range(10)} == {"A", "B"}
    for trial in trials:  # the control: with the rewards it does go
        if trial.id not in (first["A"].id, first["B"].id):
            experiment.tell(trial.id, 5.0 if trial.arm == "A" else 0.0)
    for _ in range(2):
        experiment.ask()
    assert {experiment.ask().arm for _ in range(10)} == {"A"}


# The horizon, the arms


@pytest.mark.parametrize("bonus", BONUSES, ids=name)
def test_a_policy_that_needs_a_horizon_says_so_and_names_the_one_that_does_not(bonus: lt.Bonus) -> None:
    if not bonus.needs_horizon:
        lt.Experiment(lt.UCB(bonus), ARMS).ask()
        return
    with pytest.raises(ValueError, match=r"^horizon must be given with UCB \+ .*, but is missing; UCB\(Any"):
        lt.Experiment(lt.UCB(bonus), ARMS)


@pytest.mark.parametrize("policy", [lt.ThompsonSampling(0.5), lt.Exp3IX(eta=0.1)], ids=name)
def test_other_policies_without_a_horizon_play(policy: lt.Policy) -> None:
    assert lt.Experiment(policy, ARMS, seed=1).ask().arm in ARMS


def test_beyond_the_horizon_it_warns_once_and_plays_on() -> None:
    experiment = start(lt.UCB(lt.Standard(0.4)), horizon=10)
    for _ in range(10):
        experiment.ask()
    with pytest.warns(UserWarning, match="the horizon of 10 pulls is over") as caught:
        experiment.ask()
    assert caught[0].filename == __file__
    for _ in range(5):
        experiment.ask()  # a second warning would be an error here
    assert sum(copy(experiment).pulls.values()) == 16


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        *(({"arms": bad}, "arms") for bad in (["A"], [], "AB", None, ["A", "A"], ["A", 1.5], ["A", True])),
        *(({"horizon": bad}, "horizon") for bad in (2, 10.0, "10", True)),
        *(({"seed": bad}, "seed") for bad in (-1, 1.5, "1")),
        *(({"policy": bad}, "policy") for bad in (None, lt.UCB, lt.AnyTime(0.3))),
    ],
)
def test_a_bad_start_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be .*, but is "):
        start(**{"policy": lt.UCB(lt.AnyTime(0.3)), **changes})


def test_the_same_seed_asks_for_the_same_arms() -> None:
    first, second, other = (start(lt.ThompsonSampling(0.5), seed=seed) for seed in (1, 1, 2))
    arms = [[experiment.ask().arm for _ in range(40)] for experiment in (first, second, other)]
    assert arms[0] == arms[1] != arms[2]


def test_a_live_experiment_loads_no_compiler() -> None:
    script = f"""
import sys, lighttail as lt
for policy in {POLICIES!r}:
    experiment = lt.Experiment(policy, ["A", "B"], horizon=100)
    for _ in range(30):
        experiment.tell(experiment.ask().id, 1.0)
    lt.Experiment.from_json(experiment.to_json()).ask()
heavy = {{"numba", "llvmlite", "scipy", "matplotlib", "pandas", "rich", "typer"}} & set(sys.modules)
assert not heavy, heavy
"""
    for case in {type(case).__name__ for case in (*POLICIES, *BONUSES)}:
        script = script.replace(f"{case}(", f"lt.{case}(")
    subprocess.run([sys.executable, "-c", script], check=True)
