"""What a policy is: a frozen dataclass of hyper-parameters, with the rule by which it plays.

`Policy` is the contract; docs/own-policies.md shows how to write one's own. A policy is one of three sizes: a
bonus for `UCB` (`lighttail.bonuses`), an index (`IndexPolicy.index`), or a rule (`Policy.choose` and
`Policy.learn`).
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, NamedTuple

from lighttail.bonuses import reads, same_time
from lighttail.checks import BadInput, refuse
from lighttail.rules import Rule, learn_nothing, never_settled, rule_of_index

PAGE = "docs/own-policies.md"
CLOSE = 1e-9  # by so much the last bits of a formula may differ from one machine to another
ROUNDING = 2.0**-53  # of one addition, relative
HUGE = 1e200  # sums of numbers above it are worked out on a smaller scale, where none is infinite


class Pull(NamedTuple):
    """One pull as a state has it: the arm, its reward if it is known, and the memo that `choose` left."""

    arm: int
    reward: float | None
    memo: tuple[float, ...]


class State(NamedTuple):
    """Where a rule stands: its arguments, and the pulls that led there."""

    tried: Any
    heard: Any
    total: Any
    note: Any
    params: tuple[float, ...]
    pulls: list[Pull]


class Policy(ABC):
    """What every policy has: its parameters as floats, and two static functions, `choose` and `learn`.

        choose(rng, t, tried, heard, total, note, params) -> arm
        learn(arm, reward, tried, heard, total, note, params)

    See `lighttail.rules` for the arguments. `learn` may be left out.
    """

    needs_horizon: ClassVar[bool] = True  # whether it must know how many pulls there will be
    light_tailed: ClassVar[bool] = False  # whether a theorem makes a large regret exponentially unlikely
    linear: ClassVar[bool] = False  # whether it is handed vectors, as a LinearBandit offers them
    notes: ClassVar[int] = 0  # floats per arm that the rule keeps in `note`
    memo: ClassVar[int] = 0  # how many of them, the last ones, belong to a pull (see `Rule`)
    choose: ClassVar[Callable[..., int]]
    learn: ClassVar[Callable[..., None]] = staticmethod(learn_nothing)
    settled: ClassVar[Callable[..., int]] = staticmethod(never_settled)  # see `Rule`

    # What may be relied on where paths are weighted, split or skipped. Nothing is assumed of a class that
    # does not say so, and a class that plays by another rule than the one it inherits from says so anew.
    # plays_by: "index" (the highest index is pulled), "radius" (the index is mean + the radius of `bonus`),
    # "phases" (elimination by the radius of `bonus`), "posterior" (Thompson sampling), or "" (anything else).
    plays_by: ClassVar[str] = ""
    pulls_every_arm_first: ClassVar[bool] = False
    draws_for_itself: ClassVar[bool | None] = None  # but for ties; None: nobody says, and a trial tells

    def __init_subclass__(cls) -> None:
        _check_static(cls, ("choose", "learn", "settled"))
        nearest = min(_place(cls, name) for name in ("choose", "learn", "settled", "rule"))
        for fact in ("plays_by", "pulls_every_arm_first", "draws_for_itself"):
            if _place(cls, fact) > nearest:  # stated of another rule than the one it plays by
                setattr(cls, fact, vars(Policy)[fact])

    @abstractmethod
    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        """The floats its formulas take; `horizon` is nan where none is known."""

    def for_noise(self, sigma: float) -> Policy:
        """The same policy tuned for another noise than 1; itself where it assumes no noise level."""
        return self

    def check(self, horizon: float, arms: int) -> None:
        """Refuse a policy whose formulas fail on so many pulls and arms."""
        return

    def rule(self) -> Rule:
        """The functions by which it plays."""
        if not hasattr(type(self), "choose"):
            raise self._lacks("choose")
        cls = type(self)
        return Rule(cls.choose, cls.learn, cls.notes, cls.memo, cls.settled)

    def __str__(self) -> str:
        values: list[object] = (
            [getattr(self, field.name) for field in fields(self)] if is_dataclass(self) else []
        )
        texts = (f"{value:g}" if isinstance(value, (int, float)) else str(value) for value in values)
        return f"{type(self).__name__}({', '.join(texts)})"

    def _lacks(self, name: str) -> BadInput:
        mine = type(self).__name__
        page = f"; {PAGE} shows one"
        return refuse(
            "policy", self, f"a static method {name}", verb="have", found=f"{mine} has none", more=page
        )

    def check_notes(self, state: State) -> None:
        """Refuse a state from a text whose notes its pulls cannot have led to; by default none is refused."""
        return


def _place(cls: type, name: str) -> float:
    """How far up a class's line the class that defines `name` is."""
    return next((place for place, one in enumerate(cls.__mro__) if name in vars(one)), math.inf)


def is_sum(value: float, terms: list[float]) -> bool:
    """Whether a value is the sum of these terms, but for the rounding of any order of adding them.

    The last bits of a term itself may differ from one machine to another, which the 16 more additions cover.
    """
    largest = max(map(abs, terms), default=0.0)
    if not math.isfinite(largest):
        return False
    scale = 1.0 if largest < HUGE else 2.0**-64
    parts = [scale * term for term in terms]
    slack = ROUNDING * (len(parts) + 16) * math.fsum(map(abs, parts))
    return abs(scale * value - math.fsum(parts)) <= slack


def _check_static(cls: type, names: tuple[str, ...]) -> None:
    for name in names:
        member = inspect.getattr_static(cls, name, None)
        if member is not None and not isinstance(member, staticmethod):
            raise TypeError(f"{name} of {cls.__name__} must be a static method: write @staticmethod above it")


class IndexPolicy(Policy):
    """A policy that pulls the arm with the highest index, a static function of four or more floats:

        index(n, mean, clock, *params)

    n: pulls of the arm, at least 1. mean: of its rewards. clock: what `clock(t, *params)` returned for this
    round, the round itself unless a class says otherwise. An arm never pulled comes first, ties are broken at
    random.
    """

    plays_by: ClassVar[str] = "index"
    # pulls_every_arm_first is not stated: an infinite index of an arm that was pulled ties with new arms.
    draws_for_itself: ClassVar[bool | None] = False
    index: ClassVar[Callable[..., float]]
    clock: ClassVar[Callable[..., float]] = staticmethod(same_time)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _check_static(cls, ("index", "clock"))
        nearest = min(_place(cls, name) for name in ("index", "index_formula", "clock", "clock_formula"))
        if _place(cls, "plays_by") > nearest:
            cls.plays_by = "index" if cls.plays_by else ""
        if _place(cls, "pulls_every_arm_first") > nearest:
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
        """Whether the index changes with time: whether its code names the clock."""
        return reads(self.index_formula(), 2)

    def check_notes(self, state: State) -> None:
        """The index that is kept of an arm is the one that its pulls give; see `rules._standing`.

        Where the rule works all indices out anew, in every round or because an arm has no reward yet, what is
        kept is never read again, and any number will do.
        """
        untried = math.inf if state.pulls else 0.0
        for k, row in enumerate(state.note):
            if state.tried[k] == 0.0 and (row[0] != untried or any(row[1:])):
                raise refuse("rule.note", row, f"{untried} and then 0 for an arm that was never tried")
            if len(row) == 2 and state.tried[k] > 0.0:
                self._check_index(k, row, state)

    def _check_index(self, k: int, row: list[float], state: State) -> None:
        """row[1] lacks the last pull of arm k if that came after the index was worked out."""
        tried, heard, total = state.tried[k], state.heard[k], state.total[k]
        just_pulled = state.pulls[-1].arm == k and heard < tried
        counts = [0.0] if heard == 0.0 else [tried, tried - 1.0] if just_pulled else [tried]
        if row[1] not in counts:
            raise refuse("rule.note", row, f"an index that was worked out for {counts[0]:g} pulls")
        if heard > 0.0:
            mean = total / heard
            found = self.index_formula()(row[1], mean, 0.0, *state.params)
            if not math.isclose(row[0], found, rel_tol=CLOSE, abs_tol=CLOSE * abs(mean)):
                raise refuse("rule.note", row, f"the index {found!r} that its pulls give")
