"""The routes: each turns a request into a question to a desk, and the desk's answer into JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.concurrency import run_in_threadpool

from lighttail.checks import EXACT, BadInput, known_word, refuse
from lighttail.live import Office
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.errors import unavailable
from lighttail.live.journal import PAGE
from lighttail.live.office import check_known
from lighttail.live.requests import (
    Change,
    Look,
    Request,
    arm_change,
    ask_for,
    settings_change,
    shown_label,
    tell_of,
)
from lighttail.server import shapes
from lighttail.server.answers import Answer, json_answer, text_answer
from lighttail.server.forecasts import Forecasts, outlook_module
from lighttail.server.metrics import Meter, experiment_lines
from lighttail.server.watch import Watch, Webhook

ExperimentName = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
After = Annotated[int, Query(ge=0, le=EXACT, description="The number of the last event that is known.")]
Loss = Annotated[float | None, Query(gt=0, description="The loss; by default settings.risk.loss.")]
Horizon = Annotated[int | None, Query(ge=1, le=EXACT, description="The pulls at the end.")]
Low = Annotated[float | None, Query(description="No mean is below this number.")]
High = Annotated[float | None, Query(description="No mean is above this number.")]
Paths = Annotated[int | None, Query(ge=100, le=100_000, description="Simulated ends of the experiment.")]
REWARD_FIELDS = {"id", "reward"}
TOLD = 'given in the body, as {"rewards": [{"id": "1", "reward": 1}]}'
MOST_ARMS, MOST_DIM = 10_000, 1_000  # a request must not be able to fill the memory
MOST_OFFERED = 500_000  # numbers: each trial of a linear experiment is kept with all of its actions
MOST_SIGNS = 500_000  # characters: and with all of their labels
PATIENCE = 5.0  # seconds for a look at the journal


class Routes:
    """The routes of an office. A body is an object; what is in it is checked here and by the desk."""

    def __init__(self, office: Office, meter: Meter, webhook: Webhook | None = None) -> None:
        self.office, self.meter = office, meter
        self._desks: dict[str, AsyncDesk] = {}
        self.forecasts = Forecasts()
        self.watch = Watch(office, self._opened, self.forecasts, webhook)

    async def _opened(self, name: str) -> AsyncDesk:
        """The desk of an experiment. Finding it may ask a database, for which no other request waits."""
        desk = await run_in_threadpool(self.office.desk, name)
        return self._desks.setdefault(name, AsyncDesk(desk))

    async def desk_of(self, name: str, wish: Request) -> Any:
        """What the desk of an experiment answers to a wish."""
        return await (self._desks.get(name) or await self._opened(name)).answer(wish)

    async def ask(self, name: ExperimentName, body: shapes.AskBody) -> shapes.TrialsAnswer:
        """Ask for trials."""
        check_fields(body, shapes.AskBody)
        if "actions" in body or "labels" in body:
            check_offer(body)
        trials: list[shapes.TrialAnswer] = []
        for trial in await self.desk_of(name, ask_for(**body)):
            one: shapes.TrialAnswer = {"id": str(trial.id), "arm": trial.arm, "by": trial.by}
            if trial.action is not None:
                one["action"] = list(trial.action)
            trials.append(one)
        return {"trials": trials}

    async def tell(self, name: ExperimentName, body: shapes.TellBody) -> shapes.ToldAnswer:
        """Tell rewards: all of them are counted, or none."""
        if isinstance(body, dict) and body.get("rewards") is None:
            raise refuse("rewards", None, TOLD, found="is missing")
        check_fields(body, shapes.TellBody)
        counted, repeated, late = await self.desk_of(name, tell_of(pairs_of(body["rewards"])))
        if repeated:
            self.meter.repeated[name] += repeated
        told: shapes.ToldAnswer = {"counted": counted, "repeated": repeated}
        return {**told, "late": late} if late else told

    async def create(self, body: shapes.ExperimentBody) -> Any:
        """Begin an experiment. The same request again changes nothing."""
        check_fields(body, shapes.ExperimentBody)
        check_sizes(body)
        desk, new = await run_in_threadpool(lambda: self.office.create(**body))
        waiting = self._desks.setdefault(desk.name, AsyncDesk(desk))
        self.watch.changed(desk.name)
        return json_answer(await waiting.answer(Look("summary")), 201 if new else 200)

    async def listed(self) -> shapes.ListAnswer:
        """List the experiments."""
        return {"experiments": await run_in_threadpool(self.office.names)}

    async def summary(self, name: ExperimentName) -> shapes.SummaryAnswer:
        """Show an experiment in numbers."""
        return await self.desk_of(name, Look("summary"))  # type: ignore[no-any-return]

    async def _change(self, name: str, body: Any, kind: str) -> shapes.ChangeAnswer:
        check_fields(body, shapes.NoBody)
        return {"changed": bool(await self.desk_of(name, Change(kind, {})))}

    async def pause(self, name: ExperimentName, body: shapes.NoBody) -> shapes.ChangeAnswer:
        """Serve the fall-back arm from now on; rewards still count."""
        return await self._change(name, body, "pause")

    async def resume(self, name: ExperimentName, body: shapes.NoBody) -> shapes.ChangeAnswer:
        """Let the policy choose again."""
        return await self._change(name, body, "resume")

    async def stop(self, name: ExperimentName, body: shapes.NoBody) -> shapes.ChangeAnswer:
        """Give out no more trials, for good; rewards still count."""
        return await self._change(name, body, "stop")

    async def arms(self, name: ExperimentName, body: shapes.ArmsBody) -> shapes.ChangeAnswer:
        """Let an arm join, or leave for good."""
        check_fields(body, shapes.ArmsBody)
        given = [(kind, arm) for kind, arm in body.items() if arm is not None]
        if len(given) != 1:
            raise refuse("body", body, "an object with either add or retire")
        return {"changed": bool(await self.desk_of(name, arm_change(*given[0])))}

    async def settings(self, name: ExperimentName, body: shapes.SettingsBody) -> shapes.ChangeAnswer:
        """Have these settings from now on, in place of all that there were."""
        check_fields(body, shapes.SettingsBody)
        changed = bool(await self.desk_of(name, settings_change(body["settings"])))
        self.watch.changed(name)
        return {"changed": changed}

    async def state(self, name: ExperimentName) -> Any:
        """What the policy knows, as `Experiment.from_json` reads it."""
        text = await self.desk_of(name, Look("state"))
        return Answer(200, text.encode("ascii", "backslashreplace"))

    async def journal(self, name: ExperimentName, after: After = 0) -> Any:
        """The events after a number, one line of JSON for each."""
        check_known(name)
        first = await run_in_threadpool(self.office.journal.lines, name, after, PAGE)
        return text_answer("lines", self._pages(name, after, first))

    async def _pages(self, name: str, after: int, lines: list[tuple[str, bytes]]) -> AsyncIterator[bytes]:
        while lines:
            yield "".join(f"{body}\n" for body, _ in lines).encode("ascii")
            after += len(lines)
            full = len(lines) == PAGE
            lines = await run_in_threadpool(self.office.journal.lines, name, after, PAGE) if full else []

    async def forecast(
        self,
        name: ExperimentName,
        loss: Loss = None,
        horizon: Horizon = None,
        low: Low = None,
        high: High = None,
        paths: Paths = None,
    ) -> shapes.ForecastAnswer:
        """What the experiment may lose by its end, from its present state."""
        desk = self._desks.get(name) or await self._opened(name)
        if (low is None) != (high is None):
            raise refuse("low" if low is None else "high", None, "given if the other limit of the means is")
        between = None if low is None or high is None else (low, high)
        wish = (await outlook_module()).Wish(loss, horizon, between, paths)
        try:
            return (await self.forecasts.made(desk, wish))[1]  # type: ignore[return-value]
        except BadInput as error:
            raise error.renamed("low and high") if between and error.field == "between" else error from None

    async def alive(self) -> shapes.HealthAnswer:
        """Say that the server is there."""
        return {"status": "ok"}

    async def ready(self) -> shapes.HealthAnswer:
        """Say whether the journal can be reached."""
        try:
            async with asyncio.timeout(PATIENCE):
                await run_in_threadpool(self.office.names)
        except TimeoutError:
            raise unavailable("the journal does not answer") from None
        return {"status": "ready"}

    async def metrics(self) -> Any:
        """The counts of the server and of its experiments, for Prometheus."""
        names = await run_in_threadpool(self.office.names)
        answers = await asyncio.gather(*map(self._numbers, names), return_exceptions=True)
        numbers = [answer for answer in answers if isinstance(answer, dict)]
        lines = [*self.meter.lines(), *experiment_lines(numbers), *self.watch.lines()]
        return text_answer("text", ("\n".join(lines) + "\n").encode("ascii", "replace"))

    async def _numbers(self, name: str) -> dict[str, Any]:
        waiting = self._desks.get(name) or await self._opened(name)
        desk = waiting.desk
        here = {"commits": desk.commits, "written": desk.written, "waiting": desk.waiting}
        async with asyncio.timeout(PATIENCE):
            return {**await waiting.answer(Look("summary")), **here, "repeated": self.meter.repeated[name]}


def check_fields(body: Any, shape: Any) -> None:
    """Refuse a body that is no object, has a field that its shape has not, or lacks one that is needed."""
    if not isinstance(body, dict):
        raise refuse("body", body, "an object")
    for name in body:
        if not shape.__annotations__:
            raise refuse("a field of the body", name, "left out: the body has no fields")
        known_word("a field of the body", name, shape.__annotations__)
    for name in sorted(shape.__required_keys__):
        if body.get(name) is None:
            raise refuse(name, None, "given", found="is missing")


def pairs_of(rewards: Any) -> list[tuple[Any, Any]]:
    if not isinstance(rewards, list):
        raise refuse("rewards", rewards, "a list of objects with id and reward")
    pairs = []
    for place, one in enumerate(rewards):
        if not isinstance(one, dict) or one.keys() != REWARD_FIELDS:
            raise refuse(f"rewards[{place}]", one, "an object with the fields id and reward, and no other")
        pairs.append((one["id"], one["reward"]))
    return pairs


def check_offer(body: Any) -> None:
    """Refuse actions and labels that are no lists, and so many trials with so many actions that the journal
    would grow out of proportion."""
    rows, labels, count = body.get("actions"), body.get("labels"), body.get("count")
    if rows is not None and not (isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
        raise refuse("actions", rows, "a list of lists of numbers, one for each action")
    if labels is not None and not isinstance(labels, list):
        raise refuse("labels", labels, "a list of names, one for each action")
    times = count if type(count) is int else 1
    numbers, signs = times * sum(map(len, rows or ())), 0
    for label in labels or ():
        shown_label("labels", label)
        signs += times * (len(label) if isinstance(label, str) else 20)  # characters, at most
    if numbers > MOST_OFFERED:
        raise refuse("count times the numbers of actions", numbers, f"at most {MOST_OFFERED}")
    if signs > MOST_SIGNS:
        raise refuse("count times the characters of labels", signs, f"at most {MOST_SIGNS}")


def check_sizes(body: Any) -> None:
    """Refuse an experiment that would fill the memory."""
    arms, dim = body.get("arms"), body.get("dim")
    if not isinstance(arms, list | None):
        raise refuse("arms", arms, "a list of at least two names")
    if arms and len(arms) > MOST_ARMS:
        raise refuse("the number of arms", len(arms), f"at most {MOST_ARMS}")
    if isinstance(dim, int) and dim > MOST_DIM:
        raise refuse("dim", dim, f"at most {MOST_DIM}")
