"""The watch over risk budgets: it forecasts experiments that have one, and lets their desks raise alarms.

A forecast is due when enough rewards were heard since the last one, and not too soon after it, so that the
watch takes a small part of one processor."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool

from lighttail.checks import BadInput
from lighttail.live import Office
from lighttail.live.alarms import MEANS, Found
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.requests import Look, Note, Weigh
from lighttail.server.forecasts import Forecasts
from lighttail.server.metrics import family, labels
from lighttail.server.webhook import Webhook

FIRST = 50  # rewards before the first forecast: earlier it would be about the prior
GROWN, LEAST = 1.05, 20  # rewards that a further forecast needs: 5 % more, and at least so many more
EVERY = 5.0  # seconds between two forecasts of an experiment, at least
SHARE = 10.0  # and at least so many times the seconds that the last one took
SELDOM = 60.0  # seconds between two looks at an experiment without a risk budget
logger = logging.getLogger("lighttail")
Opened = Callable[[str], Awaitable[AsyncDesk]]


class Seen:
    """What the watch knows about an experiment. next: when to look again. heard, risk: at the last
    forecast. chance: the last forecast; None if there is none. failed: why there is none, if there was."""

    def __init__(self) -> None:
        self.next, self.heard = 0.0, 0
        self.risk: dict[str, Any] | None = None
        self.chance: float | None = None
        self.failed = ""


def is_due(heard: int, before: int) -> bool:
    """Whether a forecast is due after `heard` rewards. before: at the last forecast; 0 if there was none.

    >>> is_due(49, 0), is_due(50, 0), is_due(69, 50), is_due(70, 50), is_due(10_499, 10_000)
    (False, True, False, True, False)
    """
    return heard >= max(FIRST, GROWN * before, before + LEAST if before else 0)


class Watch:
    """Looks at all experiments of an office, one after another."""

    def __init__(
        self, office: Office, opened: Opened, forecasts: Forecasts, webhook: Webhook | None = None
    ) -> None:
        self.office, self.opened, self.forecasts, self.webhook = office, opened, forecasts, webhook
        self.seen: dict[str, Seen] = {}

    def changed(self, name: str) -> None:
        """The settings of an experiment may have changed: look soon."""
        self.seen.setdefault(name, Seen()).next = 0.0

    async def work(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(EVERY / 2.0)
            with suppress(Exception):  # the journal cannot be read at this moment
                await self.look()

    async def look(self) -> None:
        """Look at every experiment whose time has come."""
        for name in await run_in_threadpool(self.office.names):
            seen = self.seen.setdefault(name, Seen())
            if time.monotonic() < seen.next:
                continue
            try:
                await self._one(name, seen)
            except BadInput as error:  # no forecast is possible, or the journal cannot be written now
                if error.sentence != seen.failed:
                    logger.warning("the risk budget of %s is not watched: %s", name, error)
                seen.failed, seen.chance = error.sentence, None
                seen.next = time.monotonic() + EVERY

    async def _one(self, name: str, seen: Seen) -> None:
        desk = await self.opened(name)
        risk, heard = await desk.answer(Look("risk"))
        if risk is None:
            seen.next, seen.risk, seen.chance, seen.failed = time.monotonic() + SELDOM, None, None, ""
            return
        before = seen.heard if seen.risk == risk else 0
        if not is_due(heard, before):
            seen.next = time.monotonic() + EVERY
            return
        begun = time.monotonic()
        try:
            outlook, made = await self.forecasts.made(desk)
        except BadInput as error:
            if error.field == MEANS:
                message = f"{error.sentence[:1].upper()}{error.sentence[1:]}."
                self._post(name, await desk.answer(Note(risk, message)))
            raise
        took = time.monotonic() - begun
        seen.next = time.monotonic() + max(EVERY, SHARE * took)
        if outlook.settings.risk != risk:
            return
        seen.risk, seen.heard, seen.chance, seen.failed = risk, heard, made["chance"]["value"], ""
        event = await desk.answer(Weigh(Found.of(risk, made["chance"], outlook.seq)))
        if event is not None:
            said = (name, event["state"], event["loss"], event["chance"], event["limit"])
            logger.warning("the alarm of %s is %s: a loss of %g or more has the chance %g (limit %g)", *said)
            self._post(name, event)

    def _post(self, name: str, event: dict[str, Any] | None) -> None:
        if event is not None and self.webhook is not None:
            self.webhook.post({"experiment": name, **event})

    def lines(self) -> Iterable[str]:
        """The last forecasts, and what is not watched, for Prometheus."""
        name = "lighttail_experiment_forecast_chance"
        yield from family(name, "gauge", "The chance of the loss in settings.risk, as last forecast here.")
        for experiment, seen in sorted(self.seen.items()):
            if seen.chance is not None:
                yield f"{name}{labels(experiment=experiment)} {seen.chance!r}"
        name = "lighttail_experiment_unwatched"
        yield from family(name, "gauge", "1 if settings.risk cannot be held against a forecast here.")
        for experiment, seen in sorted(self.seen.items()):
            yield f"{name}{labels(experiment=experiment)} {int(bool(seen.failed))}"
        if self.webhook is not None:
            yield from self.webhook.lines()
