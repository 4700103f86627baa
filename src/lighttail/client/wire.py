"""Requests over HTTP with the standard library: connections that are kept, and tries until an answer comes.

Every request of lighttail is safe to repeat, so that one that was not answered is sent again, although the
server may have counted it."""

from __future__ import annotations

import json
import random
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from queue import Empty, LifoQueue
from typing import Any, NamedTuple

from lighttail.checks import Written, positive, refuse, web_address
from lighttail.live.errors import Refused
from lighttail.live.journal import encode

NOT_NOW = (502, 503, 504)
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds; each pause is twice the one before
LEAST_TRY = 0.25  # seconds for a try, also if less of the patience is left: a shorter one finds nothing out
MOST_IDLE = 64  # connections that are kept
sleep, clock = time.sleep, time.monotonic


class Unreachable(ConnectionError):
    """The server has not answered in time, or what answers is no server of lighttail. A request that was
    sent may have been counted; it may be sent again with the same key or ids."""


class TookTooLong(Unreachable):
    """The server was reached, but its answer took longer than the client waits."""


class Answer(NamedTuple):
    """An answer: its status, its body, and the seconds after which the server wants to be asked again."""

    status: int
    content: bytes
    later: float


class Wire:
    """Connections to one server, for any number of threads."""

    def __init__(self, url: Any, key: Any, timeout: Any, patience: Any) -> None:
        self.timeout, self.patience = positive("timeout", timeout), positive("patience", patience)
        self._secure, self._host, self._port, self._prefix = parts_of(url)
        self.url = str(url)
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {checked_key(key)}"
        self._idle: LifoQueue[HTTPConnection] = LifoQueue()

    def call(self, method: str, path: str, body: Any = None, slow: bool = False) -> Any:
        """The value of the answer. Raises Refused if the server refuses, Unreachable if none answers."""
        return value_of(self.url, self.answered(method, path, body, slow))

    def answered(self, method: str, path: str, body: Any = None, slow: bool = False) -> Answer:
        """The answer to a request, after as many tries as it takes. Raises Unreachable if none comes.

        slow: the server may need long for the answer, so that a try has all of the patience."""
        timeout = max(self.timeout, self.patience) if slow else self.timeout
        content = None if body is None else encode(body).encode("ascii")
        end, pause = clock() + self.patience, FIRST_PAUSE
        while True:
            room = min(timeout, max(LEAST_TRY, end - clock()))
            answer = self._tried(method, self._prefix + path, content, room)
            if isinstance(answer, Answer) and answer.status not in NOT_NOW:
                return answer
            later = answer.later if isinstance(answer, Answer) else 0.0
            wait = max(later, pause * random.uniform(0.5, 1.0))
            if clock() + wait >= end:
                if isinstance(answer, Answer):
                    return answer
                raise self._given_up(answer, slow) from answer
            sleep(wait)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _given_up(self, error: Exception, slow: bool) -> Unreachable:
        """What is raised after the last try, which met this error."""
        if isinstance(error, TookTooLong):
            name, seconds = ("patience", self.patience) if slow else ("timeout", self.timeout)
            said = f"the answer of {self.url} took longer than {min(seconds, self.patience):g} seconds"
            more = f"lt.connect(url, {name}={2.0 * seconds:g})"
            return TookTooLong(f"{said}; to wait longer, connect as in {more}; the request may be sent again")
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        said = f"{self.url} has not answered within {self.patience:g} seconds ({why})"
        return Unreachable(f"{said}; the request may be sent again")

    def _tried(self, method: str, path: str, content: bytes | None, timeout: float) -> Answer | Exception:
        """One try, or two: a kept connection may have been closed by the server meanwhile."""
        while True:
            (link, used), sent = self._link(timeout), False
            try:
                link.request(method, path, content, self._headers)
                sent = True
                response = link.getresponse()
                answer = Answer(response.status, response.read(), _later(response))
            except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: no such host can be
                link.close()
                if used and isinstance(error, ConnectionError):
                    continue
                return TookTooLong() if sent and isinstance(error, TimeoutError) else error
            except BaseException:  # Ctrl-C: the rest of the answer must not meet the next request
                link.close()
                raise
            self._keep(link, response)
            return answer

    def _link(self, timeout: float) -> tuple[HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        try:
            link = self._idle.get_nowait()
        except Empty:
            kind = HTTPSConnection if self._secure else HTTPConnection
            return kind(self._host, self._port, timeout=timeout), False
        link.timeout = timeout
        if link.sock is not None:
            link.sock.settimeout(timeout)
        return link, True

    def _keep(self, link: HTTPConnection, response: HTTPResponse) -> None:
        if response.will_close or self._idle.qsize() >= MOST_IDLE:
            link.close()
        else:
            self._idle.put(link)

    def close(self) -> None:
        """Close the connections that are kept; the next request opens a new one."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return


def value_of(url: str, answer: Answer) -> Any:
    """The value of a good answer. Raises Refused for a refusal, with the field, the value, what is allowed
    and the sentence of the server."""
    try:
        found = json.loads(answer.content)
        if 200 <= answer.status < 300:
            return found
        error = found["error"]
        said, field, value, allowed = (error[name] for name in ("message", "field", "value", "allowed"))
        if not isinstance(said, str):
            raise TypeError
    except (ValueError, LookupError, TypeError):
        raise Unreachable(f"{url} is no server of lighttail: it has answered {answer.status}") from None
    given = None if value is None else Written(str(value))
    refusal = Refused(said, field=field, value=given, allowed=allowed or "", status=answer.status)
    refusal.shown = value
    raise refusal


def parts_of(url: Any) -> tuple[bool, str, int | None, str]:
    """Whether an address is secure, its host, its port, and the path before all routes.

    >>> parts_of("http://127.0.0.1:8710"), parts_of("https://example.org/bandits/")
    ((False, '127.0.0.1', 8710, ''), (True, 'example.org', None, '/bandits'))
    """
    parts = web_address(url)
    if parts is None or parts.query or parts.fragment:
        raise refuse("url", url, "an address such as http://127.0.0.1:8710")
    return parts.scheme == "https", str(parts.hostname), parts.port, parts.path.rstrip("/")


def checked_key(key: Any) -> str:
    """A key, which can stand in a header. The refusal does not repeat the key."""
    if not isinstance(key, str) or not key or any(not "!" <= sign <= "~" for sign in key):
        raise refuse("key", None, "a key that `lighttail keys add` printed", found="is none")
    return key


def _later(response: HTTPResponse) -> float:
    """The seconds of `Retry-After`; 0 if there is none, or a date."""
    text = response.getheader("Retry-After", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0.0
