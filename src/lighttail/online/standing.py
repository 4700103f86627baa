"""The state of a rule in a live experiment: its counts, sums and notes. The rule runs in plain Python.

The arrays are memory views: item access is faster than with NumPy's arrays and gives plain floats, and an
index out of range raises an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from lighttail.checks import EXACT, BadInput, number, refuse, whole
from lighttail.online.state import check_counts, check_sums, fields_of, listed, shortened
from lighttail.policies import Policy
from lighttail.policies.policy import Pull, State
from lighttail.rules import learn_nothing

PARTS = ("tried", "heard", "total", "note")
SETTINGS = ("policy", "horizon", "arms", "params", "retired", "_playing")
INFINITE = {"inf": math.inf, "-inf": -math.inf}  # JSON has no infinite numbers, so they are written as text


class Standing:
    """The state of a policy's rule. `lighttail.rules` explains the arrays."""

    def __init__(self, policy: Policy, horizon: float, arms: int) -> None:
        self.policy, self.horizon, self.arms = policy, horizon, arms
        self.retired: list[int] = []  # the arms that are never chosen again
        self._playing: Any = None  # the places of the other arms; None while all arms are in play
        self.rule = policy.rule()
        self.params = policy.params(horizon, arms)
        self._use(np.zeros((3, arms)), np.zeros((arms, max(1, self.rule.notes))), np.zeros((arms, 2)))

    def _use(self, counts: Any, notes: Any, replaced: Any) -> None:
        self._counts, self._notes = counts, notes
        # Per arm: how many rewards were replaced, and the sum of the sizes of old and new rewards.
        self.replaced = replaced
        views: list[Any] = [memoryview(row) for row in counts]
        self.tried, self.heard, self.total = views
        self.note: Any = memoryview(notes)
        self._choose, self._learn = self.rule.choose, self.rule.learn
        self._places = tuple(range(self.rule.notes))
        self._memo = self._places[self.rule.notes - self.rule.memo :]
        self.memo: tuple[float, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """The state for a copy or a pickle. The views and the rule's functions are made again from it."""
        return {name: self.__dict__[name] for name in (*SETTINGS, "_counts", "_notes", "replaced")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.rule = self.policy.rule()
        self._use(self._counts.copy(), self._notes.copy(), self.replaced.copy())

    def choose(self, rng: Any, t: float) -> int:
        """The arm of round t, which now counts as tried. `memo` becomes the memo of this pull."""
        tried = self.tried
        if self._playing is None:
            arm: int = self._choose(rng, t, tried, self.heard, self.total, self.note, self.params)
        else:
            arm = self._choose_in_play(rng, t)
        if not 0 <= arm < self.arms:
            field = f"the arm that choose of {type(self.policy).__name__} returns"
            raise refuse(field, arm, f"0 to {self.arms - 1}")
        tried[arm] += 1.0
        if self._memo:
            note = self.note
            self.memo = tuple([note[arm, place] for place in self._memo])
        return arm

    def _choose_in_play(self, rng: Any, t: float) -> int:
        """The arm of round t if some arms are retired: the rule sees the other arms alone."""
        places = self._playing
        counts, notes = self._counts[:, places], self._notes[places]
        tried, heard, total = (memoryview(row) for row in counts)
        arm = self._choose(rng, t, tried, heard, total, memoryview(notes), self.params)
        self._notes[places] = notes
        return int(places[arm])

    def check_arms_may_change(self) -> None:
        """Raise BadInput if no arm may join or leave while the policy plays."""
        if not self.policy.arms_may_change:
            fit = "a policy whose arms may change, such as UCB or Thompson sampling"
            why = "may have decided for good, or shared its chances, among the arms that there were"
            raise refuse("policy", self.policy, fit, found=f"{self.policy} {why}")

    def add_arm(self, begun: bool) -> None:
        """One more arm, which was never tried. begun: whether there was a pull.

        The parameters become those of the larger number of arms, and the kept indices are computed anew.
        """
        params = self.policy.params(self.horizon, self.arms + 1)
        counts, notes = np.pad(self._counts, ((0, 0), (0, 1))), np.pad(self._notes, ((0, 1), (0, 0)))
        replaced = np.pad(self.replaced, ((0, 1), (0, 0)))
        notes[-1, 0] = math.inf if begun and self.rule.notes else 0.0
        self.arms, self.params = self.arms + 1, params
        self._use(counts, notes, replaced)
        for arm in range(self.arms):
            if self.heard[arm] > 0.0:
                self._learn(arm, 0.0, self.tried, self.heard, self.total, self.note, self.params)
        self.retire(self.retired)

    def retire(self, places: Sequence[int]) -> None:
        """Never choose these arms again. Their rewards still count."""
        self.retired = sorted(places)
        left = [place for place in range(self.arms) if place not in set(places)]
        self._playing = np.array(left) if places else None

    def check_takes(self) -> None:
        """Raise BadInput if the policy can learn only from pulls that it chose."""
        if self._memo:
            fit = "a policy that learns from pulls that it did not choose"
            why = "needs the probability with which it chose the arm of every pull"
            raise refuse("policy", self.policy, fit, found=f"{self.policy} {why}")

    def take(self, rng: Any, t: float, arm: int) -> None:
        """Play round t with an arm that the rule did not choose: the rule is asked as usual and overruled."""
        if self._playing is None:
            self._choose(rng, t, self.tried, self.heard, self.total, self.note, self.params)
        else:
            self._choose_in_play(rng, t)
        self.tried[arm] += 1.0

    def check_amends(self) -> None:
        """Raise BadInput if the rule keeps more of a reward than sums; only sums can be corrected."""
        if not self.policy.amendable:
            fit = "a policy whose state is sums of rewards, which can be corrected"
            why = "may have decided for good because of the old reward"
            raise refuse("policy", self.policy, fit, found=f"{self.policy} {why}")

    def amend(self, arm: int, old: float, reward: float, memo: tuple[float, ...]) -> None:
        """Replace an old reward in the sum of the arm's rewards, which is then right up to rounding."""
        self.check_amends()
        self.replaced[arm] += (1.0, abs(old) + abs(reward))
        self.total[arm] += reward - old
        self._learn(arm, reward, self.tried, self.heard, self.total, self.note, self.params)

    def mark(self) -> tuple[Any, Any, Any]:
        """The state to which `back` returns if one of several rewards is refused."""
        return self._counts.copy(), self._notes.copy(), self.replaced.copy()

    def back(self, mark: tuple[Any, Any, Any]) -> None:
        """Return to a mark."""
        self._counts[:], self._notes[:], self.replaced[:] = mark

    def learn(self, arm: int, reward: float, memo: tuple[float, ...]) -> None:
        """Take in the reward of a pull, or raise BadInput if a note would not be finite."""
        heard, total = self.heard, self.total
        count, sum = heard[arm], total[arm]
        heard[arm], total[arm] = count + 1.0, sum + reward
        if self._learn is learn_nothing:
            return
        note, noted, width = self.note, self._notes.tobytes(), self._notes.shape[1]
        try:
            if memo:
                for place, value in zip(self._memo, memo, strict=True):
                    note[arm, place] = value
            self._learn(arm, reward, self.tried, heard, total, note, self.params)
            for place in self._places:
                if not isfinite(note[arm, place]) and isfinite(np.frombuffer(noted)[arm * width + place]):
                    fit = f"a number with which the notes of {type(self.policy).__name__} stay finite"
                    raise refuse("reward", reward, fit)
        except BaseException:  # a user's rule may raise anything; a refused reward must change nothing
            heard[arm], total[arm] = count, sum
            self._notes[:] = np.frombuffer(noted).reshape(self._notes.shape)
            raise

    def arrays(self) -> tuple[Any, Any]:
        """Copies for a simulation that continues from this state: the rows tried, heard, total and total, and
        the notes."""
        return self._counts[[0, 1, 2, 2]], self._notes[:, : self.rule.notes].copy()

    def memo_of(self, field: str, value: Any) -> tuple[float, ...]:
        """A memo from the text of a saved experiment."""
        return tuple(_row(field, value, self.rule.memo))

    def to_plain(self) -> dict[str, Any]:
        """Everything that changes while the rule plays, as plain lists and numbers."""
        counts = {name: list(map(int, getattr(self, name))) for name in ("tried", "heard")}
        rows = self._notes[:, : self.rule.notes].tolist()
        return {**counts, "total": list(self.total), "note": plain_rows(rows)}

    def restore_replaced(self, field: str, value: Any) -> None:
        """Continue with these replaced rewards, one pair per arm: how many, and the sum of their sizes."""
        rows = listed(field, value, self.arms)
        pairs = [[number(field, entry) for entry in listed(field, row, 2)] for row in rows]
        if any(min(pair) < 0.0 for pair in pairs):
            raise refuse(field, value, "a list of pairs of numbers of at least 0")
        self.replaced[:] = pairs

    def restore_sums(self, state: Any, waiting: list[Pull], pulls: int) -> None:
        """Continue from what `to_plain` returned if the told trials are not known.

        waiting: the open trials. pulls: the number of all pulls, which must be the number that the rule has.
        """
        fields_of("rule", state, PARTS)
        counts = listed("rule.tried", state["tried"], self.arms)
        tried = [whole("rule.tried", n, 0, most=EXACT) for n in counts]
        if sum(tried) != pulls:
            raise refuse("rule.tried", tried, f"counts whose sum is {pulls}, the number of pulls")
        opened = [0] * self.arms
        for pull in waiting:
            opened[pull.arm] += 1
        known = [n - some for n, some in zip(tried, opened, strict=True)]
        if min(known) < 0:
            raise refuse("rule.tried", tried, f"at least the open trials {shortened(opened)}")
        check_counts("rule.heard", state["heard"], known)
        self.restore_plain(state, waiting)

    def restore_plain(self, state: Any, pulls: Sequence[Pull] = (), whole: bool = False) -> None:
        """Continue from what `to_plain` returned, which is trusted apart from its form.

        pulls: those that are known. whole: whether these are all pulls, and the policy's choice.
        """
        fields_of("rule", state, PARTS)
        for row, name in enumerate(("tried", "heard", "total")):
            field = f"rule.{name}"
            self._counts[row] = [number(field, entry) for entry in listed(field, state[name], self.arms)]
        rows = listed("rule.note", state["note"], self.arms)
        notes = [_row("rule.note", row, self.rule.notes) for row in rows]
        self._notes[:, : self.rule.notes] = notes
        tried, heard, total = self._counts.tolist()
        whole = whole and not self.retired
        self.policy.check_notes(State(tried, heard, total, notes, self.params, list(pulls), whole))

    def restore(self, state: Any, pulls: list[Pull], taken: bool = False) -> None:
        """Continue from a state of `to_plain`. Raises BadInput if the pulls cannot have led to this state.

        taken: whether some of the pulls were not the policy's choice, so that more notes can be right.
        """
        fields_of("rule", state, PARTS)
        rewards: list[list[float]] = [[] for _ in range(self.arms)]
        tried = [0] * self.arms
        for pull in pulls:
            tried[pull.arm] += 1
            if pull.reward is not None:
                rewards[pull.arm].append(pull.reward)
        check_counts("rule.tried", state["tried"], tried)
        check_counts("rule.heard", state["heard"], [len(known) for known in rewards])
        check_sums("rule.total", state["total"], rewards, self.replaced.tolist())
        self.restore_plain(state, pulls, whole=not taken)


def plain_rows(rows: Sequence[Sequence[float]]) -> list[list[float | str]]:
    """Notes or memos with infinite numbers as text, for JSON."""
    return [[_plain(value) for value in row] for row in rows]


def _plain(value: float) -> float | str:
    if math.isnan(value):
        cannot = "an experiment cannot be saved while a note of its policy is nan"
        raise BadInput(cannot, field="note", value=value)
    return value if math.isfinite(value) else ("inf" if value > 0.0 else "-inf")


def _row(field: str, value: Any, length: int) -> list[float]:
    row = listed(field, value, length)
    return [INFINITE[one] if one in ("inf", "-inf") else number(field, one) for one in row]
