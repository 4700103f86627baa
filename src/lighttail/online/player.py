"""The policy of an experiment without its trials: it chooses and learns, and its user keeps the trials.

`Experiment` remembers every trial. The service (`lighttail.live`) keeps trials in a journal and needs only
what the policy of an experiment knows. A player makes the same choices as an experiment with the same seed,
bit by bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from lighttail.checks import EXACT, refuse, whole
from lighttail.linear.policies import LinearPolicy
from lighttail.online.base import Label, row_names
from lighttail.online.experiment import Experiment
from lighttail.online.linear import LinearExperiment
from lighttail.online.linear_standing import LinearStanding
from lighttail.online.standing import Standing
from lighttail.online.state import decode_generator, encode_generator, fields_of
from lighttail.policies import Policy

Memo = tuple[float, ...]
Opened = Iterable[tuple[int, Label, Memo]]  # the id, the arm (or label) and the memo of every open trial


class Player(ABC):
    """A policy that chooses a place (of an arm, or of a row of actions); its standing learns from rewards.

    memo: how many floats the user of a player keeps per open trial, for `standing.learn`.
    """

    memo: int
    pulls: int = 0
    taken: int = 0
    experiment: Experiment | LinearExperiment
    standing: Standing | LinearStanding

    @abstractmethod
    def choose(self, offer: Any = None) -> tuple[int, Label, Memo]:
        """The place, the label and the memo of the next pull. offer: the actions of a linear policy."""

    @abstractmethod
    def follow(self, chosen: int, place: int) -> Memo:
        """Count the pull that `choose` just chose as a pull of another place, the place in a journal."""

    @abstractmethod
    def take(self, place: int) -> Memo:
        """Count a pull that the policy did not choose; returns its memo."""

    @abstractmethod
    def add(self, arm: Any) -> None:
        """Let one more arm join. Raises BadInput, and changes nothing, if it may not."""

    @abstractmethod
    def retire(self, arm: Any) -> None:
        """Never choose this arm again. Raises BadInput, and changes nothing, if it may not leave."""

    def to_plain(self) -> dict[str, Any]:
        """Everything that changes while the policy plays, its random numbers included, as plain values."""
        rule = {**self.standing.to_plain(), "replaced": self.standing.replaced.tolist()}
        counts = {"pulls": self.pulls, "taken": self.taken}
        return {**counts, "rng": encode_generator(self.experiment._rng), "rule": rule}

    def restore(self, state: Any) -> None:
        """Continue from what `to_plain` returned."""
        fields_of("player", state, ("pulls", "taken", "rng", "rule"))
        self.pulls = whole("pulls", state["pulls"], 0, most=EXACT)
        self.taken = whole("taken", state["taken"], 0, most=EXACT)
        self.experiment._rng = decode_generator(state["rng"])
        rule = dict(state["rule"])
        self.standing.restore_replaced("rule.replaced", rule.pop("replaced"))
        self.standing.restore_plain(rule)

    def text(self, last: int, opened: Opened) -> str:
        """What the policy knows as the text of an experiment, without told trials. last: the last id."""
        made = self.experiment
        made._first, made._pulls_before, made._taken = last + 1, self.pulls, self.taken
        made._older = {id: (arm, memo) for id, arm, memo in opened}
        made._waiting = list(made._older)
        text = made.to_json(told=False)
        made._older, made._waiting = {}, []
        return text


class ArmPlayer(Player):
    """The player of a policy for arms."""

    experiment: Experiment
    standing: Standing

    def __init__(self, policy: Policy, arms: Any, horizon: Any, seed: int) -> None:
        self.experiment = Experiment(policy, arms, horizon, seed)
        self.labels = self.experiment.arms
        self.standing = self.experiment._standing
        self.memo = self.standing.rule.memo

    def choose(self, offer: Any = None) -> tuple[int, Label, Memo]:
        arm = self.standing.choose(self.experiment._rng, self.pulls + 1.0)
        self.pulls += 1
        return arm, self.labels[arm], self.standing.memo

    def follow(self, chosen: int, place: int) -> Memo:
        self.standing.tried[chosen] -= 1.0
        self.standing.tried[place] += 1.0
        first = self.standing.rule.notes - self.memo
        return tuple(self.standing.note[place, first + more] for more in range(self.memo))

    def take(self, place: int) -> Memo:
        self.standing.take(self.experiment._rng, self.pulls + 1.0, place)
        self.pulls += 1
        self.taken += 1
        return ()

    def add(self, arm: Any) -> None:
        self.experiment._join(arm, self.pulls > 0)

    def retire(self, arm: Any) -> None:
        self.experiment.retire(arm)

    def to_plain(self) -> dict[str, Any]:
        plain = super().to_plain()
        plain["rule"] |= {"arms": self.labels, "retired": self.standing.retired}
        return plain

    def restore(self, state: Any) -> None:
        rule = dict(state["rule"])
        for label in rule.pop("arms")[len(self.labels) :]:
            self.add(label)
        self.experiment._restore_retired(rule.pop("retired"))
        super().restore({**state, "rule": rule})


class LinearPlayer(Player):
    """The player of a linear policy. The memo of a trial is its action."""

    experiment: LinearExperiment
    standing: LinearStanding

    def __init__(self, policy: LinearPolicy, dim: Any, horizon: Any, seed: int) -> None:
        self.experiment = LinearExperiment(policy, dim, horizon, seed)
        self.standing = self.experiment._standing
        self.memo = self.experiment.dim
        self._offered: Any = None

    def choose(self, offer: Any = None) -> tuple[int, Label, Memo]:
        """As in `Player`. offer: {"actions": rows, "labels": names or nothing}."""
        rows = self.experiment._check(offer.get("actions"))
        names = row_names(offer.get("labels"), len(rows))
        place = self.standing.choose(self.experiment._rng, self.pulls + 1.0, rows)
        self.pulls += 1
        self._offered = rows
        return place, names[place], tuple(rows[place].tolist())

    def follow(self, chosen: int, place: int) -> Memo:
        old, action = self._offered[chosen], self._offered[place]
        self.standing.asked += np.outer(action, action) - np.outer(old, old)
        return tuple(action.tolist())

    def take(self, place: int) -> Memo:
        raise AssertionError("a linear policy takes no arm")

    def add(self, arm: Any) -> None:
        raise refuse("policy", self.experiment.policy, "a policy for arms; a linear one is offered actions")

    retire = add


def player_for(policy: Policy, arms: Any, dim: Any, horizon: Any, seed: int) -> Player:
    """The player of a policy: a linear policy needs `dim` and no arms, any other policy arms and no `dim`."""
    if policy.linear:
        if arms is not None:
            raise refuse("arms", arms, f"left out with {policy}, which is offered actions at every ask")
        return LinearPlayer(cast(LinearPolicy, policy), dim, horizon, seed)
    if dim is not None:
        raise refuse("dim", dim, f"left out with {policy}, whose arms are not vectors")
    return ArmPlayer(policy, arms, horizon, seed)
