"""The base classes of the policies. A policy is a frozen dataclass of hyper-parameters with a rule of play.

docs/own-policies.md shows how to write a policy of your own. There are three sizes: a bonus for `UCB`
(`lighttail.bonuses`), an index (`IndexPolicy.index`), or a rule (`Policy.choose` and `Policy.learn`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from lighttail.bonuses import same_time
from lighttail.checks import BadInput, refuse
from lighttail.members import Tuned, check_static, check_takes, place_of, reads
from lighttail.rules import Rule, learn_nothing, never_settled, rule_of_index

PAGE = "docs/own-policies.md"
TAKES = {"clock": "t, *params", "index": "n, mean, clock, *params"}  # the arguments of the formulas
CLOSE = 1e-9  # relative difference; the results of a formula on two machines differ by less
ROUNDING = 2.0**-53  # the relative rounding error of one addition
HUGE = 1e200  # the size from which numbers are scaled down before they are added, so that no sum is infinite


class Pull(NamedTuple):
    """One pull in a state: the arm, the reward if it is known, and the memo that `choose` wrote."""

    arm: int
    reward: float | None
    memo: tuple[float, ...]


class State(NamedTuple):
    """The state of a rule: the arguments of its functions, and the pulls that led to them.

    whole: whether the policy chose all pulls and `pulls` has all of them; otherwise `pulls` has some of them.
    """

    tried: Any
    heard: Any
    total: Any
    note: Any
    params: tuple[float, ...]
    pulls: list[Pull]
    whole: bool = True


FACTS = ("plays_by", "turns", "pulls_every_arm_first", "draws_for_itself", "amendable", "arms_may_change")


class Policy(Tuned):
    """The members that every policy has: its parameters as floats, and two static functions.

        choose(rng, t, tried, heard, total, note, params) -> arm
        learn(arm, reward, tried, heard, total, note, params)

    `lighttail.rules` explains the arguments. `learn` may be left out.
    """

    needs_horizon: ClassVar[bool] = True  # whether the policy must know the number of pulls in advance
    light_tailed: ClassVar[bool] = False  # whether a theorem makes a large regret exponentially unlikely
    scaled: ClassVar[tuple[str, ...]] = ()  # fields that grow with the noise (see `for_noise`)
    linear: ClassVar[bool] = False  # whether the actions are vectors, as a LinearBandit offers them
    notes: ClassVar[int] = 0  # floats per arm that the rule keeps in `note`
    memo: ClassVar[int] = 0  # how many of these floats, counted from the last, belong to a pull (see `Rule`)
    choose: ClassVar[Callable[..., int]]
    learn: ClassVar[Callable[..., None]] = staticmethod(learn_nothing)
    settled: ClassVar[Callable[..., int]] = staticmethod(never_settled)  # see `Rule`

    # The next six facts are used where paths are weighted, split or skipped, and where a reward is replaced
    # or the arms of a live experiment change.
    # A fact that a class does not state is not assumed, and a class that plays by another rule than its base
    # class must state it again.
    # plays_by: "index" (the highest index is pulled), "radius" (the index is mean + the radius of `bonus`),
    # "phases" (elimination by the radius of `bonus`), "posterior" (Thompson sampling), or "" (anything else).
    plays_by: ClassVar[str] = ""
    # turns: the arms are pulled in turn, the first arm first, until each has this number of rewards, and
    # then for good the arm with the best mean; infinite if that never happens. None: in no such way. The
    # exact law takes the word of shipped classes alone.
    turns: ClassVar[float | None] = None
    pulls_every_arm_first: ClassVar[bool] = False
    # Whether `choose` draws random numbers for other purposes than ties; if None, a trial finds out.
    draws_for_itself: ClassVar[bool | None] = None
    # Whether nothing but `tried`, `heard` and `total` decides: `choose` and `learn` compute every note anew
    # from these. The reward of a trial may then be replaced (`Experiment.amend`): sums can be corrected.
    amendable: ClassVar[bool] = False
    # Whether arms may join and leave while the policy plays: besides `amendable`, an arm that was never tried
    # needs no note but an infinite first one, and comes first or is drawn by its prior.
    arms_may_change: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        check_static(cls, ("choose", "learn", "settled"))
        nearest = min(place_of(cls, name) for name in ("choose", "learn", "settled", "rule"))
        for fact in FACTS:
            if place_of(cls, fact) > nearest:  # the fact was stated about another rule
                setattr(cls, fact, vars(Policy)[fact])

    @abstractmethod
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        """The floats that the formulas receive as `params`. `horizon` is nan if it is not known."""

    @classmethod
    def in_units_of_noise(cls) -> tuple[str, ...]:
        """The names of the fields that grow with the noise."""
        return cls.scaled

    def check(self, horizon: float, arms: int) -> None:
        """Raise BadInput if the formulas fail for this number of pulls and arms."""
        return

    def rule(self) -> Rule:
        """The rule by which the policy plays."""
        if not hasattr(type(self), "choose"):
            raise self._lacks("choose")
        cls = type(self)
        return Rule(cls.choose, cls.learn, cls.notes, cls.memo, cls.settled)

    def formulas(self) -> dict[str, Callable[..., float]]:
        """The functions of floats that the rule is made of, by their names in `TAKES`; by default none."""
        return {}

    def _lacks(self, name: str) -> BadInput:
        method, found = f"a static method {name}", f"{type(self).__name__} has none"
        return refuse("policy", self, method, verb="have", found=found, more=f"; {PAGE} shows one")

    def check_notes(self, state: State) -> None:
        """Raise BadInput if the pulls of a saved state cannot have led to its notes; by default, never."""
        return


def is_sum(value: float, terms: list[float], times: float = 0.0, moved: float = 0.0) -> bool:
    """Whether a value is the sum of these terms, apart from the rounding errors of adding them in any order.

    The tolerance allows for 16 more additions, because the last bits of a term may differ from one machine to
    another. times, moved: how many terms were replaced, and the sum of the sizes of old and new terms.
    """
    largest = max(map(abs, terms), default=0.0)
    if not math.isfinite(largest):
        return False
    scale = 1.0 if largest < HUGE else 2.0**-64
    parts = [scale * term for term in terms]
    slack = ROUNDING * (len(parts) + 16 + 2.0 * times) * (math.fsum(map(abs, parts)) + scale * moved)
    return abs(scale * value - math.fsum(parts)) <= slack


class IndexPolicy(Policy):
    """A policy that pulls the arm with the highest index. The index is a static function of floats:

        index(n, mean, clock, *params)

    n: the number of pulls of the arm, at least 1. mean: the mean of the arm's rewards. clock: the value of
    `clock(t, *params)` in this round; by default the round t. An arm that was never pulled comes first. Ties
    are broken at random.
    """

    plays_by = "index"
    # pulls_every_arm_first is not stated: if the index of a pulled arm is infinite, it ties with new arms.
    draws_for_itself: ClassVar[bool | None] = False
    amendable = True
    arms_may_change = True
    index: ClassVar[Callable[..., float]]
    clock: ClassVar[Callable[..., float]] = staticmethod(same_time)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_static(cls, ("index", "clock"))
        nearest = min(place_of(cls, name) for name in ("index", "index_formula", "clock", "clock_formula"))
        if place_of(cls, "plays_by") > nearest:
            cls.plays_by = "index" if cls.plays_by else ""
        if place_of(cls, "pulls_every_arm_first") > nearest:
            cls.pulls_every_arm_first = False

    def rule(self) -> Rule:
        return rule_of_index(self.index_formula(), self.clock_formula(), self.moving())

    def index_formula(self) -> Callable[..., float]:
        """The function `index`."""
        if not hasattr(type(self), "index"):
            raise self._lacks("index")
        return type(self).index

    def clock_formula(self) -> Callable[..., float]:
        """The function `clock`."""
        return type(self).clock

    def moving(self) -> bool:
        """Whether the index changes with time: whether its code uses the argument `clock`."""
        check_takes(f"index of {type(self).__name__}", self.index_formula(), TAKES["index"])
        return reads(self.index_formula(), 2)

    def formulas(self) -> dict[str, Callable[..., float]]:
        return {"clock": self.clock_formula(), "index": self.index_formula()}

    def check_notes(self, state: State) -> None:
        """Raise BadInput if a kept index is not the index that the arm's pulls give (see `rules._standing`).

        If the rule computes an index again, in every round or because the arm has no reward yet, the kept
        number is never read, so any number is accepted.
        """
        if not state.whole:
            return
        untried = math.inf if state.pulls else 0.0
        for k, row in enumerate(state.note):
            if state.tried[k] == 0.0 and (row[0] != untried or any(row[1:])):
                raise refuse("rule.note", row, f"{untried} and then 0 for an arm that was never tried")
            if len(row) == 2 and state.tried[k] > 0.0:
                self._check_index(k, row, state)

    def _check_index(self, k: int, row: list[float], state: State) -> None:
        """Raise BadInput if the kept index of arm k is wrong. row[1] does not count the last pull of arm k if
        this pull came after the index was computed."""
        tried, heard, total = state.tried[k], state.heard[k], state.total[k]
        just_pulled = state.pulls[-1].arm == k and heard < tried
        counts = [0.0] if heard == 0.0 else [tried, tried - 1.0] if just_pulled else [tried]
        if row[1] not in counts:
            raise refuse("rule.note", row, f"an index that was computed for {counts[0]:g} pulls")
        if heard > 0.0:
            mean = total / heard
            found = self.index_formula()(row[1], mean, 0.0, *state.params)
            if not math.isclose(row[0], found, rel_tol=CLOSE, abs_tol=CLOSE * abs(mean)):
                raise refuse("rule.note", row, f"the index {found!r} that its pulls give")
