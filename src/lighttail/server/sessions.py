"""Sessions of browsers: a random token stands for a key, so that no browser keeps the key itself.

Browsers send a cookie to every port of a host. The name of the cookie therefore has the port of the server,
so that two servers do not overwrite each other's, and what the program at another port may see is never a
key, but a token that ends after a week, when its key is removed, or when the server ends."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from lighttail.server.keys import Key, Keys
from lighttail.server.reading import Headers

WEEK = 7 * 24 * 3600  # seconds
MOST_SESSIONS = 10_000  # the oldest ones end
MOST_TRIED = 20  # cookies of one name in a request


class Session(NamedTuple):
    """A session: the digest of its key, and when it ends."""

    key: str
    until: float


class Sessions:
    """The sessions of a server, in its memory alone, by the digest of the token."""

    def __init__(self, keys: Keys, clock: Callable[[], float] = time.monotonic) -> None:
        self.keys, self.clock = keys, clock
        self._known: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, text: str) -> str | None:
        """The token of a new session of the key with this text; None if there is no such key."""
        if (key := self.keys.find(text)) is None:
            return None
        token = secrets.token_urlsafe(32)
        self._known[_mark(token)] = Session(key.digest, self.clock() + WEEK)
        if len(self._known) > MOST_SESSIONS:
            self._known.popitem(last=False)
        return token

    def find(self, tokens: list[str]) -> Key | None:
        """The key of the first token whose session goes on; None if none does."""
        for token in tokens[:MOST_TRIED]:
            session = self._known.get(_mark(token))
            if session is None:
                continue
            key = self.keys.with_digest(session.key) if self.clock() < session.until else None
            if key is not None:
                return key
            self.end([token])
        return None

    def end(self, tokens: list[str]) -> None:
        """End the sessions of these tokens."""
        for token in tokens[:MOST_TRIED]:
            self._known.pop(_mark(token), None)


def _mark(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def cookie_name(headers: Headers) -> str:
    """The name of the cookie: with the port under which a browser reaches the server.

    >>> cookie_name({b"host": b"localhost:8710"}), cookie_name({b"host": b"[::1]"})
    ('lighttail_8710', 'lighttail')
    """
    _, colon, port = headers.get(b"host", b"").decode("latin-1").rpartition(":")
    return f"lighttail_{port}" if colon and port.isascii() and port.isdigit() else "lighttail"


def tokens_of(headers: Headers) -> list[str]:
    """The tokens that a browser keeps for this server: there may be more than one cookie of a name.

    >>> tokens_of({b"host": b"a:81", b"cookie": b"lighttail_81=x; lighttail_80=y; lighttail_81=z"})
    ['x', 'z']
    """
    wanted, found = cookie_name(headers), []
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted and value:
            found.append(value)
    return found


def token_cookie(token: str, headers: Headers) -> tuple[bytes, bytes]:
    """The cookie that keeps a token: no script reads it, and no page of another server makes use of it. An
    empty token removes the cookie."""
    secure = "; Secure" if headers.get(b"origin", b"").startswith(b"https://") else ""
    age = WEEK if token else 0
    text = f"{cookie_name(headers)}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
    return (b"set-cookie", text.encode("ascii"))
