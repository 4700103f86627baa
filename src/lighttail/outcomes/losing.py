"""The one meaning of losing: the pseudo regret, unless somebody asks for the regret. Its words stand here."""

from __future__ import annotations

from typing import Any, Literal, get_args

from lighttail.checks import one_of
from lighttail.outcomes.format import amount

Lost = Literal["pseudo_regret", "regret"]
EXPLAINED: dict[Lost, str] = {
    "pseudo_regret": "Loss: what pulling the best arm every time would have earned on average, minus what "
    "the arms that were pulled earn on average; the luck of single rewards is left out.",
    "regret": "Regret: what pulling the best arm every time would have earned on average, minus what a path "
    "earned; the luck of single rewards is included, and the regret of a lucky path is negative.",
}


def check_lost(kind: Any) -> Lost:
    """The kind of a loss. Raises BadInput if there is no such kind."""
    return one_of("kind", kind, get_args(Lost))  # type: ignore[return-value]


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
