"""A user's own policies and noises as the folder of a study describes them: names and facts, but no code.

A folder may come from anybody, so reading it runs no code. The manifest holds what a report needs of a user's
class as numbers and texts. The classes here repeat these numbers and texts, and cannot play.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from lighttail.checks import BadInput, refuse
from lighttail.linear import LinearPolicy
from lighttail.members import shipped
from lighttail.noises import Noise
from lighttail.noises.formulas import normal_shock, scaled_reward
from lighttail.policies import Policy

Types = dict[str, tuple[type, ...]]  # by key
# The types of the facts, for `lighttail.study.manifest.wrong_type`.
POLICY: Types = {"text": (str,), "label": (str,), "linear": (bool,), "light_tailed": (bool,)}
NOISE: Types = {"text": (str,), "name": (str,), "sub_gaussian": (float, int, bool, type(None))}
NOISE |= {"sd": (float, int)}
Facts = dict[str, Any]
Tell = Callable[[str, str], Facts]  # ("policy" or "noise", name of the policy or problem) -> facts


def facts_of(policy: Policy, problem: Any) -> dict[str, Facts]:
    """What a manifest keeps of a policy and a noise whose classes are not those of lighttail."""
    facts: dict[str, Facts] = {}
    if not shipped(policy) or not shipped(getattr(policy, "bonus", policy)):
        facts["policy"] = {
            "text": repr(policy),
            "label": str(policy),
            "linear": policy.linear,
            "light_tailed": bool(policy.light_tailed),
        }
    noise: Noise = problem.noise
    if not shipped(noise):
        sigma = noise.sub_gaussian
        facts["noise"] = {
            "text": repr(noise),
            "name": type(noise).__name__,
            "sub_gaussian": sigma if sigma is None or isinstance(sigma, bool) else float(sigma),
            "sd": float(noise.sd(problem.means)),
        }
    return facts


def _cannot(what: str) -> BadInput:
    allowed = "loaded from the code that defines it to be played"
    found = "is only the description in the folder of a study"
    return refuse(what, None, allowed, found=found, more=": read_study(file) loads it")


@dataclass(frozen=True, repr=False)
class _Told:
    """name: in the study. text: the `repr` when the policy was played. label: the name for tables.

    light_tailed: whether the author says that the policy is.
    """

    needs_horizon: ClassVar[bool] = False
    name: str
    text: str
    label: str
    light_tailed: bool

    def __repr__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.label

    def params(self, horizon: float, size: int) -> tuple[float, ...]:
        raise _cannot(self.text)


class ToldPolicy(_Told, Policy):
    """The description of a policy in a folder."""


class ToldLinearPolicy(_Told, LinearPolicy):
    """The description of a policy for linear bandits in a folder."""


@dataclass(frozen=True, repr=False)
class ToldNoise(Noise):
    """The description of a noise in a folder. Its class gets the name of the class that was played."""

    text: str
    stated: float | None
    spread: float
    shock = staticmethod(normal_shock)  # never drawn: `world` refuses
    reward = staticmethod(scaled_reward)

    @property
    def sub_gaussian(self) -> float | None:  # type: ignore[override]
        return self.stated

    def world(self, means: tuple[float, ...]) -> tuple[Any, ...]:
        raise _cannot(self.text)

    def sd(self, means: tuple[float, ...]) -> float:
        return self.spread

    def __repr__(self) -> str:
        return self.text


def told_policy(name: str, facts: Facts) -> Policy:
    """The policy with these facts."""
    kind = ToldLinearPolicy if facts["linear"] else ToldPolicy
    return kind(name, facts["text"], facts["label"], facts["light_tailed"])


def told_noise(facts: Facts) -> Noise:
    """The noise with these facts."""
    kind = type(facts["name"], (ToldNoise,), {})
    return kind(facts["text"], facts["sub_gaussian"], facts["sd"])  # type: ignore[no-any-return]
