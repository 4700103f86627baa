"""The two rules of the paper, applied to a bonus: the highest index, and successive elimination."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from lighttail.bonuses import Bonus
from lighttail.checks import refuse
from lighttail.members import sigma_of
from lighttail.policies.policy import IndexPolicy, Policy, State
from lighttail.rules import Rule, elimination_rule, index_of_radius, rule_of_radius


@dataclass(frozen=True)
class _BonusPolicy(Policy):
    """A policy that is a rule applied to a bonus."""

    bonus: Bonus

    def __post_init__(self) -> None:
        if not isinstance(self.bonus, Bonus):
            raise refuse("bonus", self.bonus, "a bonus such as LightTailed(kappa=0.2)")

    @property
    def needs_horizon(self) -> bool:  # type: ignore[override]
        return self.bonus.needs_horizon

    def for_noise(self, noise: Any) -> Self:
        return replace(self, bonus=self.bonus.for_noise(sigma_of(noise)))

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return tuple(float(value) for value in self.bonus.params(horizon, arms))

    def check(self, horizon: float, arms: int) -> None:
        self.bonus.check(horizon, arms)


@dataclass(frozen=True)
class UCB(_BonusPolicy, IndexPolicy):
    """Pull the arm with the highest index, mean + radius (Alg. 2 of the paper).

    bonus: the bonus that gives the radius; the horizon must be known if the bonus needs it. The index of an
    arm that was never pulled is infinite. Ties are broken at random.

    >>> from lighttail import LightTailed
    >>> str(UCB(LightTailed(kappa=0.2)))
    'UCB + LightTailed(0.2)'
    """

    plays_by = "radius"
    pulls_every_arm_first = True
    draws_for_itself: ClassVar[bool | None] = False
    amendable = True
    arms_may_change = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.rule is UCB.rule and any("index" in vars(kind) for kind in cls.__mro__):
            raise TypeError(
                f"index of {cls.__name__} is not played: UCB plays its bonus; derive from IndexPolicy"
            )

    @property
    def light_tailed(self) -> bool:  # type: ignore[override]
        return self.bonus.light_tailed

    def rule(self) -> Rule:
        mine: Any = self.index_formula
        if mine.__func__ is not UCB.index_formula:  # a subclass has an index of its own
            return IndexPolicy.rule(self)
        return rule_of_radius(type(self.bonus).radius, type(self.bonus).clock, self.moving())

    def index_formula(self) -> Callable[..., float]:
        return index_of_radius(type(self.bonus).radius)

    def clock_formula(self) -> Callable[..., float]:
        return type(self.bonus).clock

    def moving(self) -> bool:
        return type(self.bonus).changes_with_time()

    def __str__(self) -> str:
        return f"UCB + {self.bonus}"


@dataclass(frozen=True)
class SuccessiveElimination(_BonusPolicy):
    """Pull every active arm once per phase, then drop every arm that another arm dominates (Alg. 1).

    Arm k is dropped when mean_j - radius_j > mean_k + radius_k for some arm j. The last phase may be
    cut short by the horizon.

    bonus: the bonus that gives the radius. It should need a horizon: otherwise there is a warning.

    >>> from lighttail import LightTailed
    >>> str(SuccessiveElimination(LightTailed(kappa=0.1)))
    'SE + LightTailed(0.1)'
    """

    plays_by = "phases"
    pulls_every_arm_first = True
    draws_for_itself: ClassVar[bool | None] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bonus.needs_horizon:
            warnings.warn(
                f"SuccessiveElimination with {type(self.bonus).__name__} is not light-tailed: an arm "
                "that is dropped while t is small never comes back (the paper, after Thm any-time); use UCB",
                stacklevel=3,
            )

    def check(self, horizon: float, arms: int) -> None:
        super().check(horizon, arms)
        for n, t, radius in self.bonus.sample(horizon, arms):
            if radius < 0.0:
                what = f"the radius of {self.bonus!r} at n={n:g}, t={t:g}"
                raise refuse(what, radius, "0 or more with elimination")

    @property
    def light_tailed(self) -> bool:  # type: ignore[override]
        return self.bonus.light_tailed and self.bonus.needs_horizon

    def rule(self) -> Rule:
        return elimination_rule(type(self.bonus).radius, type(self.bonus).clock)

    def check_notes(self, state: State) -> None:
        """Raise BadInput if the pulls cannot have led to the dropped arms.

        In a phase, an active arm that had its turn has one pull more than an active arm that waits. A dropped
        arm has fewer pulls.
        """
        tried, dropped = state.tried, [row[0] for row in state.note]
        if not set(dropped) <= {0.0, 1.0} or all(dropped):
            raise refuse("rule.note", dropped, "0 or 1 for every arm, and not 1 for all")
        if not state.whole:
            return
        active = [tried[k] for k in range(len(tried)) if dropped[k] == 0.0]
        most = max(tried)
        in_turn = active == sorted(active, reverse=True) and active[0] == most and active[-1] >= most - 1
        if not in_turn or not all(0 < tried[k] < most for k in range(len(tried)) if dropped[k]):
            raise refuse("rule.note", dropped, f"what the pulls {list(map(int, tried))} can have led to")

    def __str__(self) -> str:
        return f"SE + {self.bonus}"
