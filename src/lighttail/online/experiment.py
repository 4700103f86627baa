"""A live experiment: ask which arm to pull, tell the reward."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from lighttail.checks import refuse, whole
from lighttail.course import Beginning
from lighttail.online.standing import Standing, plain_rows
from lighttail.online.state import checked_reward, fields_of, listed
from lighttail.online.trials import Label, LiveExperiment, check_names, known_horizon, or_nan
from lighttail.policies import Policy
from lighttail.policies.policy import Pull
from lighttail.policies.rehearsal import try_out

_new = tuple.__new__  # faster than calling `Trial`


class Trial(NamedTuple):
    """One pull: the id with which its reward is told, and the arm to pull."""

    id: int
    arm: Label


class Experiment(LiveExperiment):
    """A policy in a live experiment.

    policy: any policy for arms. arms: at least two different names (text or whole numbers).
    horizon: the number of pulls. A policy with `AnyTime`, Thompson sampling, and EXP3-IX with a given `eta`
        need no horizon. After the horizon the policy continues, with one warning.
    seed: the seed of the tie breaks and of the policy's draws, or a NumPy generator.

    Rewards may come late, in any order, or never. If a reward is told again, it is ignored if it is equal,
    and otherwise it is refused. Several trials may be open at once. An open trial counts as a pull without a
    reward: it narrows the radius of its arm but does not change the mean, so that a batch spreads over the
    arms. An arm that has only open trials gets the mean of all rewards so far. `SuccessiveElimination` drops
    an arm because of received rewards alone. Threads may share an experiment.

    >>> import lighttail as lt
    >>> experiment = lt.Experiment(lt.UCB(lt.AnyTime(kappa=0.5)), arms=["A", "B"], seed=1)
    >>> trial = experiment.ask()
    >>> trial
    Trial(id=1, arm='B')
    >>> experiment.tell(trial.id, reward=1.0)
    >>> experiment.ask().arm  # an arm that was never pulled comes first
    'A'
    """

    kind = "experiment"
    version = 2
    parts = ("arms", "trials", "rule")

    def __init__(
        self,
        policy: Policy,
        arms: Iterable[Label],
        horizon: int | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(policy, Policy) or policy.linear:
            raise refuse("policy", policy, "a policy for arms such as UCB(AnyTime(kappa=0.5))")
        self.arms = check_names("arms", arms, 2, "a list of at least two names")
        why = f", one pull for each of {len(self.arms)} arms"
        hint = "UCB(AnyTime(kappa)) is the light-tailed policy that needs no horizon"
        super().__init__(policy, known_horizon(policy, horizon, len(self.arms), why, hint), seed)
        policy.check(or_nan(self.horizon), len(self.arms))
        try_out(policy, or_nan(self.horizon), len(self.arms), late=True)
        self._standing = Standing(policy, or_nan(self.horizon), len(self.arms))
        self._arm_of: list[int] = []
        self._memo_of: list[tuple[float, ...]] = []

    def ask(self) -> Trial:
        """The next pull."""
        self._lock.acquire()  # `with` takes twice as long
        try:
            arms = self._arm_of
            asked = len(arms)
            if asked == self.horizon:
                self._warn_if_over()
            stands = self._standing
            arm = stands.choose(self._rng, asked + 1.0)
            arms.append(arm)
            self._reward_of.append(None)
            self._memo_of.append(stands.memo)
            return _new(Trial, (asked + 1, self.arms[arm]))
        finally:
            self._lock.release()

    def _learn(self, place: int, reward: float) -> None:
        self._standing.learn(self._arm_of[place], reward, self._memo_of[place])

    def __repr__(self) -> str:
        with self._lock:
            trials, waiting = len(self._arm_of), len(self._open_places)
        return f"<Experiment: {self.policy}, {len(self.arms)} arms, {trials} trials, {waiting} open>"

    @property
    def pulls(self) -> dict[Label, int]:
        """The number of pulls of each arm, including open trials."""
        with self._lock:
            return dict(zip(self.arms, map(int, self._standing.tried), strict=True))

    @property
    def means(self) -> dict[Label, float]:
        """The mean of the rewards received from each arm; nan if there are none."""
        with self._lock:
            known = zip(self.arms, self._standing.total, self._standing.heard, strict=True)
            return {label: total / n if n else math.nan for label, total, n in known}

    @property
    def open_trials(self) -> list[Trial]:
        """The trials whose reward has not been told."""
        with self._lock:
            return [Trial(place + 1, self.arms[self._arm_of[place]]) for place in self._open_places]

    def beginning(self) -> Beginning:
        """The state of the experiment, for `simulate(..., start=)`."""
        with self._lock:
            stands, opened = self._standing, self._open_places
            counts, note = stands.arrays()
            memos = np.array([self._memo_of[place] for place in opened]).reshape(
                len(opened), stands.rule.memo
            )
            pairs = np.array([(self._arm_of[place], place + 1) for place in opened], dtype=np.int64)
            horizon, rounds = or_nan(self.horizon), len(self._arm_of)
            return Beginning(self.policy, horizon, rounds, counts, note, pairs.reshape(-1, 2), memos)

    def _state(self) -> dict[str, Any]:
        trials = {"arm": self._arm_of, "reward": self._reward_of, "memo": plain_rows(self._memo_of)}
        return {"arms": self.arms, "trials": trials, "rule": self._standing.to_plain()}

    @classmethod
    def _restored(cls, policy: Any, state: dict[str, Any], rng: np.random.Generator) -> Experiment:
        experiment = cls(policy, listed("arms", state["arms"]), state["horizon"], rng)
        trials = fields_of("trials", state["trials"], ("arm", "reward", "memo"))
        last = len(experiment.arms) - 1
        arms = [whole("trials.arm", arm, 0, most=last) for arm in listed("trials.arm", trials["arm"])]
        rewards = listed("trials.reward", trials["reward"], len(arms))
        experiment._arm_of = arms
        experiment._reward_of = [r if r is None else checked_reward("trials.reward", r) for r in rewards]
        memos = listed("trials.memo", trials["memo"], len(arms))
        experiment._memo_of = [experiment._standing.memo_of(memo) for memo in memos]
        lists = (experiment._arm_of, experiment._reward_of, experiment._memo_of)
        experiment._standing.restore(state["rule"], [Pull(*pull) for pull in zip(*lists, strict=True)])
        return experiment
