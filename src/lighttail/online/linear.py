"""A live linear experiment in plain NumPy, which solves the linear system at every ask. Tests compare the
kernels with this experiment.

An open trial, whose reward has not been told, counts in the V from which widths and draws are computed, so
that a batch spreads over the actions. theta-hat is computed from the received rewards alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from lighttail.checks import refuse, whole
from lighttail.linear.actions import LONGEST, check_rows
from lighttail.linear.convex import MOST_DIM, ConvexSet
from lighttail.linear.policies import TIE, LinearPolicy, root_of, solved
from lighttail.online.base import (
    HISTORY,
    MOST_AT_ONCE,
    MOST_NAMES,
    Label,
    LiveExperiment,
    check_name,
    known_horizon,
    or_nan,
    row_names,
)
from lighttail.online.state import checked_about, checked_reward, fields_of, listed, row_of, square_of
from lighttail.policies.policy import ROUNDING
from lighttail.random.streams import uniform
from lighttail.records import Floats
from lighttail.system.memory import free_memory, in_bytes

MATRICES = 6  # matrices of dim x dim numbers that a round keeps in memory at once
MOST_STARTS = 100_000  # random starts per search over a ball or a box
Chosen = TypeVar("Chosen")
TINY = 1e-300  # far above the error of products that are too small for a float


def checked_dim(dim: Any) -> int:
    """The dimension as an int. Raises BadInput, before any work, if its matrices do not fit into memory."""
    checked = whole("dim", dim, 1, most=MOST_DIM)
    needed, free = 8.0 * MATRICES * checked**2, free_memory()
    if needed > free:
        sizes = f"{in_bytes(needed)} of memory are needed and {in_bytes(free)} are free"
        raise refuse("dim", checked, "smaller", more=f": {sizes}")
    return checked


class LinearTrial(NamedTuple):
    """One pull: the id with which its reward is told, the label of the action, and the action itself.

    If no labels were given, the label is the action's place in the list. It is None for a ball or a box.
    """

    id: int
    arm: Label | None
    action: tuple[float, ...]


class LinearExperiment(LiveExperiment):
    """A policy in a live experiment whose actions are vectors. The actions may change at every call.

    policy: `LinearUCB` or `LinearThompson`. dim: the number of entries of every action.
    horizon: the number of pulls; no bonus of lighttail needs it. After the horizon the policy continues, with
        one warning.
    seed: the seed of the tie breaks and of the policy's draws, or a NumPy generator.

    Rewards may come late, in any order, or never. If a reward is told again, it is ignored if it is equal,
    and otherwise it is refused. Several trials may be open at once. An open trial narrows the radius of its
    action and of similar actions but does not change theta-hat. Threads may share an experiment.

    >>> import lighttail as lt
    >>> experiment = lt.LinearExperiment(lt.LinearUCB(lt.LinearLightTailed(kappa=0.2)), dim=2, seed=1)
    >>> trial = experiment.ask([[1.0, 0.0], [0.6, 0.8]], labels=["A", "B"])
    >>> trial
    LinearTrial(id=1, arm='B', action=(0.6, 0.8))
    >>> experiment.tell(trial.id, reward=1.0)
    >>> [round(float(x), 4) for x in experiment.estimate]  # (0.6, 0.8) / (1 + 1)
    [0.3, 0.4]
    """

    kind = "linear experiment"
    version = 1
    parts = ("dim", "trials", "rule")
    policy: LinearPolicy

    def __init__(
        self,
        policy: LinearPolicy,
        dim: int,
        horizon: int | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(policy, LinearPolicy):
            raise refuse("policy", policy, "a linear policy such as LinearUCB(LinearLightTailed(kappa=0.2))")
        self.dim = checked_dim(dim)
        super().__init__(policy, known_horizon(policy, horizon, 1, "", "give horizon="), seed)
        policy.check(or_nan(self.horizon), self.dim)
        self._params = policy.params(or_nan(self.horizon), self.dim)
        self._asked = policy.ridge * np.eye(self.dim)  # V of all trials, including open ones
        self._received = self._asked.copy()  # V of the trials whose reward is known
        self._sums = np.zeros(self.dim)  # the sum of reward * action
        # How many rewards were replaced, and the sum of the sizes of their products.
        self._replaced = [0.0, 0.0]
        self._action_of: list[list[float]] = []
        self._label_of: list[Label | None] = []

    @property
    def estimate(self) -> Floats:
        """theta-hat, computed from the rewards received so far."""
        with self._lock:
            return solved(self._received, self._sums, self.policy.ridge)

    @property
    def open_trials(self) -> list[LinearTrial]:
        """The trials whose reward has not been told."""
        with self._lock:
            return [self._trial(id) for id in self._open_ids()]

    @overload
    def ask(self, actions: Any, labels: Any = None, *, about: Any = None) -> LinearTrial: ...

    @overload
    def ask(
        self, actions: Any, labels: Any = None, *, count: int, about: Any = None
    ) -> list[LinearTrial]: ...

    def ask(
        self, actions: Any, labels: Any = None, count: int | None = None, about: Any = None
    ) -> LinearTrial | list[LinearTrial]:
        """The next pull: one of the rows of `actions` (A x dim), or a point of a `BallSet` or `BoxSet`.

        labels: different names of the rows (text or whole numbers); by default their places 0, 1, ...
        count: if given, the result is a list of the next pulls, as if `ask` had been called this often.
        about: what to note about the trial while it is open, as in `Experiment.ask`.
        """
        if count is not None:
            times = whole("count", count, 1, most=MOST_AT_ONCE)
            with self._lock:
                return [self.ask(actions, labels, about=about) for _ in range(times)]
        if about is not None:
            noted = checked_about(about)
            with self._lock:
                trial = self.ask(actions, labels)
                self._note_about(trial.id, noted)
                return trial
        if isinstance(actions, ConvexSet):
            self._check_set(actions, labels)
            rows, names = None, None
        else:
            rows = self._check(actions)
            names = row_names(labels, len(rows))
        with self._lock:
            self._warn_if_over()
            if rows is None or names is None:
                return self._guarded(lambda: self._record(self._highest(actions), None), actions)
            chosen = self._place_of(rows)
            return self._record(rows[chosen], names[chosen])

    def _place_of(self, rows: Floats) -> int:
        """The place of the row that the policy chooses."""
        return self._guarded(lambda: self._choose(rows), rows[:3].tolist())

    def _guarded(self, choose: Callable[[], Chosen], given: Any) -> Chosen:
        """What `choose` returns. Raises BadInput, and draws nothing, if a number on the way is not finite."""
        before = self._rng.bit_generator.state
        try:
            with np.errstate(all="ignore"):
                return choose()
        except (ArithmeticError, np.linalg.LinAlgError):
            self._rng.bit_generator.state = before
            fit = "such that every estimate and radius is a finite number"
            raise refuse("actions", given, fit) from None

    def __repr__(self) -> str:
        with self._lock:
            trials, waiting = self._pulls_before + len(self._action_of), len(self._open_ids())
        return f"<LinearExperiment: {self.policy}, dim {self.dim}, {trials} trials, {waiting} open>"

    def _check(self, actions: Any) -> Floats:
        try:
            given = np.asarray(actions)
        except (TypeError, ValueError):
            raise refuse("actions", actions, f"rows of {self.dim} numbers") from None
        if given.size == 0:
            raise refuse("actions", actions, f"at least one row of {self.dim} numbers")
        numbers = given.dtype.kind in "biuf"
        if given.dtype.kind == "O":  # fractions, or whole numbers of more than 64 bits
            numbers = all(isinstance(entry, Real) for entry in given.flat)
        if not numbers:
            raise refuse("actions", actions, f"rows of {self.dim} numbers")
        if given.ndim != 2 or given.shape[1] != self.dim:
            raise refuse("actions", given.shape, f"of the shape (A, {self.dim}), one row per action")
        if len(given) > MOST_NAMES:
            raise refuse("the number of actions", len(given), f"at most {MOST_NAMES}")
        try:
            rows = np.array(given, dtype=np.float64)
        except OverflowError:
            raise refuse("actions", actions, "rows of numbers of at most 1e50") from None
        check_rows(rows)
        return rows

    def _check_set(self, actions: ConvexSet, labels: Any) -> None:
        if labels is not None:
            raise refuse("labels", labels, "left out with a ball or a box, whose actions have no names")
        if actions.dim != self.dim:
            raise refuse("actions", actions, f"of dimension {self.dim}, as before")
        if actions.starts > MOST_STARTS:
            raise refuse("starts", actions.starts, f"at most {MOST_STARTS}")

    def _choose(self, rows: Floats) -> int:
        """The row with the highest index, or the best row for a draw of theta. Rows whose values differ only
        by rounding are tied, and ties are broken at random."""
        if self.policy.draws:
            index = rows @ self._draw()
            terms = float(np.abs(index.max()))
        else:
            estimate = rows @ self.estimate
            width = np.sum(np.linalg.solve(root_of(self._asked, self.policy.ridge).T, rows.T) ** 2, axis=0)
            radius = self._radius()
            index = estimate + np.array([radius(z) for z in width.tolist()])
            leader = int(np.argmax(index))
            terms = abs(float(estimate[leader])) + abs(float(index[leader] - estimate[leader]))
        if not np.all(np.isfinite(index)):
            raise FloatingPointError("an index is not finite")
        tied = np.flatnonzero(index >= index.max() - TIE * terms)
        return int(tied[0] if tied.size == 1 else tied[int(uniform(self._rng) * tied.size)])

    def _highest(self, actions: ConvexSet) -> Floats:
        if self.policy.draws:
            return actions.furthest(self._draw()[None])[0]  # type: ignore[no-any-return]
        half = np.linalg.inv(root_of(self._asked, self.policy.ridge))
        return actions.highest(self.estimate, half @ half.T, self._radius(), self._rng)[0]

    def _radius(self) -> Any:
        """The radius of this round as a function of the width."""
        policy: Any = self.policy
        bonus, (ridge, *params) = policy.bonus, self._params
        pivots = np.diag(root_of(self._asked, ridge))
        growth = 2.0 * float(np.sum(np.log(pivots))) - self.dim * math.log(ridge)
        time = bonus.clock(float(self._pulls_before + len(self._action_of) + 1), growth, ridge, *params)
        return lambda z: bonus.radius(z, time, *params)

    def _draw(self) -> Floats:
        """theta-hat + scale * R^-1 xi, with R' R = V and a standard normal vector xi."""
        ridge, scale = self._params
        shocks = self._rng.standard_normal(self.dim)
        return self.estimate + scale * np.linalg.solve(root_of(self._asked, ridge), shocks)

    def _record(self, action: Floats, label: Label | None) -> LinearTrial:
        if not np.all(np.abs(action) <= LONGEST):  # the ball or the box may be huge
            raise FloatingPointError("an action is too long")
        self._asked += np.outer(action, action)
        self._action_of.append(action.tolist())
        self._label_of.append(label)
        self._reward_of.append(None)
        id = self._first + len(self._action_of) - 1
        return self._trial(id)

    def take(self, action: Any, label: Label | None = None) -> LinearTrial:
        """Record a pull of this action that the policy did not choose. The pull and its reward count like any
        other; the policy is not asked and draws no random numbers."""
        row = self._check([action] if np.ndim(action) == 1 else action)
        if len(row) != 1:
            raise refuse("action", action, f"one list of {self.dim} numbers")
        name = None if label is None else check_name("label", label)
        with self._lock:
            self._warn_if_over()
            self._taken += 1
            return self._record(row[0], name)

    def _trial(self, id: int) -> LinearTrial:
        label, action = self._kept(id - self._first)
        return LinearTrial(id, label, tuple(action))

    def _kept(self, place: int) -> tuple[Label | None, list[float]]:
        """The label and the action of a trial."""
        if place >= 0:
            return self._label_of[place], self._action_of[place]
        return self._older[place + self._first]  # type: ignore[no-any-return]

    def _check_sums_with(self, reward: float, v: Floats, sums: Floats) -> None:
        """Raise BadInput if theta-hat would not be finite."""
        with np.errstate(all="ignore"):
            if np.all(np.abs(sums) / self.policy.ridge <= 1e250):  # theta-hat is smaller: V >= ridge * I
                return
            if not np.all(np.isfinite(solved(v, sums, self.policy.ridge))):
                raise refuse("reward", reward, "small enough for theta-hat to be finite")

    def _learn(self, place: int, reward: float) -> None:
        self._learn_action(self._kept(place)[1], reward)

    def _learn_action(self, entries: Sequence[float], reward: float) -> None:
        action = np.array(entries)
        received, sums = self._received + np.outer(action, action), self._sums + reward * action
        self._check_sums_with(reward, received, sums)
        self._received, self._sums = received, sums

    def _replace(self, place: int, old: float, reward: float) -> None:
        self._replace_action(self._action_of[place], old, reward)

    def _replace_action(self, entries: Sequence[float], old: float, reward: float) -> None:
        """Replace a reward: theta-hat is V^-1 of a sum, in which a term is replaced, up to rounding."""
        action = np.array(entries)
        sums = self._sums + (reward - old) * action
        self._check_sums_with(reward, self._received, sums)
        self._sums = sums
        self._replaced[0] += 1.0
        self._replaced[1] += (abs(old) + abs(reward)) * float(np.max(np.abs(action)))

    def _state(self, told: bool) -> dict[str, Any]:
        rule = {"asked": self._asked, "received": self._received, "sums": self._sums}
        lists: tuple[Any, Any, Any] = ([], [], [])
        if told:
            lists = (self._action_of, self._label_of, self._reward_of)
        return {
            "dim": self.dim,
            "trials": dict(zip(("action", "label", "reward"), lists, strict=True)),
            "rule": {name: value.tolist() for name, value in rule.items()},
        }

    def _amended(self) -> list[float]:
        return self._replaced

    def _columns(self, kept: list[tuple[Any, Any]]) -> dict[str, list[Any]]:
        return {"label": [label for label, _ in kept], "action": [action for _, action in kept]}

    @classmethod
    def _restored(cls, policy: Any, state: dict[str, Any], rng: np.random.Generator) -> LinearExperiment:
        dim = checked_dim(state["dim"])
        rule = fields_of("rule", state["rule"], ("asked", "received", "sums"))
        asked, received = (square_of(f"rule.{name}", rule[name], dim) for name in ("asked", "received"))
        sums = row_of("rule.sums", rule["sums"], dim)
        experiment = cls(policy, dim, state["horizon"], rng)
        if HISTORY in state:
            experiment._restore_history(state[HISTORY])
        experiment._restore_trials(state["trials"])
        experiment._asked, experiment._received, experiment._sums = map(np.array, (asked, received, sums))
        experiment._check_sums()
        return experiment

    def _restore_trials(self, trials: Any) -> None:
        fields_of("trials", trials, ("action", "label", "reward"))
        actions = listed("trials.action", trials["action"])
        labels = listed("trials.label", trials["label"], len(actions))
        rewards = listed("trials.reward", trials["reward"], len(actions))
        self._action_of = [row_of("trials.action", action, self.dim, LONGEST) for action in actions]
        self._label_of = [name if name is None else check_name("trials.label", name) for name in labels]
        self._reward_of = [r if r is None else checked_reward("trials.reward", r) for r in rewards]
        self._waiting = list(self._older)

    def _restore_history(self, history: Any) -> None:
        replaced, opened = self._restore_counts(history, ("id", "label", "action"))
        self._replaced = row_of("history.replaced", replaced, 2)
        if min(self._replaced) < 0.0:
            raise refuse("history.replaced", self._replaced, "numbers of at least 0")
        labels = [
            name if name is None else check_name("history.open.label", name)
            for name in listed("history.open.label", opened["label"], len(opened["id"]))
        ]
        rows = listed("history.open.action", opened["action"], len(opened["id"]))
        actions = [row_of("history.open.action", row, self.dim, LONGEST) for row in rows]
        self._older = dict(zip(opened["id"], zip(labels, actions, strict=True), strict=True))

    def _check_sums(self) -> None:
        """Raise BadInput if the sums are not the sums over the trials, apart from the rounding errors of
        additions in any order. If the told trials are not known, only the form can be checked."""
        if self._first > 1:
            self._check_form()
            return
        actions = np.array(self._action_of).reshape(len(self._action_of), self.dim)
        known = np.array([reward is not None for reward in self._reward_of], dtype=bool)
        rewards = np.array([reward for reward in self._reward_of if reward is not None])
        start = self.policy.ridge * np.eye(self.dim)
        times, came = self._replaced
        heard, slack = actions[known], 4.0 * ROUNDING * (len(actions) + 2 + times)
        for field, have, terms, first in (
            ("rule.asked", self._asked, (actions, actions), start),
            ("rule.received", self._received, (heard, heard), start),
            ("rule.sums", self._sums, (heard, rewards), np.zeros(self.dim)),
        ):
            left, right = terms
            size = np.abs(left).T @ np.abs(right) + first + (came if field == "rule.sums" else 0.0)
            if not np.all(np.abs(have - (left.T @ right + first)) <= slack * size + TINY):
                raise refuse(field, have.tolist(), "their sum").within("its sums do not fit its trials")
        self._check_form()

    def _check_form(self) -> None:
        """Raise BadInput if the matrices are not symmetric or theta-hat is not finite."""
        if not (
            np.array_equal(self._asked, self._asked.T) and np.array_equal(self._received, self._received.T)
        ):
            raise refuse("rule.asked and rule.received", "other matrices", "symmetric")
        if not np.all(np.isfinite(self.estimate)):
            raise refuse("rule.sums", self._sums.tolist(), "small enough for theta-hat to be finite")
