"""What one can do with an experiment: the verbs of a desk, for callers that wait for the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lighttail.live.requests import (
    Change,
    Look,
    Request,
    Served,
    Told,
    arm_change,
    ask_for,
    settings_change,
    tell_of,
)
from lighttail.live.ticket import Ticket


class Verbs(ABC):
    """Requests that are checked, wait for their turn, and return their answers, which are on disk."""

    @abstractmethod
    def submit(self, request: Request) -> Ticket:
        """Let a request wait for its turn."""

    def ask(
        self,
        count: Any = None,
        key: Any = None,
        unit: Any = None,
        actions: Any = None,
        labels: Any = None,
        about: Any = None,
    ) -> list[Served]:
        """The next trials, on disk. The same key again gives the same trials. about: a small object that is
        kept in the journal with each of them (`Experiment.ask`)."""
        asked: list[Served] = self.submit(ask_for(count, key, unit, actions, labels, about)).result()
        return asked

    def tell(self, rewards: Any) -> Told:
        """Count rewards, given as pairs of an id and a reward: all of them, or none and a refusal."""
        told: Told = self.submit(tell_of(rewards)).result()
        return told

    def pause(self) -> bool:
        """Serve the fall-back arm from now on; False if the experiment is paused already."""
        return bool(self.submit(Change("pause", {})).result())

    def resume(self) -> bool:
        """Let the policy choose again; False if the experiment is not paused."""
        return bool(self.submit(Change("resume", {})).result())

    def stop(self) -> bool:
        """Ask no more, for good; rewards still count. False if the experiment is stopped already."""
        return bool(self.submit(Change("stop", {})).result())

    def set(self, settings: Any) -> bool:
        """Have these settings from now on, in place of all that there were; False if they are the same."""
        return bool(self.submit(settings_change(settings)).result())

    def add(self, arm: Any) -> bool:
        """Let one more arm join; False if there is such an arm already."""
        return bool(self.submit(arm_change("add", arm)).result())

    def retire(self, arm: Any) -> bool:
        """Never choose this arm again, for good; its rewards still count. False if it was retired before."""
        return bool(self.submit(arm_change("retire", arm)).result())

    def alarm(self, **fields: Any) -> bool:
        """Write an alarm into the journal."""
        return bool(self.submit(Change("alarm", fields)).result())

    def summary(self) -> dict[str, Any]:
        """The experiment in numbers."""
        found: dict[str, Any] = self.submit(Look("summary")).result()
        return found

    def state(self) -> str:
        """What the policy knows, as `Experiment.from_json` reads it."""
        return str(self.submit(Look("state")).result())

    def tick(self) -> None:
        """Close the trials whose window is over."""
        self.submit(Look("tick")).result()
