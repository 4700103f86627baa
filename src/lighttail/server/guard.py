"""Who may come in: holders of a key or, without keys, programs of this machine that are no foreign web
page.

In a browser a random token stands for a key, so that no browser keeps the key itself. Browsers send a cookie
to every port of a host. The name of the cookie therefore has the port of the server, so that two servers do
not overwrite each other's, and what the program at another port may see is never a key, but a token that ends
after a week, when its key is removed, or when the server ends."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from lighttail.dashboard.page import FILES
from lighttail.live.errors import Refused
from lighttail.server.keys import MAY, Key, Keys
from lighttail.server.reading import Headers

OPEN = ("/healthz", "/readyz")  # for probes, which have no key
FOR_ALL = ("/login", "/logout", *(f"/static/{name}" for name in FILES))  # before a key is known
READING = ("GET", "HEAD")
HERE = ("localhost", "127.0.0.1", "[::1]")
NO_KEY, FORBIDDEN = 401, 403
ALL = MAY["manage"]
WEEK = 7 * 24 * 3600  # seconds
MOST_SESSIONS = 10_000  # the oldest ones end
MOST_TRIED = 20  # cookies of one name in a request


class Guard:
    """Admits requests. names: the hosts besides this machine's own names under which it is reached."""

    def __init__(self, keys: Keys | None = None, names: Any = ()) -> None:
        self.keys = keys
        self.sessions = None if keys is None else Sessions(keys)
        self.names = {*HERE, *(str(name).lower() for name in names)}

    def admitted(self, path: str, headers: Headers, method: str = "GET") -> set[str]:
        """What the sender of a request may do. Raises Refused (401, 403) if it may not come in."""
        if path in OPEN:
            return ALL
        if self.keys is not None and self.sessions is not None:
            if path in FOR_ALL:
                return set()
            if b"authorization" not in headers and (tokens := tokens_of(headers)):
                if method not in READING:
                    check_same_origin(headers)
                return self._visitor(self.sessions, tokens)
            return self._holder(self.keys, headers.get(b"authorization", b""))
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if name_of(host) not in self.names:
            allowed = f"a name of this server ({', '.join(sorted(self.names))})"
            raise Refused(field="Host", value=host, allowed=allowed, status=FORBIDDEN)
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host}":
            shown = origin.decode("latin-1")
            allowed = f"http://{host}, or left out: no page of another server may use this one"
            raise Refused(field="Origin", value=shown, allowed=allowed, status=FORBIDDEN)
        return ALL

    def _holder(self, keys: Keys, given: bytes) -> set[str]:
        """What the holder of a key may do. The refusal does not repeat the key."""
        kind, _, text = given.decode("latin-1").partition(" ")
        key = keys.find(text.strip()) if kind.lower() == "bearer" else None
        if key is None:
            raise no_key("names none of them" if given else "is missing")
        return MAY[key.role]

    def _visitor(self, sessions: Sessions, tokens: list[str]) -> set[str]:
        """What a browser may do whose cookies have these tokens."""
        key = sessions.find(tokens)
        if key is None:
            raise no_key("is missing, and the session of the cookie has ended")
        return MAY[key.role]


def no_key(found: str) -> Refused:
    """The refusal of a request without a key."""
    allowed = "'Bearer' and a key of this server"
    return Refused(field="Authorization", allowed=allowed, found=found, status=NO_KEY)


def check_same_origin(headers: Headers) -> None:
    """Raise Refused (403) unless a page of this server sent the request. Browsers say so in `Sec-Fetch-Site`
    (over TLS and on this machine), which also holds behind a proxy that changes `Host`; without it the
    `Origin`, which browsers add to every form, must name this server."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        if site == b"same-origin":
            return
        raise Refused(
            field="Sec-Fetch-Site", value=site.decode("latin-1"), allowed="same-origin", status=FORBIDDEN
        )
    host = headers.get(b"host", b"").decode("latin-1").lower()
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    if not host or origin not in (f"http://{host}", f"https://{host}"):
        allowed = f"http://{host}, because no page of another server may use this one"
        missing = {} if origin else {"found": "is missing"}
        raise Refused(field="Origin", value=origin or None, allowed=allowed, status=FORBIDDEN, **missing)


def check_role(may: set[str], role: str | None) -> None:
    """Raise Refused (403) unless one may do what the role stands for. None: whoever was admitted may."""
    if role is not None and role not in may:
        allowed = (
            f"a key with the role {role}" if role == "manage" else f"a key with the role {role} or manage"
        )
        raise Refused(field="Authorization", allowed=allowed, found="has another role", status=FORBIDDEN)


def name_of(host: str) -> str:
    """The name of a host without its port.

    >>> name_of("localhost:8710"), name_of("[::1]:8710"), name_of("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


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
