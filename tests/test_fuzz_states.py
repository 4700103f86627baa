"""A part of the fuzzer of live experiments, and proof that its judge sees what is wrong."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import fuzz_states
import pytest
from live import start

import lighttail as lt
from lighttail.checks import BadInput

TEXT = start(lt.SuccessiveElimination(lt.LightTailed(0.2))).to_json()
TURNS = itertools.cycle([0, 1, 2])
restore = lt.Experiment.from_json


def test_damaged_states_and_odd_calls_are_answered_or_refused_in_a_sentence() -> None:
    complaints: list[str] = []
    seen = fuzz_states.fuzz(1200, seed=12, say=complaints.append)
    assert complaints == []
    assert (seen["refused"] + seen["accepted"], seen["sequences"]) == (1200, 120)
    assert min(seen["refused"], seen["accepted"]) > 30  # both kinds of answers were judged


def missing(text: str) -> Any:
    raise KeyError("rule")


def raw(text: str) -> Any:
    raise ValueError("operands could not be broadcast together")


def two_lines(text: str) -> Any:
    raise BadInput("rule must be\nanother one")


def endless(text: str) -> Any:
    raise BadInput("rule must be " + "x" * 1000)


def crashes_later(text: str) -> lt.Experiment:
    experiment = restore(text)
    experiment._standing.params = ()
    return experiment


def forgets(text: str) -> lt.Experiment:
    experiment = restore(text)
    experiment.horizon = 77
    return experiment


def plays_on_differently(text: str) -> lt.Experiment:
    experiment = restore(text)
    experiment._standing.note[next(TURNS), 0] = 1.0  # an arm that nobody dropped
    experiment._standing.to_plain = lambda: json.loads(text)["rule"]
    return experiment


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (missing, "KeyError"),
        (raw, "ValueError: operands"),
        (two_lines, "not one short sentence"),
        (endless, "not one short sentence"),
        (crashes_later, "later "),
        (forgets, "not the state in the text"),
        (plays_on_differently, "(plays otherwise|leads to another|later )"),
    ],
)
def test_the_judge_sees_a_broken_restore(broken: Callable[[str], Any], complaint: str) -> None:
    """Negative controls."""
    found = [fuzz_states.judged(broken, TEXT, random.Random(seed))[1] for seed in range(5)]
    with pytest.raises(AssertionError, match=complaint):
        assert found == [None] * 5


def test_the_judge_has_nothing_to_say_about_a_sound_one() -> None:
    assert fuzz_states.judged(restore, TEXT, random.Random(1)) == ("accepted", None)


def test_the_judge_of_calls_sees_a_refusal_that_changes_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a tell that learns before it looks."""
    sound = lt.Experiment.tell

    def hasty(self: lt.Experiment, id: Any, reward: Any) -> None:
        self._rng.random()
        sound(self, id, reward)

    monkeypatch.setattr(lt.Experiment, "tell", hasty)
    found = [fuzz_states.odd_calls(random.Random(seed)) for seed in range(20)]
    assert any(wrong is not None and "changed the state" in wrong for wrong in found)
