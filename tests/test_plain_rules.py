"""Live experiments against the plain rules: asks, and tells that come late or never, in any order."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cases import POLICIES, name
from plain_rules import PlainRule, plain_rule

import lighttail as lt

HORIZON = 300


def interleaved(policy: lt.Policy, arms: int, seed: int, oracle: PlainRule) -> list[tuple[int, int]]:
    """(arm of the experiment, arm of the plain rule) of every round.

    Now many trials are open and now few; a quarter of the rewards never comes, and equal ones make ties.
    """
    script, rng = random.Random(seed), np.random.Generator(np.random.SFC64(seed))
    experiment = lt.Experiment(policy, range(arms), horizon=HORIZON, seed=seed)
    pairs, waiting, patience = [], [], 1
    while len(pairs) < HORIZON:
        if len(waiting) > patience:
            trial, memo = waiting.pop(script.randrange(len(waiting)))
            reward = script.choice([0.0, 1.0, script.gauss(0.2 * trial.arm, 1.0)])
            if script.random() < 0.75:
                experiment.tell(trial.id, reward)
                oracle.learn(trial.arm, reward, memo)
            continue
        patience = script.choice([0, 1, 3, 20]) if script.random() < 0.1 else patience
        trial = experiment.ask()
        arm, memo = oracle.choose(rng)
        pairs.append((trial.arm, arm))
        waiting.append((trial, memo))
        if script.random() < 0.05:
            experiment = lt.Experiment.from_json(experiment.to_json())
    return pairs


@pytest.mark.parametrize("policy", POLICIES, ids=name)
@pytest.mark.parametrize("arms", [2, 3, 7])
def test_every_arm_is_the_one_that_the_plain_rule_pulls(policy: lt.Policy, arms: int) -> None:
    for seed in range(4):
        pairs = interleaved(policy, arms, seed, plain_rule(policy, HORIZON, arms))
        assert pairs == [(arm, arm) for arm, _ in pairs]
        assert {arm for arm, _ in pairs} == set(range(arms))


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_a_plain_rule_that_forgets_rewards_is_told_apart(policy: lt.Policy) -> None:
    """Negative control."""
    oracle = plain_rule(policy, HORIZON, 3)
    sound, heard = oracle.learn, []

    def forgetful(arm: int, reward: float, memo: float | None) -> None:
        heard.append(reward)
        if len(heard) % 3:
            sound(arm, reward, memo)

    oracle.learn = forgetful  # type: ignore[method-assign]
    pairs = interleaved(policy, 3, 1, oracle)
    assert pairs != [(arm, arm) for arm, _ in pairs]
