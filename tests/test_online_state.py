"""The state of a live experiment as text: it continues exactly, and other text is refused."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases import MORE_POLICIES, POLICIES
from hypothesis import given, settings
from hypothesis import strategies as st
from live import copy, follow, scripts, start

import lighttail as lt


@settings(deadline=None, max_examples=80, derandomize=True)
@given(scripts, scripts, st.sampled_from([*POLICIES, *MORE_POLICIES]))
def test_a_copy_through_text_continues_exactly(before: Any, after: Any, policy: lt.Policy) -> None:
    original, told = start(policy), {}
    follow(before, original, told=told)
    restored = copy(original)
    assert restored.open_trials == original.open_trials
    assert restored.pulls == original.pulls
    for first, second in follow(after, original, restored, told=told):
        assert first == second


def test_a_copy_with_another_generator_is_told_apart() -> None:
    """Negative control: the comparison above sees a state that was not restored."""
    script = [("ask", 0, 0)] * 40
    original, other = start(lt.ThompsonSampling(0.5)), start(lt.ThompsonSampling(0.5), seed=4)
    with pytest.raises(AssertionError, match="different states"):
        follow(script, original, other)


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "Philox", "MT19937", "SFC64"])
def test_any_numpy_generator_travels(bits: str) -> None:
    generator = np.random.Generator(getattr(np.random, bits)(5))
    experiment = start(lt.ThompsonSampling(0.5), seed=generator)
    restored = copy(experiment)
    assert [restored.ask() for _ in range(20)] == [experiment.ask() for _ in range(20)]


def test_whole_numbers_as_arms_survive() -> None:
    experiment = start(lt.UCB(lt.AnyTime(0.3)), [10, 20, "30"])
    experiment.ask()
    restored = copy(experiment)
    assert restored.arms == [10, 20, "30"]
    assert type(restored.arms[0]) is int
    assert restored.ask() == experiment.ask()


@pytest.mark.parametrize("whole_number", [int, np.int64])
def test_any_whole_number_for_a_horizon_travels(whole_number: Any) -> None:
    assert copy(start(lt.UCB(lt.Standard(0.4)), horizon=whole_number(50))).horizon == 50


def test_the_text_is_plain_versioned_json() -> None:
    experiment = start(lt.Exp3IX())
    experiment.ask()
    state = json.loads(experiment.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert (state["lighttail"], state["format"]) == ("experiment", 2)
    assert state["policy"]["type"] == "lighttail.policies.exponential:Exp3IX"
    assert list(state["rule"]) == ["tried", "heard", "total", "note"]


def changed(**changes: Any) -> str:
    experiment = start(lt.UCB(lt.AnyTime(0.3)))
    experiment.ask()
    return json.dumps({**json.loads(experiment.to_json()), **changes})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not an experiment that lighttail wrote"),
        ("hello", "not an experiment that lighttail wrote"),
        ("[1, 2]", "not an experiment that lighttail wrote"),
        ("{}", "not an experiment that lighttail wrote"),
        ("null", "not an experiment that lighttail wrote"),
        (changed(format=1), "format must be 2, 3 or 4 of an experiment, but is 1"),
        (changed(lighttail="outcome"), "but is 2 of 'outcome'"),
        (changed(trials=None), "not a whole experiment"),
        (changed(rule={}), "not a whole experiment"),
        (changed(rng=None), "not a whole experiment"),
        (changed(rng={"bit_generator": "seed"}), "rng must be one of"),
        (changed(policy={"type": "lighttail.policies:UCB"}), "not a whole experiment"),
        (changed(policy="UCB"), "policy must be"),
        (changed(arms=["A"]), "arms must be"),
    ],
)
def test_other_text_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        lt.Experiment.from_json(text)
    assert "\n" not in str(caught.value)


def test_the_control_of_the_refusals_is_accepted() -> None:
    assert lt.Experiment.from_json(changed(format=2)).pulls != {"A": 0, "B": 0, "C": 0}


@dataclass(frozen=True)
class OwnOnlineBonus(lt.Bonus):
    """A user's own."""

    needs_horizon = False
    weight: float

    @staticmethod
    def radius(n: float, t: float, weight: float) -> float:
        return weight * math.sqrt(math.log(t + 1.0) / n)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.weight,)


def test_a_users_own_bonus_is_found_when_it_is_defined_and_asked_for_when_not() -> None:
    experiment = start(lt.UCB(OwnOnlineBonus(0.7)), horizon=None)
    experiment.ask()
    text = experiment.to_json()
    assert lt.Experiment.from_json(text).policy == lt.UCB(OwnOnlineBonus(0.7))
    with pytest.raises(
        ValueError, match=r"'Elsewhere' of '.*' is not known; import the module that defines your own"
    ):
        lt.Experiment.from_json(text.replace("OwnOnlineBonus", "Elsewhere"))
