"""What a live experiment refuses: rewards that cannot be saved, sizes, names, and damaged texts by field."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from linear_cases import LIGHT, THOMPSON
from live import ARMS, start

import lighttail as lt

EXP3 = lt.Exp3IX("loss", upper=1.0)
ELIMINATION = lt.SuccessiveElimination(lt.LightTailed(0.05))


@dataclass(frozen=True)
class FailsAboveOne(lt.Policy):
    """Always the first arm; its notes are infinite, and it cannot take in a reward above 1."""

    notes = 2
    memo = 1
    needs_horizon = False

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> int:
        note[1, 0] = -math.inf
        note[0, 1] = math.inf
        return 0

    @staticmethod
    def learn(arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> None:
        note[arm, 1] = reward
        note[arm, 0] += 1.0 / (reward <= 1.0)


def refused(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


# Rewards


@pytest.mark.parametrize(
    "policy", [EXP3, lt.Exp3IX("reward"), lt.UCB(lt.AnyTime(0.3)), lt.ThompsonSampling(0.5)]
)
@pytest.mark.parametrize("reward", [1e308, -1e308, 1.01e100, 10**200])
def test_a_reward_too_large_to_be_added_up_is_refused_and_changes_nothing(policy: Any, reward: Any) -> None:
    experiment = start(policy)
    experiment.ask()
    before = experiment.to_json()
    refused(lambda: experiment.tell(1, reward), "reward must be a number of at most 1e+100 in size")
    assert experiment.to_json() == before


@pytest.mark.parametrize("policy", [EXP3, lt.UCB(lt.AnyTime(0.3)), ELIMINATION, LIGHT, THOMPSON])
def test_the_largest_rewards_of_all_are_saved_and_restored(policy: Any) -> None:
    linear = policy in (LIGHT, THOMPSON)
    experiment: Any = lt.LinearExperiment(policy, 2, seed=1) if linear else start(policy)
    for reward in (1e100, -1e100, 1e100, 3.0, 1e-300, -1e100):
        trial = experiment.ask([[0.6, 0.8], [1.0, 1e-9]]) if linear else experiment.ask()
        experiment.tell(trial.id, reward)
        assert type(experiment).from_json(experiment.to_json()).to_json() == experiment.to_json()


def saved_exactly(experiment: lt.Experiment) -> bool:
    return lt.Experiment.from_json(experiment.to_json()).to_json() == experiment.to_json()


def test_a_score_that_would_be_infinite_is_refused_and_changes_nothing() -> None:
    experiment = start(lt.Exp3IX("reward", eta=1.0, gamma=1e-300))
    while len(asked := experiment.open_trials) < 2 or asked[0].arm != asked[-1].arm:
        experiment.ask()
    first, last = asked[0].id, asked[-1].id
    experiment.tell(first, 0.1)
    experiment._memo_of[last - 1] = (1e-250,)  # as if the arm had been drawn against all odds
    before = experiment.to_json()
    refused(
        lambda: experiment.tell(last, 1e60),
        "reward must be a number with which the notes of Exp3IX stay finite",
    )
    assert experiment.to_json() == before  # the sum as well, from which 1e60 could not be taken away again
    experiment.tell(last, 1e40)
    assert saved_exactly(experiment)


def test_scores_whose_sizes_add_up_to_more_than_a_float_holds_are_saved_and_restored() -> None:
    experiment = start(lt.Exp3IX("reward", eta=1.0, gamma=1e-300), ["A", "B"])
    for turn in range(12):
        trial = experiment.ask()
        experiment._memo_of[trial.id - 1] = (1e-250,)
        experiment.tell(trial.id, 1.5e58 if turn % 2 else -1.5e58)
    assert saved_exactly(experiment)


def test_a_rule_that_fails_changes_nothing() -> None:
    experiment = start(FailsAboveOne())
    experiment.tell(experiment.ask().id, 0.25)
    trial, before = experiment.ask(), experiment.to_json()
    with pytest.raises(ZeroDivisionError):
        experiment.tell(trial.id, 2.0)
    assert experiment.to_json() == before
    experiment.tell(trial.id, 1.0)
    assert saved_exactly(experiment)


def test_a_reward_that_makes_theta_hat_infinite_is_refused() -> None:
    """Where rounding has made V singular and the ridge is next to nothing."""
    seen = []
    for share in np.linspace(0.05, 0.95, 16):
        experiment = lt.LinearExperiment(lt.LinearThompson(0.5, ridge=5e-324), 2, seed=1)
        experiment.ask([[1e50, share * 1e50]])
        before = experiment.to_json()
        try:
            experiment.tell(1, 1e100)
        except ValueError as error:
            seen.append((str(error), experiment.to_json() == before))
        assert np.all(np.isfinite(experiment.estimate))
        assert lt.LinearExperiment.from_json(experiment.to_json()).to_json() == experiment.to_json()
    assert set(seen) == {("reward must be small enough for theta-hat to be finite, but is 1e+100", True)}


def test_a_reward_above_the_bound_of_exp3_is_played_as_in_a_simulation() -> None:
    """The guarantee is gone, the arithmetic is not: simulations with unbounded noise do the same."""
    experiment = start(EXP3)
    experiment.tell(experiment.ask().id, 2.5)
    assert lt.Experiment.from_json(experiment.to_json()).to_json() == experiment.to_json()


# Sizes, names, settings


@pytest.mark.parametrize("arms", [range(10**9), itertools.count(), (f"arm {k}" for k in itertools.count())])
def test_too_many_arms_are_refused_before_any_work(arms: Any) -> None:
    refused(lambda: start(lt.UCB(lt.AnyTime(0.3)), arms), "the number of arms must be at most 1000000")


@pytest.mark.parametrize("dim", [10**6, 10**12, 10**400])
def test_too_many_dimensions_are_refused_before_any_work(dim: int) -> None:
    refused(lambda: lt.LinearExperiment(LIGHT, dim), "dim must be a whole number of at most 10000")


def test_a_dimension_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lighttail.online.linear.free_memory", lambda: 1e6)
    refused(
        lambda: lt.LinearExperiment(LIGHT, 500), "dim must be smaller, but is 500: 12 MB of memory are needed"
    )


def test_too_many_actions_and_starts_are_refused_before_any_work() -> None:
    experiment = lt.LinearExperiment(LIGHT, 2)
    many = np.broadcast_to(0.5, (10**12, 2))
    refused(lambda: experiment.ask(many), "the number of actions must be at most 1000000")
    refused(
        lambda: experiment.ask(lt.BallSet(2, starts=10**12)),
        "starts must be a whole number of at most 1000000",
    )


@pytest.mark.parametrize(
    "actions", [lt.BallSet(2, 1e300), lt.BoxSet([-1e308, 0], [1e308, 1]), lt.BallSet(2, radius=1e51)]
)
@pytest.mark.parametrize("policy", [LIGHT, THOMPSON])
def test_a_set_of_huge_actions_is_refused_and_changes_nothing(policy: Any, actions: Any) -> None:
    """Not even the random numbers."""
    experiment = lt.LinearExperiment(policy, 2, seed=1)
    before = experiment.to_json()
    refused(
        lambda: experiment.ask(actions), "actions must be such that every estimate and radius is a finite"
    )
    assert experiment.to_json() == before


@pytest.mark.parametrize(
    ("actions", "sentence"),
    [
        ([["1", "0"]], "actions must be rows of 2 numbers"),
        (np.array([[1j, 0]]), "actions must be rows of 2 numbers"),
        ([[10**400, 1]], "actions must be rows of numbers of at most 1e50"),
        ({1: 2}, "actions must be rows of 2 numbers"),
        (np.array(0.5), "actions must be of the shape (A, 2)"),
    ],
)
def test_actions_of_another_type_are_refused(actions: Any, sentence: str) -> None:
    refused(lambda: lt.LinearExperiment(LIGHT, 2).ask(actions), sentence)


@pytest.mark.parametrize("arms", [np.array(0.5), np.array([[1, 2], [3, 4]]), [1, 10**30], [None, "A"], 5])
def test_names_that_are_none_are_refused(arms: Any) -> None:
    refused(lambda: start(lt.UCB(lt.AnyTime(0.3)), arms), "arms must be ")


def test_names_are_kept_as_plain_text_and_numbers() -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)), np.array([10, 20], dtype=np.uint8))
    assert [type(arm) for arm in experiment.arms] == [int, int]
    assert lt.Experiment.from_json(experiment.to_json()).arms == [10, 20]


def test_a_horizon_that_no_float_holds_is_refused() -> None:
    refused(lambda: start(lt.Exp3IX(), horizon=10**400), "horizon must be a whole number of at most")


class OwnBits(np.random.PCG64):
    """A generator whose state could not be restored by its name."""


def test_a_generator_that_could_not_be_restored_is_refused() -> None:
    seed = np.random.Generator(OwnBits(1))
    refused(
        lambda: start(lt.UCB(lt.AnyTime(0.3)), seed=seed), "the bit generator of seed must be one of SFC64"
    )


@dataclass(frozen=True)
class UnsavedBonus(lt.Bonus):
    """Holds what JSON does not."""

    needs_horizon = False
    weight: complex

    @staticmethod
    def radius(n: float, t: float) -> float:
        return 1.0 / n

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()


def test_a_policy_that_cannot_be_written_down_is_named() -> None:
    experiment = start(lt.UCB(UnsavedBonus(1j)))
    refused(experiment.to_json, "policy must be made of numbers, text, True, False and None alone")


# Texts


def state_of(policy: Any, bits: str = "SFC64") -> dict[str, Any]:
    """A state after a few trials, two of them open."""
    seed = np.random.Generator(getattr(np.random, bits)(5))
    if policy in (LIGHT, THOMPSON):
        experiment: Any = lt.LinearExperiment(policy, 2, seed=seed)
        trials = [experiment.ask(np.eye(2)) for _ in range(8)]
    else:
        experiment = start(policy, range(12) if policy is UNTRIED else ARMS, seed=seed)
        trials = [experiment.ask() for _ in range(8)]
    for trial in trials[:6]:
        experiment.tell(trial.id, 0.5 * trial.id)
    state = json.loads(experiment.to_json())
    return dict(state)


def changed(policy: Any, path: str, value: Any, bits: str = "SFC64") -> str:
    state = here = state_of(policy, bits)
    *way, last = path.split(".")
    for key in way:
        here = here[int(key)] if isinstance(here, list) else here[key]
    here[int(last) if isinstance(here, list) else last] = value
    return json.dumps(state)


UCB = lt.UCB(lt.AnyTime(0.3))
FIXED = lt.UCB(lt.LightTailed(0.2))
UNTRIED = lt.UCB(lt.Standard(0.4))  # on more arms than there are trials
DAMAGE: list[tuple[Any, str, Any, str]] = [
    (ELIMINATION, "rule.note.0.0", 0.5, "rule.note must be 0 or 1 for every arm, and not 1 for all"),
    (ELIMINATION, "rule.note.0.0", "inf", "rule.note must be 0 or 1 for every arm"),
    (ELIMINATION, "rule.note", [[1.0]] * 3, "rule.note must be 0 or 1 for every arm, and not 1 for all"),
    (ELIMINATION, "rule.note.0.0", 1.0, "rule.note must be what the pulls [3, 3, 2] can have led to"),
    (ELIMINATION, "rule.note.0.0", True, "rule.note must be a finite number, but is True"),
    (ELIMINATION, "rule.note.0.0", "1", "rule.note must be a finite number, but is '1'"),
    (ELIMINATION, "rule.note.0", [0.0, 0.0], "the length of rule.note must be 1, but is 2"),
    (ELIMINATION, "rule.note", [[0.0]] * 2, "the length of rule.note must be 3, but is 2"),
    (ELIMINATION, "rule.note", None, "rule.note must be a list of 3 entries"),
    (EXP3, "rule.note.1.0", 0.0, "rule.note must be the score that the rewards of its arm give, but is 0.0"),
    (EXP3, "rule.note.0", [1.0], "the length of rule.note must be 2, but is 1"),
    (EXP3, "rule.note.1.0", math.inf, "rule.note must be a finite number, but is inf"),
    (EXP3, "rule.note.1.0", "inf", "rule.note must be the score that the rewards of its arm give"),
    (EXP3, "rule.note.1.1", -0.5, "rule.note must be a weight from 0 to 1 after the score of an arm"),
    (EXP3, "trials.memo.0", None, "trials.memo must be a list of 1 entries"),
    (EXP3, "trials.memo.0.0", None, "trials.memo must be a finite number, but is None"),
    (EXP3, "trials.memo.0.0", 0.25, "rule.note must be the score that the rewards of its arm give"),
    (EXP3, "trials.memo.7.0", 1.5, "trials.memo must be the probability with which the arm was drawn"),
    (EXP3, "trials.memo.7.0", "inf", "trials.memo must be the probability with which the arm was drawn"),
    (EXP3, "trials.memo", [], "the length of trials.memo must be 8, but is 0"),
    (FIXED, "rule.note.0.0", 9.0, "rule.note must be the index "),
    (FIXED, "rule.note.1.1", 7.0, "rule.note must be an index that was computed for "),
    (FIXED, "rule.note.1", [math.inf, 0.0], "rule.note must be a finite number, but is inf"),
    (FIXED, "rule.note.1", ["inf", 0.0], "rule.note must be an index that was computed for "),
    (UNTRIED, "rule.note.1.0", 0.0, "rule.note must be inf and then 0 for an arm that was never tried"),
    (UNTRIED, "rule.note.1.1", 1.0, "rule.note must be inf and then 0 for an arm that was never tried"),
    (UCB, "trials.memo.7", 0.5, "trials.memo must be a list of 0 entries, but is 0.5"),
    (UCB, "trials.memo.7", [0.5], "the length of trials.memo must be 0, but is 1"),
    (UCB, "trials.reward.0", 0.75, "rule.total must be "),
    (UCB, "trials.reward.0", 1e308, "trials.reward must be a number of at most 1e+100"),
    (UCB, "trials.reward.0", True, "trials.reward must be a finite number"),
    (UCB, "trials.reward.0", None, "rule.heard must be the counts "),
    (UCB, "trials.arm.0", 1.0, "trials.arm must be a whole number"),
    (UCB, "trials.arm.0", -1, "trials.arm must be a whole number of at least 0"),
    (UCB, "rule.total.0", math.nan, "rule.total must be a finite number, but is nan"),
    (UCB, "rule.total.0", 10**400, "rule.total must be a finite number"),
    (UCB, "rule.tried", [8, 0, 0], "rule.tried must be the counts "),
    (UCB, "rule.heard", [6, 0, 0], "rule.heard must be the counts "),
    (UCB, "rule.more", 1, "the name of a field of rule must be one of tried, heard, total, note, but is"),
    (UCB, "more", 1, "the name of a field of the text must be one of "),
    (UCB, "arms", {"A": 1, "B": 2, "C": 3}, "arms must be a list"),
    (UCB, "horizon", 10**400, "horizon must be a whole number of at most"),
    (UCB, "format", True, "format must be 2, 3 or 4 of an experiment, but is True of 'experiment'"),
    (UCB, "format", 2.0, "format must be 2, 3 or 4 of an experiment, but is 2.0 of 'experiment'"),
    (UCB, "format", 1, "format must be 2, 3 or 4 of an experiment, but is 1 of 'experiment'"),
    (UCB, "lighttail", "x" * 999, "format must be 2, 3 or 4 of an experiment, but is 2 of 'xxx"),
    (UCB, "policy.bonus.kappa", math.inf, "policy.bonus.kappa must be a finite number, but is inf"),
    (UCB, "policy.bonus.kappa", "1", "kappa must be a finite number above 0"),
    (UCB, "policy.bonus.sigma", 1.0, "the name of a field of policy.bonus must be one of type, kappa"),
    (UCB, "policy.bonus", {}, "policy.bonus.type must be the name of a policy or a bonus, but is None"),
    (UCB, "policy.type", ["UCB"], "policy.type must be the name of a policy or a bonus"),
    (UCB, "policy.type", "lighttail.policies:Policy", "the policy class 'Policy' of"),
    (LIGHT, "rule.sums.0", 9.0, "its sums do not fit its trials: rule.sums must be "),
    (LIGHT, "rule.asked.0", [1.0], "the length of rule.asked must be 2, but is 1"),
    (LIGHT, "rule.received.0.0", 7.0, "its sums do not fit its trials: rule.received must be "),
    (LIGHT, "rule.received.0.0", None, "rule.received must be a finite number"),
    (
        LIGHT,
        "trials.action.0",
        [1e60, 0.0],
        "trials.action must be a list of numbers of at most 1e+50 in size",
    ),
    (LIGHT, "trials.action.0", [1.0], "the length of trials.action must be 2, but is 1"),
    (LIGHT, "trials.label.0", 1.5, "trials.label must be names that are text or whole numbers"),
    (LIGHT, "dim", 10**6, "dim must be a whole number of at most 10000"),
]


@pytest.mark.parametrize(("policy", "path", "value", "sentence"), DAMAGE)
def test_a_damaged_field_is_named(policy: Any, path: str, value: Any, sentence: str) -> None:
    kind: Any = lt.LinearExperiment if policy is LIGHT else lt.Experiment
    assert kind.from_json(json.dumps(state_of(policy))).ask  # the control is accepted
    refused(lambda: kind.from_json(changed(policy, path, value)), sentence)


@pytest.mark.parametrize(
    ("bits", "path", "value", "sentence"),
    [
        ("SFC64", "state.state.values", [1, 2], "the length of rng.state.state.values must be 4, but is 2"),
        ("SFC64", "state.state.values.0", 2**64, "rng.state.state.values must be a whole number of at most"),
        ("SFC64", "state.state.values.0", 0.5, "rng.state.state.values must be a whole number"),
        ("SFC64", "state.state.dtype", "object", "rng.state.state.dtype must be 'uint64', but is 'object'"),
        ("SFC64", "has_uint32", 2, "rng.has_uint32 must be a whole number of at most 1"),
        ("SFC64", "bit_generator", ["SFC64"], "rng must be one of SFC64"),
        ("SFC64", "bit_generator", "Philox", "the fields of rng must be "),
        ("PCG64", "state.inc", 4, "rng.state.inc must be an odd number, but is 4"),
        ("PCG64", "state.state", -1, "rng.state.state must be a whole number of at least 0"),
        ("PCG64DXSM", "state.state", 2**128, "rng.state.state must be a whole number of at most"),
        ("Philox", "buffer_pos", 5, "rng.buffer_pos must be a whole number of at most 4"),
        ("Philox", "buffer.values", None, "rng.buffer.values must be a list of 4 entries"),
        ("MT19937", "state.pos", 10**6, "rng.state.pos must be a whole number of at most 624"),
        ("MT19937", "state.key.values.3", 2**32, "rng.state.key.values must be a whole number of at most"),
    ],
)
def test_a_damaged_generator_is_named(bits: str, path: str, value: Any, sentence: str) -> None:
    assert lt.Experiment.from_json(json.dumps(state_of(UCB, bits))).ask()  # the control is accepted
    refused(lambda: lt.Experiment.from_json(changed(UCB, f"rng.{path}", value, bits)), sentence)


WHOLE = json.dumps(state_of(UCB))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 100_000, "not an experiment that lighttail wrote: it is nested too deeply"),
        (WHOLE.replace('"horizon": 200', '"horizon": ' + "[" * 900 + "]" * 900), "whole experiment"),
        (
            WHOLE.replace('"horizon": 200', '"horizon": 200, "horizon": 200'),
            "the name of a field must be different",
        ),
        (WHOLE.replace("200", "9" * 5000), "not an experiment that lighttail wrote"),
        (WHOLE.replace("0.3", "1e999"), "policy.bonus.kappa must be a finite number, but is inf"),
        (WHOLE[:-1], "not an experiment that lighttail wrote"),
        (WHOLE + "}", "not an experiment that lighttail wrote"),
        (WHOLE.encode(), "the text must be a str that to_json returned"),
        (json.loads(WHOLE), "the text must be a str that to_json returned"),
        (None, "the text must be a str that to_json returned, but is None"),
    ],
)
def test_a_damaged_text_is_refused(text: Any, sentence: str) -> None:
    refused(lambda: lt.Experiment.from_json(text), sentence)
