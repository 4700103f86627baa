"""A live experiment: ask which arm to pull, tell the reward."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from lighttail.online.rules import RULES, Rule
from lighttail.online.state import decode, decode_generator, encode, encode_generator
from lighttail.policies import Policy
from lighttail.validation import BadInput, number, refuse, whole

FORMAT = 1  # of the text that `to_json` writes
Label = str | int


class Trial(NamedTuple):
    """One pull: its number, by which its reward is told, and the arm to pull."""

    id: int
    arm: Label


class Experiment:
    """A policy in a live experiment.

    policy: any policy. arms: at least two different names (text or whole numbers).
    horizon: how many pulls there will be; a policy with `AnyTime`, Thompson sampling and EXP3-IX
        with its own `eta` need none. Pulls beyond it are served, with one warning.
    seed: of the tie breaks and the policy's own draws; a NumPy generator will do as well.

    Rewards may come late, in any order, or never; a reward told twice is ignored if it is equal
    and refused if it is not. Several trials may be open at once. An open trial counts as a pull
    without a reward: it narrows its arm's radius but does not move its mean, so that a batch
    spreads over the arms. An arm that has only open trials stands at the mean of all rewards so
    far. `SuccessiveElimination` drops an arm on received rewards alone.

    >>> import lighttail as lt
    >>> experiment = lt.Experiment(lt.UCB(lt.AnyTime(kappa=0.5)), arms=["A", "B"], seed=1)
    >>> trial = experiment.ask()
    >>> trial
    Trial(id=1, arm='B')
    >>> experiment.tell(trial.id, reward=1.0)
    >>> experiment.ask().arm  # an arm never pulled comes first
    'A'
    """

    def __init__(
        self,
        policy: Policy,
        arms: Iterable[Label],
        horizon: int | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise refuse("policy", policy, "a policy such as UCB(AnyTime(kappa=0.5))")
        self.policy = policy
        self.arms = _check_arms(arms)
        if horizon is None and policy.needs_horizon:
            raise BadInput(
                f"horizon must be given with {policy}, but is None; "
                "UCB(AnyTime(kappa)) is the light-tailed policy that needs no horizon"
            )
        if horizon is not None:
            horizon = whole(
                "horizon", horizon, len(self.arms), f", one pull for each of {len(self.arms)} arms"
            )
        self.horizon = horizon
        known = math.nan if horizon is None else horizon
        policy.check(known, len(self.arms))
        self._rule = _rule_for(policy, known, len(self.arms))
        self._rng = _generator(seed)
        self._arm_of: list[int] = []
        self._reward_of: list[float | None] = []
        self._memo_of: list[float | None] = []

    def ask(self) -> Trial:
        """The next pull."""
        if self.horizon is not None and len(self._arm_of) == self.horizon:
            warnings.warn(
                f"the horizon of {self.horizon} pulls is over; the policy goes on without its guarantees",
                stacklevel=2,
            )
        arm, memo = self._rule.choose(self._rng)
        self._arm_of.append(arm)
        self._reward_of.append(None)
        self._memo_of.append(memo)
        return Trial(len(self._arm_of), self.arms[arm])

    def tell(self, id: int, reward: float) -> None:
        """The reward, a finite number (or True or False), of the trial with that id."""
        reward = float(reward) if isinstance(reward, (bool, np.bool_)) else number("reward", reward)
        place = self._place(id)
        known = self._reward_of[place]
        if known is None:
            if not math.isfinite(self._rule.sums[self._arm_of[place]] + reward):
                raise refuse("reward", reward, "small enough for the sum of an arm's rewards to be finite")
            self._reward_of[place] = reward
            self._rule.learn(self._arm_of[place], reward, self._memo_of[place])
        elif known != reward:
            raise refuse("reward", reward, f"{known!r}, which was told before for trial {id}")

    def _place(self, id: Any) -> int:
        """Where a trial is kept."""
        asked = len(self._arm_of)
        if isinstance(id, bool) or not isinstance(id, Integral) or not 1 <= int(id) <= asked:
            which = f"asked are 1 to {asked}" if asked else "none was asked yet"
            raise refuse("id", id, f"the id of a trial that was asked ({which})")
        return int(id) - 1

    def __repr__(self) -> str:
        trials, waiting = len(self._arm_of), len(self.open_trials)
        return f"<Experiment: {self.policy}, {len(self.arms)} arms, {trials} trials, {waiting} open>"

    @property
    def pulls(self) -> dict[Label, int]:
        """How often each arm was pulled, open trials included."""
        return dict(zip(self.arms, self._rule.pulls, strict=True))

    @property
    def means(self) -> dict[Label, float]:
        """The mean of the rewards received from each arm; nan where there are none."""
        known = zip(self.arms, self._rule.sums, self._rule.received, strict=True)
        return {label: total / n if n else math.nan for label, total, n in known}

    @property
    def open_trials(self) -> list[Trial]:
        """Trials whose reward has not been told."""
        pairs = enumerate(zip(self._arm_of, self._reward_of, strict=True), start=1)
        return [Trial(id, self.arms[arm]) for id, (arm, reward) in pairs if reward is None]

    def to_json(self) -> str:
        """The whole state as text, from which another process continues exactly."""
        state = {
            "lighttail": "experiment",
            "format": FORMAT,
            "policy": encode(self.policy),
            "arms": self.arms,
            "horizon": self.horizon,
            "rng": encode_generator(self._rng),
            "trials": {"arm": self._arm_of, "reward": self._reward_of, "memo": self._memo_of},
            "rule": self._rule.state(),
        }
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Experiment:
        """Continue from what `to_json` returned. A policy class of your own must be imported."""
        try:
            state = json.loads(text)
            kind, version = state["lighttail"], state["format"]
        except (ValueError, TypeError, KeyError):
            raise BadInput("the text is not an experiment that lighttail wrote") from None
        if (kind, version) != ("experiment", FORMAT):
            raise BadInput(f"format must be {FORMAT} of an experiment, but is {version!r} of {kind!r}")
        try:
            policy, arms, horizon = decode(state["policy"]), state["arms"], state["horizon"]
            experiment = cls(policy, arms, horizon, decode_generator(state["rng"]))
            trials = state["trials"]
            experiment._arm_of = trials["arm"]
            experiment._reward_of = trials["reward"]
            experiment._memo_of = trials["memo"]
            experiment._rule.restore(state["rule"])
            experiment._check_whole()
        except (TypeError, KeyError, AttributeError, IndexError) as error:
            raise BadInput(f"the text is not a whole experiment: {error} is missing or wrong") from None
        return experiment

    def _check_whole(self) -> None:
        """Refuse a state whose parts do not fit together."""
        arms, rule = len(self.arms), self._rule
        asked = [self._arm_of.count(arm) for arm in range(arms)]
        answered = [
            arm for arm, reward in zip(self._arm_of, self._reward_of, strict=False) if reward is not None
        ]
        lists = (self._arm_of, self._reward_of, self._memo_of)
        fits = (
            len({len(trials) for trials in lists}) == 1
            and rule.pulls == asked
            and sum(asked) == len(self._arm_of)
            and rule.received == [answered.count(arm) for arm in range(arms)]
            and len(rule.sums) == arms
            and all(math.isfinite(total) for total in rule.sums)
        )
        if not fits:
            raise BadInput("the text is not a whole experiment: its counts do not fit its trials")


def _rule_for(policy: Policy, horizon: float, arms: int) -> Rule:
    for kind, rule in RULES.items():
        if isinstance(policy, kind):
            return rule(policy, horizon, arms)
    raise refuse("policy", policy, f"one of {', '.join(kind.__name__ for kind in RULES)}")


def _generator(seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is not None:
        whole("seed", seed, 0)
    return np.random.Generator(np.random.SFC64(seed))


def _check_arms(arms: Any) -> list[Label]:
    if isinstance(arms, (str, bytes, set, frozenset)) or not isinstance(arms, Iterable):
        raise refuse("arms", arms, "a list of at least two names")
    names = list(arms)
    if len(names) < 2:
        raise refuse("arms", names, "a list of at least two names")
    for name in names:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise refuse("arms", name, "names that are text or whole numbers")
    if len(set(names)) < len(names):
        raise refuse("arms", names, "different from each other")
    return names
