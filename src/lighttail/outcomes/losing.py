"""The one meaning of losing: the pseudo regret, unless somebody asks for the regret. Its words stand here."""

from __future__ import annotations

from typing import Any, Literal, get_args

from lighttail.checks import one_of, refuse
from lighttail.outcomes.format import amount

Lost = Literal["pseudo_regret", "regret"]
ROUNDING = 1e-9  # relative: what the rounding of means may add to the largest loss
EXPLAINED: dict[Lost, str] = {
    "pseudo_regret": "Loss: what pulling the best arm every time would have earned on average, minus what "
    "the arms that were pulled earn on average; the luck of single rewards is left out.",
    "regret": "Regret: what pulling the best arm every time would have earned on average, minus what a path "
    "earned; the luck of single rewards is included, and the regret of a lucky path is negative.",
}


def check_lost(kind: Any) -> Lost:
    """The kind of a loss. Raises BadInput if there is no such kind."""
    return one_of("kind", kind, get_args(Lost))  # type: ignore[return-value]


def out_of_reach(loss: float, most: float) -> bool:
    """Whether no policy can lose this much. most: the largest possible loss."""
    return loss > most + ROUNDING * abs(most)


def check_loss(field: str, loss: float, most: float, pulls: int, limit: str = "", unit: float = 1.0) -> None:
    """Raise BadInput if no policy can lose this much.

    most: the largest possible loss in these pulls. limit: what else limits it, such as " with means from 0 to
    1". unit: the loss that a value of 1 stands for.
    """
    if not out_of_reach(loss * unit, most):
        return
    if most == 0.0:
        raise refuse(field, loss, "left out where all arms are equally good: nothing can be lost")
    more = "more" if unit == 1.0 else f"more than {amount(most)}"
    why = f"because no policy can lose {more} in {pulls:,} pulls{limit}"
    raise refuse(field, loss, f"at most {amount(most / unit)}, {why}", found=f"is {amount(loss)}")


def noun(kind: Lost) -> str:
    """What is lost, in one word.

    >>> noun("pseudo_regret"), noun("regret")
    ('loss', 'regret')
    """
    return "loss" if kind == "pseudo_regret" else "regret"


def event(kind: Lost, x: float) -> str:
    """The event whose chance is asked for, after "the chance of".

    >>> event("pseudo_regret", 100.0), event("regret", 80000.0)
    ('losing 100 or more', 'a regret of 80,000 or more')
    """
    return f"losing {amount(x)} or more" if kind == "pseudo_regret" else f"a regret of {amount(x)} or more"
