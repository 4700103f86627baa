"""A live linear experiment in plain NumPy. Tests compare the kernels with this experiment."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, overload

import numpy as np

from lighttail.checks import refuse, whole
from lighttail.linear.actions import LONGEST, check_rows
from lighttail.linear.convex import MOST_DIM, ConvexSet
from lighttail.linear.policies import LinearPolicy
from lighttail.online.base import (
    MOST_NAMES,
    Label,
    LiveExperiment,
    check_name,
    known_horizon,
    or_nan,
    row_names,
)
from lighttail.online.linear_standing import LinearStanding
from lighttail.online.state import listed, row_of
from lighttail.records import Floats
from lighttail.system.memory import free_memory, in_bytes

MATRICES = 6  # matrices of dim x dim numbers that a round keeps in memory at once
MOST_STARTS = 100_000  # random starts per search over a ball or a box


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
    _offered = "dim"
    _columns = ("action", "label", "reward")
    _names = ("label", "action")
    policy: LinearPolicy
    _standing: LinearStanding

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
        self._standing = LinearStanding(policy, or_nan(self.horizon), self.dim)

    @property
    def estimate(self) -> Floats:
        """theta-hat, computed from the rewards received so far."""
        with self._lock:
            return self._standing.estimate

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
        if count is not None or about is not None:
            return self._ask_more(lambda: self.ask(actions, labels), count, about)
        if isinstance(actions, ConvexSet):
            self._check_set(actions, labels)
            rows, names = None, None
        else:
            rows = self._check(actions)
            names = row_names(labels, len(rows))
        with self._lock:
            self._warn_if_over()
            stands, t = self._standing, self._pulled() + 1.0
            if rows is None or names is None:
                return self._trial(self._record(None, stands.choose_in(self._rng, t, actions).tolist()))
            place = stands.choose(self._rng, t, rows)
            return self._trial(self._record(names[place], rows[place].tolist()))

    def __repr__(self) -> str:
        with self._lock:
            counts = f"{self._pulled()} trials, {len(self._open_ids())} open"
        return f"<LinearExperiment: {self.policy}, dim {self.dim}, {counts}>"

    def _check(self, actions: Any) -> Floats:
        allowed = f"rows of {self.dim} numbers"
        try:
            given = np.asarray(actions)
        except (TypeError, ValueError):
            raise refuse("actions", actions, allowed) from None
        if given.size == 0:
            raise refuse("actions", actions, f"at least one row of {self.dim} numbers")
        numbers = given.dtype.kind in "biuf"
        if given.dtype.kind == "O":  # fractions, or whole numbers of more than 64 bits
            numbers = all(isinstance(entry, Real) for entry in given.flat)
        if not numbers:
            raise refuse("actions", actions, allowed)
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
            self._standing.take(row[0])
            return self._trial(self._record(name, row[0].tolist()))

    def _trial(self, id: int) -> LinearTrial:
        label, action = self._pull_of(id)
        return LinearTrial(id, label, tuple(action))

    @classmethod
    def _begun(cls, policy: Any, state: dict[str, Any], rng: np.random.Generator) -> LinearExperiment:
        experiment = cls(policy, state["dim"], state["horizon"], rng)
        experiment._standing.restore_plain(state["rule"])
        return experiment

    def _read_pulls(self, where: str, columns: dict[str, Any], count: int | None) -> tuple[Any, Any]:
        field = f"{where}.action"
        actions = [row_of(field, row, self.dim, LONGEST) for row in listed(field, columns["action"], count)]
        field = f"{where}.label"
        labels = listed(field, columns["label"], len(actions))
        return [name if name is None else check_name(field, name) for name in labels], actions

    def _restore_rule(self, state: dict[str, Any]) -> None:
        """As in `LiveExperiment`. If the told trials are not known, only the form can be checked."""
        if self._first == 1:
            self._standing.check_sums(self._memo_of, self._reward_of)
        self._standing.check_form()
