"""The watch over risk budgets: it forecasts experiments that have one, and lets their desks raise alarms. A
webhook posts the alarms to an address that the operator named, beside everything else.

A forecast is due when enough rewards were heard since the last one, and not too soon after it, so that the
watch takes a small part of one processor."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from queue import Full, Queue
from typing import Any

from starlette.concurrency import run_in_threadpool

from lighttail.checks import BadInput, refuse, shown, web_address
from lighttail.live import Office
from lighttail.live.alarms import MEANS, Found
from lighttail.live.awaiting import AsyncDesk
from lighttail.live.requests import Look, Note, Weigh
from lighttail.server.forecasts import Forecasts
from lighttail.server.metrics import heading, labels

FIRST = 50  # rewards before the first forecast: earlier it would be about the prior
GROWN, LEAST = 1.05, 20  # rewards that a further forecast needs: 5 % more, and at least so many more
EVERY = 5.0  # seconds between two forecasts of an experiment, at least
SHARE = 10.0  # and at least so many times the seconds that the last one took
SELDOM = 60.0  # seconds between two looks at an experiment without a risk budget
PATIENCE = 5.0  # seconds per try to post an alarm
PAUSES = (1.0, 5.0)  # seconds between tries
MOST_WAITING = 100  # alarms
USED = "lighttail"
logger = logging.getLogger(USED)
sleep = time.sleep
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
        while True:
            await asyncio.sleep(EVERY / 2.0)
            with suppress(Exception):  # the journal cannot be read at this moment
                await self.look()

    async def look(self) -> None:
        """Look at every experiment whose time has come."""
        for name in await run_in_threadpool(self.office.names):
            seen = self.seen.setdefault(name, Seen())
            begun = time.monotonic()
            if begun < seen.next:
                continue
            seen.next, pause = begun, 0.0
            try:
                pause = await self._one(name, seen)
            except BadInput as error:  # no forecast is possible, or the journal cannot be written now
                if error.sentence != seen.failed:
                    logger.warning("the risk budget of %s is not watched: %s", name, error)
                seen.failed, seen.chance, pause = error.sentence, None, EVERY
            finally:
                if seen.next == begun:  # `changed` was not called meanwhile
                    end = time.monotonic()
                    seen.next = end + (pause or max(EVERY, SHARE * (end - begun)))

    async def _one(self, name: str, seen: Seen) -> float:
        """Look at one experiment; the seconds until the next look."""
        desk = await self.opened(name)
        risk, heard = await desk.answer(Look("risk"))
        if risk is None:
            seen.risk, seen.chance, seen.failed = None, None, ""
            return SELDOM
        before = seen.heard if seen.risk == risk else 0
        if not is_due(heard, before):
            return EVERY
        begun = time.monotonic()
        try:
            outlook, forecast = await self.forecasts.made(desk)
        except BadInput as error:
            if error.field == MEANS:
                message = f"{error.sentence[:1].upper()}{error.sentence[1:]}."
                self._post(name, await desk.answer(Note(risk, message)))
            raise
        pause = max(EVERY, SHARE * (time.monotonic() - begun))
        if outlook.settings.risk != risk:
            return pause
        seen.risk, seen.heard, seen.chance, seen.failed = risk, heard, forecast["chance"]["value"], ""
        event = await desk.answer(Weigh(Found.of(risk, forecast["chance"], outlook.seq)))
        if event is not None:
            said = (name, event["state"], event["loss"], event["chance"], event["limit"])
            logger.warning("the alarm of %s is %s: a loss of %g or more has the chance %g (limit %g)", *said)
            self._post(name, event)
        return pause

    def _post(self, name: str, event: dict[str, Any] | None) -> None:
        if event is not None and self.webhook is not None:
            self.webhook.post({"experiment": name, **event})

    def lines(self) -> Iterable[str]:
        """The last forecasts, and what is not watched, for Prometheus."""
        name = "lighttail_experiment_forecast_chance"
        yield from heading(name, "gauge", "The chance of the loss in settings.risk, as last forecast here.")
        for experiment, seen in sorted(self.seen.items()):
            if seen.chance is not None:
                yield f"{name}{labels(experiment=experiment)} {seen.chance!r}"
        name = "lighttail_experiment_unwatched"
        yield from heading(name, "gauge", "1 if settings.risk cannot be held against a forecast here.")
        for experiment, seen in sorted(self.seen.items()):
            yield f"{name}{labels(experiment=experiment)} {int(bool(seen.failed))}"
        if self.webhook is not None:
            yield from self.webhook.lines()


class Webhook:
    """Posts JSON to one address in a thread of its own. An alarm that cannot be posted is counted and logged;
    the journal has it in any case. sent, failed: how many alarms were taken, and were not."""

    def __init__(self, url: Any) -> None:
        self._secure, self._host, self._port, self._path = address_of(url)
        self._queue: Queue[dict[str, Any] | None] = Queue(MOST_WAITING)
        self.sent = self.failed = 0
        self._thread = threading.Thread(target=self._work, name="webhook", daemon=True)
        self._thread.start()

    def post(self, body: dict[str, Any]) -> None:
        """Let a body wait for its turn. Returns at once."""
        try:
            self._queue.put_nowait(body)
        except Full:
            self._failed(body, "too many alarms wait")

    def close(self) -> None:
        """Post what waits, for a few seconds, and end."""
        with suppress(Full):
            self._queue.put_nowait(None)
        self._thread.join(PATIENCE)

    def lines(self) -> Iterable[str]:
        for name, count, meaning in (
            ("lighttail_webhook_sent_total", self.sent, "Alarms that the webhook has taken."),
            ("lighttail_webhook_failed_total", self.failed, "Alarms that could not be posted."),
        ):
            yield from heading(name, "counter", meaning)
            yield f"{name} {count}"

    def _work(self) -> None:
        while (body := self._queue.get()) is not None:
            why = ""
            for pause in (0.0, *PAUSES):
                sleep(pause)
                try:
                    why = self._tried(body)
                except (OSError, http.client.HTTPException, UnicodeError) as error:
                    why = f"{type(error).__name__}: {error}"
                if not why:
                    self.sent += 1
                    break
            else:
                self._failed(body, why)

    def _tried(self, body: dict[str, Any]) -> str:
        """Why a try failed; empty if it did not. A redirect is not followed."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        link = kind(self._host, self._port, timeout=PATIENCE)
        try:
            headers = {"Content-Type": "application/json", "User-Agent": USED}
            link.request("POST", self._path, json.dumps(body).encode("ascii"), headers)
            answer = link.getresponse()
            answer.read(1)
            return "" if 200 <= answer.status < 300 else f"the answer was {answer.status}"
        finally:
            link.close()

    def _failed(self, body: dict[str, Any], why: str) -> None:
        self.failed += 1
        logger.error("the alarm of %s could not be posted: %s", body.get("experiment"), why)


def address_of(url: Any) -> tuple[bool, str, int | None, str]:
    """Whether an address is secure, its host, its port, and the path with the query.

    >>> address_of("https://hooks.example.org/lighttail?team=4")
    (True, 'hooks.example.org', None, '/lighttail?team=4')
    """
    fit = "an address such as https://hooks.example.org/lighttail, without a user and a password"
    parts = web_address(url)
    if parts is None:
        raise refuse("webhook", None, fit, found=f"is {_beginning(url)}")
    query = f"?{parts.query}" if parts.query else ""
    return parts.scheme == "https", str(parts.hostname), parts.port, (parts.path or "/") + query


def _beginning(url: Any) -> str:
    """A wrong address up to its host, without a user: the rest may be a secret.

    >>> _beginning("foo"), _beginning("ftp://me:word@hooks.example.org/secret")
    ("'foo'", "'ftp://hooks.example.org...'")
    """
    if not isinstance(url, str):
        return shown(url)
    scheme, mark, rest = url.rpartition("://")
    host = re.split(r"[/?#]", rest)[0]
    named = scheme + mark + host.rpartition("@")[2]
    return shown(named if len(host) == len(rest) else f"{named}...")
