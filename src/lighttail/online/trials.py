"""What every live experiment shares: numbered trials, rewards that come late or twice, and its text."""

from __future__ import annotations

import json
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from lighttail.online.state import decode, decode_generator, encode, encode_generator
from lighttail.policies import Policy
from lighttail.validation import BadInput, number, refuse, whole

FORMAT = 1  # of the text that `to_json` writes
Label = str | int


class LiveExperiment(ABC):
    """A policy, its random numbers, and the reward of every trial, None while it is open."""

    kind: ClassVar[str]  # of the text that `to_json` writes
    policy: Policy
    horizon: int | None

    def __init__(self, policy: Policy, horizon: int | None, seed: int | np.random.Generator | None) -> None:
        self.policy, self.horizon = policy, horizon
        self._rng = _generator(seed)
        self._reward_of: list[float | None] = []

    @abstractmethod
    def _check_sum(self, place: int, reward: float) -> bool:
        """Whether what the policy adds up stays finite with this reward."""

    @abstractmethod
    def _learn(self, place: int, reward: float) -> None:
        """Let the policy take in the reward of a trial."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What `_restored` needs besides the policy, the horizon and the random numbers."""

    @classmethod
    @abstractmethod
    def _restored(cls, policy: Any, state: dict[str, Any], rng: np.random.Generator) -> Self:
        """An experiment that continues from a state; what is wrong with it is refused."""

    def _warn_if_over(self) -> None:
        """Before a trial is asked: say once that the horizon is over."""
        if self.horizon is not None and len(self._reward_of) == self.horizon:
            warnings.warn(
                f"the horizon of {self.horizon} pulls is over; the policy goes on without its guarantees",
                stacklevel=3,
            )

    def tell(self, id: int, reward: float) -> None:
        """The reward, a finite number (or True or False), of the trial with that id."""
        reward = float(reward) if isinstance(reward, (bool, np.bool_)) else number("reward", reward)
        place = self._place(id)
        known = self._reward_of[place]
        if known is None:
            if not self._check_sum(place, reward):
                raise refuse("reward", reward, "small enough for the sum of an arm's rewards to be finite")
            self._reward_of[place] = reward
            self._learn(place, reward)
        elif known != reward:
            raise refuse("reward", reward, f"{known!r}, which was told before for trial {id}")

    def _place(self, id: Any) -> int:
        """Where a trial is kept."""
        asked = len(self._reward_of)
        if isinstance(id, bool) or not isinstance(id, Integral) or not 1 <= int(id) <= asked:
            which = f"asked are 1 to {asked}" if asked else "none was asked yet"
            raise refuse("id", id, f"the id of a trial that was asked ({which})")
        return int(id) - 1

    @property
    def _open_places(self) -> list[int]:
        return [place for place, reward in enumerate(self._reward_of) if reward is None]

    def to_json(self) -> str:
        """The whole state as text, from which another process continues exactly."""
        state = {
            "lighttail": self.kind,
            "format": FORMAT,
            "policy": encode(self.policy),
            "horizon": self.horizon,
            "rng": encode_generator(self._rng),
            **self._state(),
        }
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Continue from what `to_json` returned. A policy class of your own must be imported."""
        try:
            state = json.loads(text)
            kind, version = state["lighttail"], state["format"]
        except (ValueError, TypeError, KeyError):
            raise BadInput("the text is not an experiment that lighttail wrote") from None
        if (kind, version) != (cls.kind, FORMAT):
            article = "an" if cls.kind[0] in "aeiou" else "a"
            raise BadInput(f"format must be {FORMAT} of {article} {cls.kind}, but is {version!r} of {kind!r}")
        try:
            return cls._restored(decode(state["policy"]), state, decode_generator(state["rng"]))
        except (TypeError, KeyError, AttributeError, IndexError) as error:
            raise BadInput(f"the text is not a whole experiment: {error} is missing or wrong") from None


def known_horizon(policy: Policy, horizon: Any, least: int, why: str, otherwise: str) -> int | None:
    """The horizon, checked; None only for a policy that needs none."""
    if horizon is None and policy.needs_horizon:
        raise BadInput(f"horizon must be given with {policy}, but is None; {otherwise}")
    return None if horizon is None else whole("horizon", horizon, least, why)


def or_nan(horizon: int | None) -> float:
    """The horizon for formulas: nan where none is known."""
    return math.nan if horizon is None else horizon


def check_names(field: str, names: Any, least: int, allowed: str) -> list[Label]:
    """Names that are text or whole numbers and different from each other."""
    if isinstance(names, (str, bytes, set, frozenset)) or not isinstance(names, Iterable):
        raise refuse(field, names, allowed)
    listed = list(names)
    if len(listed) < least:
        raise refuse(field, listed, allowed)
    for name in listed:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise refuse(field, name, "names that are text or whole numbers")
    if len(set(listed)) < len(listed):
        raise refuse(field, listed, "different from each other")
    return listed


def _generator(seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is not None:
        whole("seed", seed, 0)
    return np.random.Generator(np.random.SFC64(seed))
