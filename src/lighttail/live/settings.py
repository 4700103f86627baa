"""The guard rails of an experiment: floors, a holdout, sticky units, a window for rewards, a fall-back
arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

from lighttail.checks import BadInput, fraction, known_word, number, one_of, positive, refuse
from lighttail.online.base import Label
from lighttail.online.player import Player
from lighttail.online.state import checked_reward, fields_of
from lighttail.outcomes.losing import check_loss

LATE = ("ignore", "amend")
THEN = ("warn", "pause")
FOR_ALL = ("window", "default", "late")  # also for a linear policy, which is offered other actions each time


@dataclass(frozen=True)
class Settings:
    """The guard rails, with arms as places.

    shares: a floor f per arm, so that arm i is pulled with chance f_i + (1 - sum f) w_i if the policy would
        pull it with chance w_i.
    holdout: the arm of the units that the policy never sees, and their share.
    sticky: whether a unit gets one arm for good.
    window, default: a trial that is open for `window` seconds is closed with the reward `default`.
    late: what a reward after that does.
    risk: what the forecast is held against.
    fallback: the arm of a paused experiment.
    rewards, means: what a forecast takes for granted: the limits of rewards (low, high) or the sigma of
        their noise, and the limits of all means.
    """

    shares: tuple[tuple[int, float], ...] = ()
    holdout: tuple[int, float] | None = None
    sticky: bool = False
    window: float | None = None
    default: float = 0.0
    late: str = "ignore"
    risk: dict[str, Any] | None = None
    fallback: int = 0
    rewards: dict[str, float] | None = None
    means: tuple[float, float] | None = None
    plain: dict[str, Any] = field(default_factory=dict, compare=False)  # as they were given, checked

    @property
    def needs_unit(self) -> bool:
        return self.sticky or self.holdout is not None

    def naming(self, place: int) -> str | None:
        """The setting that sends trials to an arm; None if there is none. The first arm is the fall-back if
        no other is named."""
        if any(place == arm for arm, _ in self.shares):
            return "shares"
        if self.holdout is not None and place == self.holdout[0]:
            return "holdout"
        return "fallback" if place == self.fallback else None

    def check_reward(self, reward: float) -> None:
        """Raise BadInput if a reward is outside the range that the setting `rewards` says. A journal that
        was written before rewards were checked may hold such a reward, and is replayed all the same."""
        if (known := self.rewards) is not None and "low" in known:
            low, high = known["low"], known["high"]
            if not low <= reward <= high:
                raise refuse("reward", reward, f"between {low:g} and {high:g}, as settings.rewards says")

    def check_new(self, horizon: int | None) -> None:
        """Raise BadInput if the settings contradict one another. New settings alone are checked: those of a
        journal that was written before are replayed as they are."""
        if self.window is not None:
            try:
                self.check_reward(self.default)
            except BadInput as error:
                raise error.renamed("settings.default") from None
        known = self.rewards or {}
        spans = [] if self.means is None else [self.means]
        spans += [(known["low"], known["high"])] if "low" in known else []
        if self.risk is None or horizon is None or not spans:
            return
        low, high = max(span[0] for span in spans), min(span[1] for span in spans)
        if low < high:
            said = f" with settings.{'rewards' if self.means is None else 'means'} ({low:g} to {high:g})"
            check_loss("settings.risk.loss", self.risk["loss"], horizon * (high - low), horizon, said)

    def in_holdout(self, experiment: str, unit: str) -> bool:
        """Whether a unit is in the holdout: a hash decides, so nothing is remembered."""
        return self.holdout is not None and drawn("holdout", experiment, unit) < self.holdout[1]

    def floor(self, seed: int, id: int) -> int | None:
        """The arm of a trial whose floor has its turn; None if the policy has. A hash of the experiment's
        seed and the trial decides, so that a replay decides the same."""
        if not self.shares:
            return None
        mark = drawn("floor", str(seed), str(id))
        for arm, share in self.shares:
            if mark < share:
                return arm
            mark -= share
        return None


NAMES = tuple(setting.name for setting in fields(Settings) if setting.name != "plain")


def drawn(*words: str) -> float:
    """A number in [0, 1), drawn by a hash of the words: the first 53 of its bits.

    >>> drawn("floor", "7", "1") == drawn("floor", "7", "1") != drawn("floor", "7", "2")
    True
    """
    text = "\0".join(words).encode("utf-8")
    return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 11) * 2.0**-53


def read_settings(value: Any, labels: Sequence[Label] | None, player: Player) -> Settings:
    """The settings that a user gave. Raises BadInput that names the first one that is wrong.

    labels: the arms, or None if the actions change. player: says whether the policy can do with the settings.
    """
    if value is None:
        return Settings()
    if not isinstance(value, dict):
        raise refuse("settings", value, f"an object with some of the fields {', '.join(NAMES)}")
    for name in value:
        known_word("the name of a setting", name, NAMES)
        if labels is None and name not in FOR_ALL:
            raise refuse(f"settings.{name}", value[name], "left out if the actions change at every ask")
    entries = {name: entry for name, entry in value.items() if entry is not None}
    checked = _window(entries, player)
    if labels is not None:
        checked |= _arms(entries, labels, player)
    if "risk" in entries:
        checked["risk"] = _risk(entries["risk"])
        if player.experiment.horizon is None:
            raise refuse("settings.risk", entries["risk"], "left out if the experiment has no horizon")
    if "rewards" in entries:
        checked["rewards"] = _rewards(entries["rewards"])
    if "means" in entries:
        checked["means"] = _rising("settings.means", entries["means"])
    return Settings(**checked, plain=entries)


def _window(entries: dict[str, Any], player: Player) -> dict[str, Any]:
    if "window" not in entries:
        for name in ("default", "late"):
            if name in entries:
                raise refuse(f"settings.{name}", entries[name], "left out without settings.window")
        return {}
    window = positive("settings.window", entries["window"])
    if "default" not in entries:
        allowed = "the reward of a trial that is open for too long; settings.window needs one"
        raise refuse("settings.default", None, allowed)
    default = entries["default"]
    reward = float(default) if isinstance(default, bool) else checked_reward("settings.default", default)
    late = one_of("settings.late", entries.get("late", "ignore"), LATE)
    if late == "amend":
        player.standing.check_amends()
    return {"window": window, "default": reward, "late": late}


def _arms(entries: dict[str, Any], labels: Sequence[Label], player: Player) -> dict[str, Any]:
    sticky = entries.get("sticky", False)
    checked: dict[str, Any] = {"shares": _shares(entries.get("shares", {}), labels), "sticky": sticky}
    if not isinstance(sticky, bool):
        raise refuse("settings.sticky", sticky, "true or false")
    if checked["shares"] or sticky:
        player.standing.check_takes()
    if "holdout" in entries:
        parts = fields_of("settings.holdout", entries["holdout"], ("arm", "share"))
        share = fraction("settings.holdout.share", parts["share"])
        checked["holdout"] = (place_of("settings.holdout.arm", parts["arm"], labels), share)
    if "fallback" in entries:
        checked["fallback"] = place_of("settings.fallback", entries["fallback"], labels)
    return checked


def _shares(value: Any, labels: Sequence[Label]) -> tuple[tuple[int, float], ...]:
    if not isinstance(value, dict):
        raise refuse("settings.shares", value, "an object with a share per arm, such as {'control': 0.05}")
    shares: dict[int, float] = {}
    known: dict[Label, int] = {str(label): place for place, label in enumerate(labels)}
    known |= {label: place for place, label in enumerate(labels)}  # text comes before a number that reads so
    for name, share in value.items():
        quick = known.get(name) if isinstance(name, str) else None
        place = place_of("an arm of settings.shares", name, labels) if quick is None else quick
        if place in shares:
            raise refuse("an arm of settings.shares", name, "named once")
        shares[place] = fraction(f"settings.shares.{name}", share)
    if math.fsum(shares.values()) > 1.0:
        raise refuse("the sum of settings.shares", math.fsum(shares.values()), "at most 1")
    return tuple(sorted(shares.items()))


def _risk(value: Any) -> dict[str, Any]:
    parts = fields_of("settings.risk", value, ("loss", "chance", "then"))
    loss = positive("settings.risk.loss", parts["loss"])
    chance = fraction("settings.risk.chance", parts["chance"])
    return {"loss": loss, "chance": chance, "then": one_of("settings.risk.then", parts["then"], THEN)}


def _rewards(value: Any) -> dict[str, float]:
    """The limits of all rewards, or the sigma of their noise."""
    if isinstance(value, dict) and "sigma" in value:
        sigma = fields_of("settings.rewards", value, ("sigma",))["sigma"]
        return {"sigma": positive("settings.rewards.sigma", sigma)}
    low, high = _rising("settings.rewards", value)
    return {"low": low, "high": high}


def _rising(name: str, value: Any) -> tuple[float, float]:
    parts = fields_of(name, value, ("low", "high"))
    low, high = (number(f"{name}.{end}", parts[end]) for end in ("low", "high"))
    if not (low < high and math.isfinite(high - low)):
        raise refuse(f"{name}.high", parts["high"], f"a number above {name}.low ({low:g})")
    return low, high


def place_of(field: str, value: Any, labels: Sequence[Label]) -> int:
    """The place of an arm. An arm that is a number may be written as text, because names in JSON are text."""
    same = [place for place, label in enumerate(labels) if type(label) is type(value) and label == value]
    like = [place for place, label in enumerate(labels) if isinstance(value, str) and str(label) == value]
    if len(found := same or like) != 1:
        raise refuse(field, value, f"one of {', '.join(map(repr, labels[:20]))}")
    return found[0]
