"""The experiments of a server, with the two verbs of `Experiment`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any, overload
from urllib.parse import quote, urlencode

from lighttail.checks import EXACT, BadInput, numbers, whole
from lighttail.client.wire import Wire, value_of
from lighttail.live.requests import Served, Told, arm_change, ask_for, settings_change, tell_of
from lighttail.online import Experiment, LinearExperiment

EXPERIMENTS = "/v1/experiments"
_PAIRS: Any = object()  # stands for a reward that is not given, because pairs are


class Service:
    """The experiments of a server; `lighttail.connect` makes one.

    `service["checkout"]` is an experiment, `list(service)` the names of all. Nothing is asked of the server
    before a method is called. A `with` block closes the connections.
    """

    def __init__(self, url: Any, key: Any, timeout: Any, patience: Any) -> None:
        self._wire = Wire(url, key, timeout, patience)

    def __getitem__(self, name: str) -> RemoteExperiment:
        return RemoteExperiment(self._wire, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """The names of all experiments, in the order of their creation."""
        found: list[str] = self._wire.call("GET", EXPERIMENTS)["experiments"]
        return found

    def create(
        self,
        name: str,
        policy: str,
        arms: Any = None,
        horizon: int | None = None,
        seed: int | None = None,
        settings: dict[str, Any] | None = None,
        dim: int | None = None,
    ) -> RemoteExperiment:
        """Begin an experiment, or find the same one. Raises BadInput if the name belongs to another.

        policy: a shipped policy in words, such as "ucb:anytime:0.1". settings: the guard rails.
        """
        given: dict[str, Any] = {
            "name": name,
            "policy": policy,
            "horizon": horizon,
            "seed": seed,
            "settings": settings,
        }
        given |= {"arms": None if arms is None else list(arms), "dim": dim}
        body = {field: value for field, value in given.items() if value is not None}
        return self[self._wire.call("POST", EXPERIMENTS, plain_of(body))["name"]]

    def close(self) -> None:
        """Close the connections that are kept; a later request opens a new one."""
        self._wire.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Service: {self._wire.url}>"


class RemoteExperiment:
    """An experiment of a server. Refusals are those of `Experiment`: a `BadInput` with its field, its value
    and what is allowed, and the HTTP status as `status`."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.name, self._wire = name, wire
        self._path = f"{EXPERIMENTS}/{quote(str(name), safe='')}"

    def _post(self, what: str, body: Any) -> Any:
        return self._wire.call("POST", f"{self._path}/{what}", body)

    def _changed(self, what: str, body: Any) -> bool:
        return bool(self._post(what, body)["changed"])

    @overload
    def ask(
        self,
        count: None = None,
        *,
        key: str | None = None,
        unit: str | None = None,
        about: dict[str, Any] | None = None,
        actions: Any = None,
        labels: Any = None,
    ) -> Served: ...

    @overload
    def ask(
        self,
        count: int,
        *,
        key: str | None = None,
        about: dict[str, Any] | None = None,
        actions: Any = None,
        labels: Any = None,
    ) -> list[Served]: ...

    def ask(
        self,
        count: int | None = None,
        *,
        key: str | None = None,
        unit: str | None = None,
        about: dict[str, Any] | None = None,
        actions: Any = None,
        labels: Any = None,
    ) -> Served | list[Served]:
        """The next trial, on the server's disk. With a count, the next trials in a list.

        key: the same key gives the same trials for ever, also to another process. If none is given, the
            client draws one for this call, so that a try that was not answered gives no second trial.
        unit: who or what the trial is for. about: a small object that the journal keeps with each trial.
        actions, labels: what a linear policy may choose from.
        """
        wish = ask_for(count, key, unit, actions, labels, about)
        body = {"key": wish.key or secrets.token_hex(16), "count": wish.times, **wish.fields()}
        trials = [served_of(one) for one in self._post("ask", plain_of(body))["trials"]]
        return trials[0] if count is None else trials

    def tell(self, id: Any, reward: Any = _PAIRS) -> Told:
        """Tell the reward of a trial: `tell(trial.id, 1.0)`; or of several, `tell([(id, reward), ...])` or
        `tell({id: reward})`, of which all count or none.

        Told(counted, repeated, late) says what became of them. After a try that was not answered, a reward
        that counted then is repeated.
        """
        wish = tell_of(id if reward is _PAIRS else [(id, reward)])
        texts = [id if isinstance(id, str) else str(int(id)) for _, id, _ in wish.rewards]
        rewards = [{"id": id, "reward": value} for id, (_, _, value) in zip(texts, wish.rewards, strict=True)]
        answer = self._post("tell", {"rewards": rewards})
        return Told(answer["counted"], answer["repeated"], answer.get("late", 0))

    def summary(self) -> dict[str, Any]:
        """The experiment in numbers."""
        found: dict[str, Any] = self._wire.call("GET", self._path)
        return found

    def forecast(
        self,
        loss: float | None = None,
        horizon: int | None = None,
        between: tuple[float, float] | None = None,
        paths: int | None = None,
    ) -> dict[str, Any]:
        """What the experiment may lose by its end, from its present state (docs/forecasts.md).

        loss, horizon: by default those of the settings and of the experiment. between: two numbers between
        which all means are believed to lie. paths: simulated ends. The server may take seconds.
        """
        low, high = (None, None) if between is None else numbers("between", between, 2, "two numbers", 2)
        given = {"loss": loss, "horizon": horizon, "low": low, "high": high, "paths": paths}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        path = f"{self._path}/forecast{query and '?' + query}"
        found: dict[str, Any] = self._wire.call("GET", path, slow=True)
        return found

    def to_json(self) -> str:
        """What the policy knows, as the text that `Experiment.from_json` reads."""
        answer = self._wire.answered("GET", f"{self._path}/state")
        value_of(self._wire.url, answer)
        return answer.content.decode()

    def state(self) -> Experiment | LinearExperiment:
        """What the policy knows, as an experiment of this process. It goes its own way from here."""
        text = self.to_json()
        linear = json.loads(text).get("lighttail") == LinearExperiment.kind
        return (LinearExperiment if linear else Experiment).from_json(text)

    def journal(self, after: int = 0) -> list[dict[str, Any]]:
        """The events after a number, in their order."""
        path = f"{self._path}/journal?after={whole('after', after, 0, most=EXACT)}"
        answer = self._wire.answered("GET", path)
        if answer.status != 200:
            value_of(self._wire.url, answer)
        return [json.loads(line) for line in answer.content.splitlines()]

    def pause(self) -> bool:
        """Serve the fall-back arm from now on; False if the experiment is paused already."""
        return self._changed("pause", {})

    def resume(self) -> bool:
        """Let the policy choose again; False if the experiment is not paused."""
        return self._changed("resume", {})

    def stop(self) -> bool:
        """Ask no more, for good; rewards still count. False if the experiment is stopped already."""
        return self._changed("stop", {})

    def add(self, arm: str | int) -> bool:
        """Let one more arm join; False if there is such an arm already."""
        return self._changed("arms", {"add": arm_change("add", arm).fields["arm"]})

    def retire(self, arm: str | int) -> bool:
        """Never choose this arm again, for good; False if it was retired before."""
        return self._changed("arms", {"retire": arm_change("retire", arm).fields["arm"]})

    def set(self, settings: dict[str, Any]) -> bool:
        """Have these settings from now on, in place of all that there were; False if they are the same."""
        return self._changed("settings", plain_of(settings_change(settings).fields))

    def __repr__(self) -> str:
        return f"<RemoteExperiment: {self.name} of {self._wire.url}>"


def served_of(trial: dict[str, Any]) -> Served:
    """A trial of an answer."""
    action = trial.get("action")
    return Served(int(trial["id"]), trial["arm"], trial["by"], None if action is None else tuple(action))


def plain_of(body: Any) -> Any:
    """The body, if JSON can write it. Raises BadInput if it cannot, before anything is sent."""
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        said = f"the request must be made of text, numbers, lists and objects, but {error}"
        raise BadInput(said, field="body", value=body) from None
    return body
