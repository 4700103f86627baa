"""A webhook: alarms are posted to an address that the operator named, beside everything else."""

from __future__ import annotations

import http.client
import json
import logging
import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from queue import Full, Queue
from typing import Any
from urllib.parse import urlsplit

from lighttail.checks import refuse, shown
from lighttail.server.metrics import family

PATIENCE = 5.0  # seconds per try
PAUSES = (1.0, 5.0)  # seconds between tries
MOST_WAITING = 100
USED = "lighttail"
logger = logging.getLogger(USED)
sleep = time.sleep


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
        """The counts, for Prometheus."""
        for name, count, meaning in (
            ("lighttail_webhook_sent_total", self.sent, "Alarms that the webhook has taken."),
            ("lighttail_webhook_failed_total", self.failed, "Alarms that could not be posted."),
        ):
            yield from family(name, "counter", meaning)
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
    try:
        if not isinstance(url, str) or not url.isascii() or any(sign <= " " for sign in url):
            raise ValueError
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
            raise ValueError
    except ValueError:
        raise refuse("webhook", None, fit, found=f"is {_beginning(url)}") from None
    query = f"?{parts.query}" if parts.query else ""
    return parts.scheme == "https", host, port, (parts.path or "/") + query


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
