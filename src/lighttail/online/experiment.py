"""A live experiment: ask which arm to pull, tell the reward."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from lighttail.checks import refuse, whole
from lighttail.course import Beginning
from lighttail.online.base import (
    ABOUT,
    MOST_NAMES,
    Label,
    LiveExperiment,
    check_name,
    check_names,
    known_horizon,
    or_nan,
)
from lighttail.online.standing import Standing
from lighttail.online.state import listed
from lighttail.policies import Policy
from lighttail.policies.policy import Pull
from lighttail.rehearsal import try_out

RETIRED = "retired"  # the field with the places of retired arms
JOINED = "joined"  # the field with the number of arms that were added
if TYPE_CHECKING:
    from lighttail.forecasting import Forecast
    from lighttail.inference import Evidence, Sequences
    from lighttail.problems import Bandit

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
    _offered = "arms"
    _columns = ("arm", "reward", "memo")
    _names = ("arm", "memo")
    _standing: Standing

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
        steps, count = or_nan(self.horizon), len(self.arms)
        policy.check(steps, count)
        try_out(policy, steps, count, late=True)
        self._standing = Standing(policy, steps, count)
        self._began_with = count

    @overload
    def ask(self, count: None = None, *, about: dict[str, Any] | None = None) -> Trial: ...

    @overload
    def ask(self, count: int, *, about: dict[str, Any] | None = None) -> list[Trial]: ...

    def ask(self, count: int | None = None, *, about: dict[str, Any] | None = None) -> Trial | list[Trial]:
        """The next pull. With a count, a list of the next pulls, as if `ask()` had been called this often and
        nothing had happened in between.

        about: what to note about each of these trials while it is open: an object of at most 1,000 bytes as
            JSON, with text, numbers, True, False and None. The policy never sees it; `about(id)` returns it.
        """
        if count is not None or about is not None:
            return self._ask_more(self.ask, count, about)
        self._lock.acquire()  # `with` takes twice as long
        try:
            arms, stands = self._arm_of, self._standing
            asked = len(arms)
            before = self._pulls_before + asked
            if before == self.horizon:
                self._warn_if_over()
            arm = stands.choose(self._rng, before + 1.0)
            arms.append(arm)  # what `_record` does, without the call
            self._reward_of.append(None)
            self._memo_of.append(stands.memo)
            return _new(Trial, (self._first + asked, self.arms[arm]))
        finally:
            self._lock.release()

    def take(self, arm: Label) -> Trial:
        """Record a pull of this arm that the policy did not choose, such as a fixed share of the traffic.

        The pull and its reward count like any other. The policy is asked, too, and overruled, so that its own
        state goes on as in every round. A policy that must know the probability of every pull (`Exp3IX`)
        refuses such a pull.
        """
        with self._lock:
            place = self._numbered(arm)
            self._standing.check_takes()
            if place in self._standing.retired:
                raise refuse("arm", arm, "an arm in play", found="was retired")
            self._warn_if_over()
            self._standing.take(self._rng, self._pulled() + 1.0, place)
            self._taken += 1
            return self._trial(self._record(place, ()))

    def add(self, arm: Label) -> None:
        """Let one more arm join. It starts without pulls: a policy with an index pulls it at once.

        A policy that has decided among the arms that there were (`SuccessiveElimination`,
        `ExploreThenCommit`) or counts on their number from the start (`Exp3IX`, `EpsilonGreedy`, `EvenSplit`)
        refuses.
        """
        with self._lock:
            self._join(arm, self._pulled() > 0)

    def _join(self, arm: Any, begun: bool) -> None:
        """begun: whether there was a pull."""
        name, arms = check_name("arm", arm), len(self.arms) + 1
        if name in self.arms:
            raise refuse("arm", name, "another name than those of the arms so far, retired arms included")
        self._standing.check_arms_may_change()
        most = MOST_NAMES if self.horizon is None else min(self.horizon, MOST_NAMES)
        if arms > most:
            raise refuse("the number of arms", arms, f"at most {most}")
        self.policy.check(or_nan(self.horizon), arms)
        self._standing.add_arm(begun)
        self.arms.append(name)

    def retire(self, arm: Label) -> None:
        """Never choose this arm again, for good. Rewards of its open trials still count.

        At least two arms must be left. The policies that refuse `add` refuse this, too.
        """
        with self._lock:
            place = self._numbered(arm)
            self._standing.check_arms_may_change()
            if place in self._standing.retired:
                raise refuse("arm", arm, "an arm in play", found="was retired before")
            if len(self.arms) - len(self._standing.retired) <= 2:
                raise refuse("arm", arm, "one of at least three arms in play", found="is one of two")
            self._standing.retire([*self._standing.retired, place])

    @property
    def retired(self) -> list[Label]:
        """The arms that are never chosen again, in their order."""
        with self._lock:
            return [self.arms[place] for place in self._standing.retired]

    @property
    def began_with(self) -> int:
        """How many arms there were at the beginning; the arms after these were added."""
        return self._began_with

    def _trial(self, id: int) -> Trial:
        return Trial(id, self.arms[self._pull_of(id)[0]])

    def _numbered(self, arm: Any) -> int:
        for place, label in enumerate(self.arms):
            if type(label) is type(arm) and label == arm:
                return place
        raise refuse("arm", arm, f"one of {', '.join(map(repr, self.arms))}")

    def __repr__(self) -> str:
        with self._lock:
            counts = f"{self._pulled()} trials, {len(self._open_ids())} open"
        return f"<Experiment: {self.policy}, {len(self.arms)} arms, {counts}>"

    def _repr_html_(self) -> str:
        from lighttail.outcomes.notebook import table

        pulls = self.pulls
        rows = [(str(arm), f"{pulls[arm]:,}", f"{mean:.4g}") for arm, mean in self.means.items()]
        return table(repr(self), ("arm", "pulls", "mean reward"), rows)

    @property
    def pulls(self) -> dict[Label, int]:
        """The number of pulls of each arm, including open trials."""
        with self._lock:
            return dict(zip(self.arms, map(int, self._standing.tried), strict=True))

    @property
    def means(self) -> dict[Label, float]:
        """The mean of the rewards received from each arm; nan if there are none."""
        with self._lock:
            return {arm: total / n if n else math.nan for arm, (n, total) in self._heard().items()}

    def _heard(self) -> dict[Label, tuple[int, float]]:
        """The number and the sum of the rewards received from each arm."""
        known = zip(self.arms, self._standing.heard, self._standing.total, strict=True)
        return {arm: (int(times), float(total)) for arm, times, total in known}

    @property
    def open_trials(self) -> list[Trial]:
        """The trials whose reward has not been told."""
        with self._lock:
            return [self._trial(id) for id in self._open_ids()]

    def intervals(self, rewards: Evidence | None = None, level: float = 0.95) -> Sequences:
        """Intervals for the mean of every arm and for every difference, which hold however often you look.

        rewards: what is known about rewards, `BoundedRewards(low, high)` or `SubGaussianRewards(sigma)` of
        `lighttail.inference`; by default that they lie between 0 and 1 (docs/inference.md). Arms that were
        added share a half of the error, so that all intervals hold together however many were added.
        """
        from lighttail.inference import BoundedRewards, confidence_sequences

        with self._lock:
            heard, first = self._heard(), self._began_with
        return confidence_sequences(heard, BoundedRewards() if rewards is None else rewards, level, first)

    def forecast(
        self,
        *,
        loss: float,
        horizon: int | None = None,
        problem: Bandit | None = None,
        rewards: Evidence | None = None,
        **settings: Any,
    ) -> Forecast:
        """The law of the loss at the end of the experiment, from its present state (docs/forecasts.md).

        loss: the loss whose chance is asked for. horizon: the pulls at the end; by default the horizon of the
        experiment. problem: the means and the noise if they are known; otherwise the means are drawn from
        what the rewards say. rewards: as in `intervals`. settings: `paths`, `seed`, `threads`, `delay`, and
        `between`, two numbers between which all means are believed to lie.
        """
        from lighttail.forecasting import forecast_from
        from lighttail.inference import BoundedRewards

        end = self.horizon if horizon is None else horizon
        if end is None:
            raise refuse("horizon", None, "given, because the experiment was made without one")
        settings |= {"horizon": end, "loss": loss, "problem": problem, "first": self._began_with}
        known = BoundedRewards() if rewards is None else rewards
        return forecast_from(self.beginning(), self.arms, known, **settings)

    def summary(self, loss: float | None = None, rewards: Evidence | None = None, **more: Any) -> str:
        """The experiment as a table: pulls, rewards and the limits of the mean of each arm, and, if a loss is
        given, the sentence of `forecast`, whose arguments are taken."""
        from lighttail.online.overview import summary_text

        ahead = None if loss is None else self.forecast(loss=loss, rewards=rewards, **more)
        return summary_text(self, rewards, ahead)

    def beginning(self) -> Beginning:
        """The state of the experiment, for `simulate(..., start=)`."""
        with self._lock:
            if self._standing.retired:
                allowed = "an experiment whose arms are all in play"
                raise refuse("start", self.retired, allowed, found="has retired arms")
            stands, gap = self._standing, self._first - 1 - self._pulls_before  # ids without a pull
            counts, note = stands.arrays()
            pulls = [(*self._pull_of(id), max(1, id - gap)) for id in self._open_ids()]
            memos = np.array([memo for _, memo, _ in pulls]).reshape(len(pulls), stands.rule.memo)
            pairs = np.array([(arm, round) for arm, _, round in pulls], dtype=np.int64).reshape(-1, 2)
            return Beginning(self.policy, or_nan(self.horizon), self._pulled(), counts, note, pairs, memos)

    def _more(self) -> dict[str, Any]:
        noted, joined = super()._more(), len(self.arms) - self._began_with
        if not noted and not self._standing.retired and not joined:
            return {}
        more = {ABOUT: {}, **noted, RETIRED: self._standing.retired}
        return more | ({JOINED: joined} if joined else {})

    @classmethod
    def _further(cls, state: dict[str, Any]) -> tuple[str, ...]:
        more = super()._further(state)
        added = (JOINED,) if JOINED in state else ()
        return (*more, RETIRED, *added) if ABOUT in more else more

    def _restore_retired(self, value: Any) -> None:
        """Take out arms, by their places, which grow."""
        last = len(self.arms) - 1
        places = [whole(RETIRED, place, 0, most=last) for place in listed(RETIRED, value)]
        if any(later <= sooner for sooner, later in pairwise(places)) or len(places) > last - 1:
            raise refuse(RETIRED, places, "places that grow, of all arms but two at most")
        if places:
            self._standing.check_arms_may_change()
        self._standing.retire(places)

    @classmethod
    def _begun(cls, policy: Any, state: dict[str, Any], rng: np.random.Generator) -> Experiment:
        return cls(policy, listed("arms", state["arms"]), state["horizon"], rng)

    def _read_pulls(self, where: str, columns: dict[str, Any], count: int | None) -> tuple[Any, Any]:
        field, last = f"{where}.arm", len(self.arms) - 1
        arms = [whole(field, arm, 0, most=last) for arm in listed(field, columns["arm"], count)]
        field = f"{where}.memo"
        memos = listed(field, columns["memo"], len(arms))
        return arms, [self._standing.memo_of(field, memo) for memo in memos]

    def _restore_rule(self, state: dict[str, Any]) -> None:
        stands = self._standing
        self._restore_retired(state.get(RETIRED, []))
        if JOINED in state:
            stands.check_arms_may_change()
            self._began_with -= whole(JOINED, state[JOINED], 1, most=len(self.arms) - 2)
        if self._first > 1:
            opened = [self._pull_of(id) for id in self._open_ids()]
            stands.restore_sums(
                state["rule"], [Pull(arm, None, memo) for arm, memo in opened], self._pulled()
            )
        else:
            lists = (self._arm_of, self._reward_of, self._memo_of)
            pulls = [Pull(*pull) for pull in zip(*lists, strict=True)]
            stands.restore(state["rule"], pulls, taken=self._taken > 0)
