"""A live linear experiment in plain NumPy. It solves the linear system at every ask, and tests compare the
kernels with it.

An open trial, whose reward has not been told, counts in the V from which widths and draws are computed, so
that a batch spreads over the actions. theta-hat is computed from the received rewards alone.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.checks import number, refuse, whole
from lighttail.linear.actions import LONGEST, check_rows
from lighttail.linear.convex import ConvexSet
from lighttail.linear.policies import TIE, LinearPolicy
from lighttail.online.state import checked_reward, fields_of, listed
from lighttail.online.trials import (
    MOST_NAMES,
    Label,
    LiveExperiment,
    check_name,
    check_names,
    known_horizon,
    or_nan,
)
from lighttail.policies.policy import ROUNDING
from lighttail.random.streams import uniform
from lighttail.system.memory import free_memory, in_bytes

Floats = npt.NDArray[Any]
MOST_DIM = 10_000  # numbers per action
MATRICES = 6  # matrices of dim x dim numbers that a round keeps in memory at once
MOST_STARTS = 100_000  # random starts per search over a ball or a box
TINY = 1e-300  # far above the error of products that are too small for a float


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
        self.dim = _checked_dim(dim)
        super().__init__(policy, known_horizon(policy, horizon, 1, "", "give horizon="), seed)
        policy.check(or_nan(self.horizon), self.dim)
        self._params = policy.params(or_nan(self.horizon), self.dim)
        self._asked = policy.ridge * np.eye(self.dim)  # V of all trials, including open ones
        self._received = self._asked.copy()  # V of the trials whose reward is known
        self._sums = np.zeros(self.dim)  # the sum of reward * action
        self._action_of: list[list[float]] = []
        self._label_of: list[Label | None] = []

    @property
    def estimate(self) -> Floats:
        """theta-hat, computed from the rewards received so far."""
        with self._lock:
            return _solved(self._received, self._sums, self.policy.ridge)

    @property
    def open_trials(self) -> list[LinearTrial]:
        """The trials whose reward has not been told."""
        with self._lock:
            return [self._trial(place) for place in self._open_places]

    def ask(self, actions: Any, labels: Any = None) -> LinearTrial:
        """The next pull: one of the rows of `actions` (A x dim), or a point of a `BallSet` or `BoxSet`.

        labels: different names of the rows (text or whole numbers); by default their places 0, 1, ...
        """
        if isinstance(actions, ConvexSet):
            self._check_set(actions, labels)
            rows, names = None, None
        else:
            rows = self._check(actions)
            names = _names(labels, len(rows))
        with self._lock:
            self._warn_if_over()
            before = self._rng.bit_generator.state
            try:
                with np.errstate(all="ignore"):
                    if rows is None or names is None:
                        return self._record(self._highest(actions), None)
                    chosen = self._choose(rows)
                    return self._record(rows[chosen], names[chosen])
            except (ArithmeticError, np.linalg.LinAlgError):
                self._rng.bit_generator.state = before
                given = actions if rows is None else rows[:3].tolist()
                raise refuse(
                    "actions", given, "such that every estimate and radius is a finite number"
                ) from None

    def __repr__(self) -> str:
        with self._lock:
            trials, waiting = len(self._action_of), len(self._open_places)
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
            width = np.sum(np.linalg.solve(_root(self._asked, self.policy.ridge).T, rows.T) ** 2, axis=0)
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
        half = np.linalg.inv(_root(self._asked, self.policy.ridge))
        return actions.highest(self.estimate, half @ half.T, self._radius(), self._rng)[0]

    def _radius(self) -> Any:
        """The radius of this round as a function of the width."""
        policy: Any = self.policy
        bonus, (ridge, *params) = policy.bonus, self._params
        growth = 2.0 * float(np.sum(np.log(np.diag(_root(self._asked, ridge))))) - self.dim * math.log(ridge)
        time = bonus.clock(float(len(self._action_of) + 1), growth, ridge, *params)
        return lambda z: bonus.radius(z, time, *params)

    def _draw(self) -> Floats:
        """theta-hat + scale * R^-1 xi, with R' R = V and a standard normal vector xi."""
        ridge, scale = self._params
        shocks = self._rng.standard_normal(self.dim)
        return self.estimate + scale * np.linalg.solve(_root(self._asked, ridge), shocks)  # type: ignore[no-any-return]

    def _record(self, action: Floats, label: Label | None) -> LinearTrial:
        if not np.all(np.abs(action) <= LONGEST):  # the ball or the box may be huge
            raise FloatingPointError("an action is too long")
        self._asked += np.outer(action, action)
        self._action_of.append(action.tolist())
        self._label_of.append(label)
        self._reward_of.append(None)
        return self._trial(len(self._action_of) - 1)

    def _trial(self, place: int) -> LinearTrial:
        return LinearTrial(place + 1, self._label_of[place], tuple(self._action_of[place]))

    def _check_reward(self, place: int, reward: float) -> None:
        action, ridge = np.array(self._action_of[place]), self.policy.ridge
        sums = self._sums + reward * action
        with np.errstate(all="ignore"):
            if np.all(np.abs(sums) / ridge <= 1e250):  # theta-hat is smaller, because V >= ridge * I
                return
            if not np.all(np.isfinite(_solved(self._received + np.outer(action, action), sums, ridge))):
                raise refuse("reward", reward, "small enough for theta-hat to be finite")

    def _learn(self, place: int, reward: float) -> None:
        self._check_reward(place, reward)
        action = np.array(self._action_of[place])
        self._received += np.outer(action, action)
        self._sums += reward * action

    def _state(self) -> dict[str, Any]:
        rule = {"asked": self._asked, "received": self._received, "sums": self._sums}
        return {
            "dim": self.dim,
            "trials": {"action": self._action_of, "label": self._label_of, "reward": self._reward_of},
            "rule": {name: value.tolist() for name, value in rule.items()},
        }

    @classmethod
    def _restored(cls, policy: Any, state: dict[str, Any], rng: np.random.Generator) -> LinearExperiment:
        dim = _checked_dim(state["dim"])
        rule = fields_of("rule", state["rule"], ("asked", "received", "sums"))
        asked, received = (_square(f"rule.{name}", rule[name], dim) for name in ("asked", "received"))
        sums = _row("rule.sums", rule["sums"], dim)
        experiment = cls(policy, dim, state["horizon"], rng)
        experiment._restore_trials(state["trials"])
        experiment._asked, experiment._received, experiment._sums = map(np.array, (asked, received, sums))
        experiment._check_sums()
        return experiment

    def _restore_trials(self, trials: Any) -> None:
        fields_of("trials", trials, ("action", "label", "reward"))
        actions = listed("trials.action", trials["action"])
        labels = listed("trials.label", trials["label"], len(actions))
        rewards = listed("trials.reward", trials["reward"], len(actions))
        self._action_of = [_row("trials.action", action, self.dim, LONGEST) for action in actions]
        self._label_of = [name if name is None else check_name("trials.label", name) for name in labels]
        self._reward_of = [r if r is None else checked_reward("trials.reward", r) for r in rewards]

    def _check_sums(self) -> None:
        """Raise BadInput if the sums are not the sums over the trials, apart from the rounding errors of
        adding them in any order."""
        actions = np.array(self._action_of).reshape(len(self._action_of), self.dim)
        known = np.array([reward is not None for reward in self._reward_of], dtype=bool)
        rewards = np.array([reward for reward in self._reward_of if reward is not None])
        start = self.policy.ridge * np.eye(self.dim)
        heard, slack = actions[known], 4.0 * ROUNDING * (len(actions) + 2)
        for field, have, terms, first in (
            ("rule.asked", self._asked, (actions, actions), start),
            ("rule.received", self._received, (heard, heard), start),
            ("rule.sums", self._sums, (heard, rewards), np.zeros(self.dim)),
        ):
            left, right = terms
            size = np.abs(left).T @ np.abs(right) + first
            if not np.all(np.abs(have - (left.T @ right + first)) <= slack * size + TINY):
                raise refuse(field, have.tolist(), "their sum").within("its sums do not fit its trials")
        if not (
            np.array_equal(self._asked, self._asked.T) and np.array_equal(self._received, self._received.T)
        ):
            raise refuse("rule.asked and rule.received", "other matrices", "symmetric")
        if not np.all(np.isfinite(self.estimate)):
            raise refuse("rule.sums", self._sums.tolist(), "small enough for theta-hat to be finite")


def _checked_dim(dim: Any) -> int:
    """The dimension as an int. Raises BadInput, before any work, if its matrices do not fit into memory."""
    checked = whole("dim", dim, 1, most=MOST_DIM)
    needed, free = 8.0 * MATRICES * checked**2, free_memory()
    if needed > free:
        sizes = f"{in_bytes(needed)} of memory are needed and {in_bytes(free)} are free"
        raise refuse("dim", checked, "smaller", more=f": {sizes}")
    return checked


def _names(labels: Any, count: int) -> list[Label]:
    """The names of the rows: the labels, or the places of the rows if there are no labels."""
    if labels is None:
        return list(range(count))
    allowed = f"a list of {count} names, one per action"
    names = check_names("labels", labels, 1, allowed)
    if len(names) != count:
        raise refuse("labels", names, allowed)
    return names


def _row(field: str, value: Any, dim: int, most: float = math.inf) -> list[float]:
    """`value` as a list of `dim` numbers of at most `most` in size."""
    row = [number(field, entry) for entry in listed(field, value, dim)]
    if any(abs(entry) > most for entry in row):
        raise refuse(field, row, f"a list of numbers of at most {most:g} in size")
    return row


def _square(field: str, value: Any, dim: int) -> list[list[float]]:
    return [_row(field, row, dim) for row in listed(field, value, dim)]


def _solved(v: Floats, sums: Floats, ridge: float) -> Floats:
    """V^-1 sums."""
    root = _root(v, ridge)
    with np.errstate(all="ignore"):  # the callers check whether the result is finite
        return np.linalg.solve(root, np.linalg.solve(root.T, sums))


def _root(v: Floats, ridge: float) -> Floats:
    """R, an upper triangular matrix with a positive diagonal and R' R = V, for a V of any condition.

    No eigenvalue of the exact V is below the ridge. If rounding has made V indefinite, its eigenvalues are
    raised to the ridge.
    """
    try:
        return np.linalg.cholesky(v).T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(v)
        root = np.linalg.qr(np.sqrt(np.maximum(values, ridge))[:, None] * vectors.T, mode="r")
        signs = np.where(np.diag(root) < 0.0, -1.0, 1.0)
        lost = np.diag(np.where(np.diag(root) == 0.0, math.sqrt(ridge), 0.0))  # no pivot is below the ridge
        return root * signs[:, None] + lost
