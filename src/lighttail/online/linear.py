"""A live linear experiment, in plain NumPy with a direct solve at every ask; the oracle of the kernels.

An open trial, whose reward has not been told, counts in the V that widths and draws are made from, so that
a batch spreads over the actions; theta-hat is made from the rewards received alone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lighttail.linear.actions import check_rows
from lighttail.linear.convex import ConvexSet
from lighttail.linear.policies import TIE, LinearPolicy, LinearThompson, LinearUCB
from lighttail.online.trials import Label, LiveExperiment, check_names, known_horizon, or_nan
from lighttail.streams import uniform
from lighttail.validation import BadInput, refuse, whole

Floats = npt.NDArray[Any]


class LinearTrial(NamedTuple):
    """One pull: its number, by which its reward is told, the label of the action, and the action itself.

    The label is the action's place in the list where no labels were given; None for a ball or a box.
    """

    id: int
    arm: Label | None
    action: tuple[float, ...]


class LinearExperiment(LiveExperiment):
    """A policy in a live experiment whose actions are vectors, new ones at every call if need be.

    policy: `LinearUCB` or `LinearThompson`. dim: the length of every action.
    horizon: how many pulls there will be; no bonus here needs it. Pulls beyond it are served, with one
        warning. seed: of the tie breaks and the policy's own draws; a NumPy generator will do as well.

    Rewards may come late, in any order, or never; a reward told twice is ignored if it is equal and refused
    if it is not. Several trials may be open at once. An open trial narrows the radius of its action and of
    those like it, but does not move theta-hat.

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
    policy: LinearPolicy

    def __init__(
        self,
        policy: LinearPolicy,
        dim: int,
        horizon: int | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(policy, (LinearUCB, LinearThompson)):
            raise refuse("policy", policy, "a linear policy such as LinearUCB(LinearLightTailed(kappa=0.2))")
        self.dim = whole("dim", dim, 1)
        super().__init__(policy, known_horizon(policy, horizon, 1, "", "give horizon="), seed)
        policy.check(or_nan(self.horizon), self.dim)
        self._params = policy.params(or_nan(self.horizon), self.dim)
        self._asked = policy.ridge * np.eye(self.dim)  # V with the open trials
        self._received = self._asked.copy()  # V of the rewards received
        self._sums = np.zeros(self.dim)  # sum of reward * action
        self._action_of: list[list[float]] = []
        self._label_of: list[Label | None] = []

    @property
    def estimate(self) -> Floats:
        """theta-hat, from the rewards received so far."""
        root = _root(self._received, self.policy.ridge)
        return np.linalg.solve(root, np.linalg.solve(root.T, self._sums))

    @property
    def open_trials(self) -> list[LinearTrial]:
        """Trials whose reward has not been told."""
        return [self._trial(place) for place in self._open_places]

    def ask(self, actions: Any, labels: Any = None) -> LinearTrial:
        """The next pull: one of the rows of `actions` (A x dim), or a point of a `BallSet` or `BoxSet`.

        labels: different names of the rows (text or whole numbers); their places 0, 1, ... unless given.
        """
        if isinstance(actions, ConvexSet):
            if labels is not None:
                raise refuse("labels", labels, "left out with a ball or a box, whose actions have no names")
            if actions.dim != self.dim:
                raise refuse("actions", actions, f"of dimension {self.dim}, as before")
            self._warn_if_over()
            return self._record(self._highest(actions), None)
        rows = self._check(actions)
        names: list[Label] = list(range(len(rows)))
        if labels is not None:
            names = check_names("labels", labels, 1, f"a list of {len(rows)} names, one an action")
            if len(names) != len(rows):
                raise refuse("labels", names, f"a list of {len(rows)} names, one an action")
        self._warn_if_over()
        chosen = self._choose(rows)
        return self._record(rows[chosen], names[chosen])

    def __repr__(self) -> str:
        trials, waiting = len(self._action_of), len(self._open_places)
        return f"<LinearExperiment: {self.policy}, dim {self.dim}, {trials} trials, {waiting} open>"

    def _check(self, actions: Any) -> Floats:
        try:
            rows = np.array(actions, dtype=np.float64)
        except (TypeError, ValueError):
            raise refuse("actions", actions, f"rows of {self.dim} numbers") from None
        if rows.size == 0:
            raise refuse("actions", actions, f"at least one row of {self.dim} numbers")
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise refuse("actions", rows.shape, f"of the shape (A, {self.dim}), one row an action")
        check_rows(rows)
        return rows

    def _choose(self, rows: Floats) -> int:
        """The row with the highest index, or the best of the draw; equal but for rounding: at random."""
        if isinstance(self.policy, LinearThompson):
            index = rows @ self._draw()
            terms = float(np.abs(index.max()))
        else:
            estimate = rows @ self.estimate
            width = np.sum(np.linalg.solve(_root(self._asked, self.policy.ridge).T, rows.T) ** 2, axis=0)
            radius = self._radius()
            index = estimate + np.array([radius(z) for z in width.tolist()])
            leader = int(np.argmax(index))
            terms = abs(float(estimate[leader])) + abs(float(index[leader] - estimate[leader]))
        tied = np.flatnonzero(index >= index.max() - TIE * terms)
        return int(tied[0] if tied.size == 1 else tied[int(uniform(self._rng) * tied.size)])

    def _highest(self, actions: ConvexSet) -> Floats:
        if isinstance(self.policy, LinearThompson):
            return actions.furthest(self._draw()[None])[0]  # type: ignore[no-any-return]
        half = np.linalg.inv(_root(self._asked, self.policy.ridge))
        return actions.highest(self.estimate, half @ half.T, self._radius(), self._rng)[0]

    def _radius(self) -> Any:
        """The radius of this round as a function of the width."""
        assert isinstance(self.policy, LinearUCB)
        bonus, (ridge, *params) = self.policy.bonus, self._params
        growth = 2.0 * float(np.sum(np.log(np.diag(_root(self._asked, ridge))))) - self.dim * math.log(ridge)
        time = bonus.clock(float(len(self._action_of) + 1), growth, ridge, *params)
        return lambda z: bonus.radius(z, time, *params)

    def _draw(self) -> Floats:
        """theta-hat + scale * R^-1 xi, R' R = V."""
        ridge, scale = self._params
        shocks = self._rng.standard_normal(self.dim)
        return self.estimate + scale * np.linalg.solve(_root(self._asked, ridge), shocks)  # type: ignore[no-any-return]

    def _record(self, action: Floats, label: Label | None) -> LinearTrial:
        self._asked += np.outer(action, action)
        self._action_of.append(action.tolist())
        self._label_of.append(label)
        self._reward_of.append(None)
        return self._trial(len(self._action_of) - 1)

    def _trial(self, place: int) -> LinearTrial:
        return LinearTrial(place + 1, self._label_of[place], tuple(self._action_of[place]))

    def _check_sum(self, place: int, reward: float) -> bool:
        with np.errstate(over="ignore"):
            return bool(np.all(np.isfinite(self._sums + reward * np.array(self._action_of[place]))))

    def _learn(self, place: int, reward: float) -> None:
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
        experiment = cls(policy, state["dim"], state["horizon"], rng)
        trials, rule = state["trials"], state["rule"]
        experiment._action_of = trials["action"]
        experiment._label_of = trials["label"]
        experiment._reward_of = trials["reward"]
        try:
            experiment._asked = np.array(rule["asked"], dtype=np.float64)
            experiment._received = np.array(rule["received"], dtype=np.float64)
            experiment._sums = np.array(rule["sums"], dtype=np.float64)
            fits = experiment._fits()
        except ValueError:
            fits = False
        if not fits:
            raise BadInput("the text is not a whole experiment: its sums do not fit its trials")
        return experiment

    def _fits(self) -> bool:
        """Whether the sums are those of the trials, but for rounding."""
        d, count = self.dim, len(self._action_of)
        actions = np.array(self._action_of, dtype=np.float64).reshape(count, d)
        rewards = np.array([math.nan if r is None else r for r in self._reward_of], dtype=np.float64)
        known = np.isfinite(rewards)
        start = self.policy.ridge * np.eye(d)
        sums = (start + actions.T @ actions, start + actions[known].T @ actions[known])
        told = actions[known].T @ rewards[known]
        size = float(np.abs(actions[known]).T.sum() * np.abs(rewards[known]).sum()) + 1.0
        return (
            len(self._label_of) == len(self._reward_of) == count
            and all(
                have.shape == (d, d) and np.allclose(have, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
                for have, want in zip((self._asked, self._received), sums, strict=True)
            )
            and self._sums.shape == (d,)
            and np.allclose(self._sums, told, rtol=1e-9, atol=1e-9 * size)
        )


def _root(v: Floats, ridge: float) -> Floats:
    """R, upper triangular with a positive diagonal and R' R = V, for a V of any condition.

    Where rounding has made V indefinite its eigenvalues are lifted back to the ridge, below which none of
    them is.
    """
    try:
        return np.linalg.cholesky(v).T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(v)
        root = np.linalg.qr(np.sqrt(np.maximum(values, ridge))[:, None] * vectors.T, mode="r")
        return root * np.sign(np.diag(root))[:, None]  # type: ignore[no-any-return]
