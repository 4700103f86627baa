"""What a service needs of a live experiment: several pulls at once, pulls that the policy did not choose,
rewards that are replaced, and a text without finished trials."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from cases import MORE_POLICIES, POLICIES, name
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_cases import LIGHT, THOMPSON, unit_rows
from live import ARMS, copy, start

import lighttail as lt

EVERY = [*POLICIES, *MORE_POLICIES]
SUMS = [policy for policy in EVERY if policy.amendable]
OTHERS = [policy for policy in EVERY if not policy.amendable]
ROWS = unit_rows(3, 2, 1)


def without_told(experiment: Any) -> Any:
    return type(experiment).from_json(experiment.to_json(told=False))


def linear(policy: Any) -> lt.LinearExperiment:
    return lt.LinearExperiment(policy, 2, seed=3)


def next_arms(experiment: Any, count: int = 12) -> list[Any]:
    """What the experiment would do next; the experiment itself stays as it is."""
    twin = copy(experiment)
    return [twin.ask().arm for _ in range(count)]


# Several at once


@pytest.mark.parametrize("policy", EVERY, ids=name)
def test_many_at_once_are_as_many_one_by_one(policy: lt.Policy) -> None:
    at_once, one_by_one = start(policy), start(policy)
    assert at_once.ask(7) == [one_by_one.ask() for _ in range(7)]
    assert at_once.to_json() == one_by_one.to_json()


def test_many_actions_at_once() -> None:
    at_once, one_by_one = linear(THOMPSON), linear(THOMPSON)
    assert at_once.ask(ROWS, count=5) == [one_by_one.ask(ROWS) for _ in range(5)]
    assert at_once.to_json() == one_by_one.to_json()


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True, 10**9])
def test_a_bad_count_is_refused(count: Any) -> None:
    with pytest.raises(lt.BadInput, match=r"^count must be a whole number"):
        start(lt.UCB(lt.AnyTime(0.3))).ask(count)


# Pulls that the policy did not choose


@pytest.mark.parametrize("policy", [policy for policy in EVERY if not policy.rule().memo], ids=name)
def test_a_pull_that_was_taken_counts_like_any_other(policy: lt.Policy) -> None:
    """If somebody takes the arm that the policy would choose, nothing changes."""
    chosen, taken = start(policy), start(policy)
    for turn in range(25):
        trial = chosen.ask()
        assert taken.take(trial.arm) == trial
        if turn % 3:
            chosen.tell(trial.id, float(turn % 5))
            taken.tell(trial.id, float(turn % 5))
    assert taken.pulls == chosen.pulls
    assert list(taken.means.values()) == pytest.approx(list(chosen.means.values()), abs=0.0, nan_ok=True)
    assert [taken.ask() for _ in range(20)] == [chosen.ask() for _ in range(20)]


@pytest.mark.parametrize("policy", [policy for policy in EVERY if not policy.rule().memo], ids=name)
def test_a_state_with_taken_pulls_is_saved_and_restored(policy: lt.Policy) -> None:
    """Whatever arms are taken, also as the first and several in a row."""
    experiment = start(policy)
    for turn in range(30):
        trial = experiment.take(ARMS[turn * turn % 3]) if turn % 3 != 2 else experiment.ask()
        experiment.tell(trial.id, float(turn % 4))
        restored = copy(experiment)
        assert restored.to_json() == experiment.to_json()
        assert next_arms(restored) == next_arms(experiment)
    assert json.loads(experiment.to_json())["format"] == 3


def test_an_untried_arm_still_comes_first_after_a_taken_pull() -> None:
    experiment = start(lt.UCB(lt.Standard(0.4)))
    experiment.tell(experiment.take("B").id, 100.0)
    assert {experiment.ask().arm, experiment.ask().arm} == {"A", "C"}


def test_a_policy_that_needs_the_probability_of_a_pull_refuses_taken_pulls() -> None:
    experiment = start(lt.Exp3IX())
    before = experiment.to_json()
    with pytest.raises(lt.BadInput, match=r"^policy must be a policy that learns from pulls that it did not"):
        experiment.take("A")
    assert experiment.to_json() == before


@pytest.mark.parametrize("arm", ["D", 0, None, True, ["A"]])
def test_an_arm_that_there_is_not_cannot_be_taken(arm: Any) -> None:
    with pytest.raises(lt.BadInput, match=r"^arm must be one of 'A', 'B', 'C'"):
        start(lt.UCB(lt.AnyTime(0.3))).take(arm)


def test_an_action_that_was_taken_counts_like_any_other() -> None:
    chosen, taken = linear(LIGHT), linear(LIGHT)
    trial = chosen.ask(ROWS)
    assert taken.take(trial.action, trial.arm) == trial
    chosen.tell(1, 0.5), taken.tell(1, 0.5)
    assert np.array_equal(chosen.estimate, taken.estimate)
    assert lt.LinearExperiment.from_json(taken.to_json()).to_json() == taken.to_json()


# Rewards that are replaced


@pytest.mark.parametrize("policy", SUMS, ids=name)
def test_an_amended_reward_is_as_if_it_had_come_at_first(policy: lt.Policy) -> None:
    """Whole rewards, so that the sums are exact: the next choices are those of the reward that is right."""
    amended, right = start(policy), start(policy)
    told = [(trial, right.ask()) for trial in amended.ask(20)]
    for first, second in told:
        amended.tell(first.id, 0.0)
        right.tell(second.id, float(first.id % 4))
    for first, _ in told:
        amended.amend(first.id, float(first.id % 4))
        amended.amend(first.id, float(first.id % 4))  # the same again changes nothing
    assert (amended.means, amended.pulls) == (right.means, right.pulls)
    assert [amended.ask() for _ in range(20)] == [right.ask() for _ in range(20)]


def test_a_reward_that_is_not_amended_is_told_apart() -> None:
    """Negative control of the comparison above."""
    amended, right = start(lt.UCB(lt.AnyTime(0.3))), start(lt.UCB(lt.AnyTime(0.3)))
    for _ in range(20):
        trial = amended.ask()
        right.ask()
        amended.tell(trial.id, 0.0)
        right.tell(trial.id, float(trial.id % 4))
    assert amended.means != right.means


@pytest.mark.parametrize("policy", OTHERS, ids=name)
def test_a_policy_that_may_have_decided_for_good_refuses(policy: lt.Policy) -> None:
    experiment = start(policy)
    experiment.tell(experiment.ask().id, 0.0)
    before = experiment.to_json()
    with pytest.raises(
        lt.BadInput, match=r"^policy must be a policy whose state is sums of rewards"
    ) as caught:
        experiment.amend(1, 1.0)
    assert str(policy) in str(caught.value)
    assert experiment.to_json() == before


def test_which_policies_take_another_reward() -> None:
    refused = {type(policy).__name__ for policy in OTHERS}
    assert {"SuccessiveElimination", "ExploreThenCommit", "Exp3IX"} <= refused
    assert {"UCB", "ThompsonSampling", "BetaThompson", "KlUcb", "Imed"} <= {type(p).__name__ for p in SUMS}


@pytest.mark.parametrize("id", [1, 3, "1", None])
def test_a_trial_that_was_not_told_cannot_be_amended(id: Any) -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)))
    experiment.ask()
    with pytest.raises(lt.BadInput, match=r"^id must be the id of a trial "):
        experiment.amend(id, 1.0)


rewards = st.sampled_from([0.0, 0.1, 0.2, -0.3, 1.0, 1e10, -1e10, 1e-9])


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.tuples(rewards, rewards), min_size=1, max_size=12), st.sampled_from(SUMS))
def test_an_amended_state_is_saved_and_restored(pairs: Any, policy: lt.Policy) -> None:
    """Also if the rewards that went were far larger than those that stay."""
    experiment = start(policy)
    for first, second in pairs:
        trial = experiment.ask()
        experiment.tell(trial.id, first)
        experiment.amend(trial.id, second)
        assert copy(experiment).to_json() == experiment.to_json()


def test_an_amended_linear_reward() -> None:
    amended, right = linear(LIGHT), linear(LIGHT)
    for reward in (1.0, 2.0, 4.0):
        trial = amended.take([1.0, 0.5])
        right.take([1.0, 0.5])
        amended.tell(trial.id, 0.0)
        amended.amend(trial.id, reward)
        right.tell(trial.id, reward)
    assert np.array_equal(amended.estimate, right.estimate)
    assert amended.ask(ROWS) == right.ask(ROWS)
    assert lt.LinearExperiment.from_json(amended.to_json()).to_json() == amended.to_json()


# Texts without finished trials


@pytest.mark.parametrize("policy", EVERY, ids=name)
def test_a_text_without_told_trials_continues_exactly(policy: lt.Policy) -> None:
    whole = start(policy)
    for trial in whole.ask(40):
        if trial.id % 7:
            whole.tell(trial.id, float(trial.id % 3))
    part = without_told(whole)
    assert part.open_trials == whole.open_trials
    assert part.pulls == whole.pulls
    for trial in whole.open_trials[:3]:
        whole.tell(trial.id, 2.0), part.tell(trial.id, 2.0)
    assert [part.ask() for _ in range(20)] == [whole.ask() for _ in range(20)]
    part.tell(45, 1.0), whole.tell(45, 1.0)
    again = without_told(copy(part))
    assert again.to_json(told=False) == part.to_json(told=False) == whole.to_json(told=False)
    assert [again.ask() for _ in range(9)] == [whole.ask() for _ in range(9)]
    assert without_told(again).beginning().rounds == 69


@pytest.mark.parametrize("policy", [LIGHT, THOMPSON], ids=name)
def test_a_linear_text_without_told_trials_continues_exactly(policy: Any) -> None:
    whole = linear(policy)
    for trial in whole.ask(ROWS, count=20):
        if trial.id % 5:
            whole.tell(trial.id, float(trial.id % 3))
    part = without_told(whole)
    assert part.open_trials == whole.open_trials
    part.tell(5, 1.0), whole.tell(5, 1.0)
    assert [part.ask(ROWS) for _ in range(9)] == [whole.ask(ROWS) for _ in range(9)]
    assert without_told(copy_of(part)).to_json(told=False) == whole.to_json(told=False)


def copy_of(experiment: Any) -> Any:
    return type(experiment).from_json(experiment.to_json())


def test_the_text_does_not_grow_with_finished_trials() -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)), horizon=None)
    sizes = []
    for _ in range(3):
        for trial in experiment.ask(300):
            experiment.tell(trial.id, 1.0)
        sizes.append((len(experiment.to_json(told=False)), len(experiment.to_json())))
    assert sizes[2][0] < sizes[0][0] + 20
    assert sizes[2][1] > 2 * sizes[0][1]  # negative control


def test_a_told_trial_that_is_not_remembered_is_refused() -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)))
    for trial in experiment.ask(3)[:2]:
        experiment.tell(trial.id, 1.0)
    part = without_told(experiment)
    with pytest.raises(lt.BadInput, match=r"^id must be the id of a trial that is open or that this exp"):
        part.tell(1, 1.0)
    part.tell(3, 1.0)
    with pytest.raises(lt.BadInput, match=r"^id must be"):
        part.tell(3, 1.0)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("ids", 2, "history.pulls must be a whole number of at most 2"),
        ("ids", -1, "history.ids must be a whole number of at least 0"),
        ("pulls", 4, "rule.tried must be counts whose sum is 4, the number of pulls"),
        ("pulls", 99, "history.pulls must be a whole number of at most 5"),
        ("taken", "1", "history.taken must be a whole number"),
        ("replaced", [], "the length of history.replaced must be 3, but is 0"),
        ("replaced", [[-1.0, 0.0]] * 3, "history.replaced must be a list of pairs of numbers of at least 0"),
        ("open.id", [5, 3], "history.open.id must be ids that grow"),
        ("open.arm", [0, 9], "history.open.arm must be a whole number of at most 2"),
        ("open.memo", [[], [1.0]], "the length of history.open.memo must be 0, but is 1"),
        ("open", None, "history.open must be an object with the fields id, arm, memo"),
    ],
)
def test_a_damaged_history_is_refused(path: str, value: Any, sentence: str) -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)))
    for trial in experiment.ask(5):
        if trial.id not in (3, 5):
            experiment.tell(trial.id, 1.0)
    state = json.loads(experiment.to_json(told=False))
    assert lt.Experiment.from_json(json.dumps(state)).ask()  # the control is accepted
    here = state["history"]
    *way, last = path.split(".")
    for key in way:
        here = here[key]
    here[last] = value
    with pytest.raises(lt.BadInput) as caught:
        lt.Experiment.from_json(json.dumps(state))
    assert sentence in str(caught.value)
