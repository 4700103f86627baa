"""The state of a linear policy in a live experiment: the matrices and the sum from which theta-hat and the
widths are computed. It solves the linear system at every pull.

An open trial, whose reward has not been told, counts in the V from which widths and draws are computed, so
that a batch spreads over the actions. theta-hat is computed from the received rewards alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lighttail.checks import refuse
from lighttail.linear.actions import LONGEST
from lighttail.linear.convex import ConvexSet
from lighttail.linear.policies import TIE, LinearPolicy, root_of, solved
from lighttail.online.state import fields_of, row_of, square_of
from lighttail.policies.policy import ROUNDING
from lighttail.random.streams import uniform
from lighttail.records import Floats

TINY = 1e-300  # far above the error of products that are too small for a float
Entries = Sequence[float]


class LinearStanding:
    """The state of a linear policy, with the methods of `Standing`. The memo of a trial is its action."""

    def __init__(self, policy: LinearPolicy, horizon: float, dim: int) -> None:
        self.policy, self.dim = policy, dim
        self.params = policy.params(horizon, dim)
        self.asked = policy.ridge * np.eye(dim)  # V of all trials, including open ones
        self.received = self.asked.copy()  # V of the trials whose reward is known
        self.sums = np.zeros(dim)  # the sum of reward * action
        # How many rewards were replaced, and the sum of the sizes of their products.
        self.replaced = np.zeros(2)

    @property
    def estimate(self) -> Floats:
        """theta-hat, computed from the rewards received so far."""
        return solved(self.received, self.sums, self.policy.ridge)

    def choose(self, rng: Any, t: float, rows: Floats) -> int:
        """The place of the action of round t, which now counts as asked."""
        with _finite(rng, rows[:3].tolist()):
            place = self._chosen(rng, t, rows)
        self.take(rows[place])
        return place

    def choose_in(self, rng: Any, t: float, actions: ConvexSet) -> Floats:
        """The action of round t in a ball or a box, which now counts as asked."""
        with _finite(rng, actions):
            if self.policy.draws:
                action: Floats = actions.furthest(self._draw(rng)[None])[0]
            else:
                half = np.linalg.inv(root_of(self.asked, self.policy.ridge))
                action = actions.highest(self.estimate, half @ half.T, self._radius(t), rng)[0]
            if not np.all(np.abs(action) <= LONGEST):  # the ball or the box may be huge
                raise FloatingPointError("an action is too long")
        self.take(action)
        return action

    def take(self, action: Floats) -> None:
        """Count an action as asked."""
        self.asked += np.outer(action, action)

    def _chosen(self, rng: Any, t: float, rows: Floats) -> int:
        """The row with the highest index, or the best row for a draw of theta. Rows whose values differ only
        by rounding are tied, and ties are broken at random."""
        if self.policy.draws:
            index = rows @ self._draw(rng)
            terms = float(np.abs(index.max()))
        else:
            estimate = rows @ self.estimate
            width = np.sum(np.linalg.solve(root_of(self.asked, self.policy.ridge).T, rows.T) ** 2, axis=0)
            radius = self._radius(t)
            index = estimate + np.array([radius(z) for z in width.tolist()])
            leader = int(np.argmax(index))
            terms = abs(float(estimate[leader])) + abs(float(index[leader] - estimate[leader]))
        if not np.all(np.isfinite(index)):
            raise FloatingPointError("an index is not finite")
        tied = np.flatnonzero(index >= index.max() - TIE * terms)
        return int(tied[0] if tied.size == 1 else tied[int(uniform(rng) * tied.size)])

    def _radius(self, t: float) -> Any:
        """The radius of round t as a function of the width."""
        policy: Any = self.policy
        bonus, (ridge, *params) = policy.bonus, self.params
        pivots = np.diag(root_of(self.asked, ridge))
        growth = 2.0 * float(np.sum(np.log(pivots))) - self.dim * math.log(ridge)
        time = bonus.clock(t, growth, ridge, *params)
        return lambda z: bonus.radius(z, time, *params)

    def _draw(self, rng: Any) -> Floats:
        """theta-hat + scale * R^-1 xi, with R' R = V and a standard normal vector xi."""
        ridge, scale = self.params
        shocks = rng.standard_normal(self.dim)
        return self.estimate + scale * np.linalg.solve(root_of(self.asked, ridge), shocks)

    def learn(self, label: Any, reward: float, entries: Entries) -> None:
        """Take in the reward of an action. Raises BadInput if theta-hat would not be finite."""
        action = np.array(entries)
        received, sums = self.received + np.outer(action, action), self.sums + reward * action
        self._check_sums_with(reward, received, sums)
        self.received, self.sums = received, sums

    def amend(self, label: Any, old: float, reward: float, entries: Entries) -> None:
        """Replace a reward: theta-hat is V^-1 of a sum, in which a term is replaced, up to rounding."""
        action = np.array(entries)
        sums = self.sums + (reward - old) * action
        self._check_sums_with(reward, self.received, sums)
        self.sums = sums
        self.replaced += (1.0, (abs(old) + abs(reward)) * float(np.max(np.abs(action))))

    def _check_sums_with(self, reward: float, v: Floats, sums: Floats) -> None:
        """Raise BadInput if theta-hat would not be finite."""
        with np.errstate(all="ignore"):
            if np.all(np.abs(sums) / self.policy.ridge <= 1e250):  # theta-hat is smaller: V >= ridge * I
                return
            if not np.all(np.isfinite(solved(v, sums, self.policy.ridge))):
                raise refuse("reward", reward, "small enough for theta-hat to be finite")

    def check_amends(self) -> None:
        """A reward can always be replaced, because the old reward can be taken from a sum."""

    check_takes = check_amends  # and every pull can be learned from

    def mark(self) -> Any:
        """As in `Standing`."""
        return self.received, self.sums, self.replaced.copy()

    def back(self, mark: Any) -> None:
        """As in `Standing`."""
        self.received, self.sums, self.replaced = mark

    def to_plain(self) -> dict[str, Any]:
        """Everything that changes while the policy plays, as plain lists and numbers."""
        return {name: getattr(self, name).tolist() for name in ("asked", "received", "sums")}

    def restore_plain(self, state: Any) -> None:
        """Continue from what `to_plain` returned, which is trusted apart from its form."""
        fields_of("rule", state, ("asked", "received", "sums"))
        self.asked = np.array(square_of("rule.asked", state["asked"], self.dim))
        self.received = np.array(square_of("rule.received", state["received"], self.dim))
        self.sums = np.array(row_of("rule.sums", state["sums"], self.dim))

    def restore_replaced(self, field: str, value: Any) -> None:
        """Continue with these replaced rewards: how many, and the sum of the sizes of their products."""
        counts = row_of(field, value, 2)
        if min(counts) < 0.0:
            raise refuse(field, counts, "numbers of at least 0")
        self.replaced = np.array(counts)

    def check_sums(self, entries: list[Entries], told: list[float | None]) -> None:
        """Raise BadInput if the sums are not the sums over these trials, apart from the rounding errors of
        additions in any order. told: the rewards; None while a trial is open."""
        actions = np.array(entries).reshape(len(entries), self.dim)
        known = np.array([reward is not None for reward in told], dtype=bool)
        rewards = np.array([reward for reward in told if reward is not None])
        start = self.policy.ridge * np.eye(self.dim)
        times, came = self.replaced
        heard, slack = actions[known], 4.0 * ROUNDING * (len(actions) + 2 + times)
        for field, have, terms, first in (
            ("rule.asked", self.asked, (actions, actions), start),
            ("rule.received", self.received, (heard, heard), start),
            ("rule.sums", self.sums, (heard, rewards), np.zeros(self.dim)),
        ):
            left, right = terms
            magnitude = np.abs(left).T @ np.abs(right) + first + (came if field == "rule.sums" else 0.0)
            if not np.all(np.abs(have - (left.T @ right + first)) <= slack * magnitude + TINY):
                raise refuse(field, have.tolist(), "their sum").within("its sums do not fit its trials")

    def check_form(self) -> None:
        """Raise BadInput if the matrices are not symmetric or theta-hat is not finite."""
        if not (np.array_equal(self.asked, self.asked.T) and np.array_equal(self.received, self.received.T)):
            raise refuse("rule.asked and rule.received", "other matrices", "symmetric")
        if not np.all(np.isfinite(self.estimate)):
            raise refuse("rule.sums", self.sums.tolist(), "small enough for theta-hat to be finite")


@contextmanager
def _finite(rng: Any, actions: Any) -> Iterator[None]:
    """Raise BadInput, and draw nothing, if a number on the way is not finite."""
    before = rng.bit_generator.state
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError):
        rng.bit_generator.state = before
        fit = "such that every estimate and radius is a finite number"
        raise refuse("actions", actions, fit) from None
