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
from typing import Any

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
        self.sessions = None if keys is None else Sessions(keys)
        self.names = {*HERE, *(str(name).lower() for name in names)}

    def admitted(self, path: str, headers: Headers, method: str = "GET") -> set[str]:
        """What the sender of a request may do. Raises Refused (401, 403) if it may not come in."""
        if path in OPEN:
            return ALL
        if self.sessions is not None:
            return set() if path in FOR_ALL else self.sessions.may(headers, method)
        host = text_of(headers, b"host").lower()
        if name_of(host) not in self.names:
            raise forbidden("Host", host, f"a name of this server ({', '.join(sorted(self.names))})")
        origin = text_of(headers, b"origin")
        if b"origin" in headers and origin.lower() != f"http://{host}":
            allowed = f"http://{host}, or left out: no page of another server may use this one"
            raise forbidden("Origin", origin, allowed)
        return ALL


def text_of(headers: Headers, name: bytes) -> str:
    """The text of a header; empty if it is missing."""
    return headers.get(name, b"").decode("latin-1")


def forbidden(field: str, value: str | None, allowed: str, found: str | None = None) -> Refused:
    """The refusal of a request that came in, and may not do this."""
    return Refused(field=field, value=value, allowed=allowed, found=found, status=FORBIDDEN)


def check_same_origin(headers: Headers) -> None:
    """Raise Refused (403) unless a page of this server sent the request. Browsers say so in `Sec-Fetch-Site`
    (over TLS and on this machine), which also holds behind a proxy that changes `Host`; without it the
    `Origin`, which browsers add to every form, must name this server."""
    if b"sec-fetch-site" in headers:
        site, allowed = text_of(headers, b"sec-fetch-site"), "same-origin"
        if site != allowed:
            raise forbidden("Sec-Fetch-Site", site, allowed)
        return
    host, origin = text_of(headers, b"host").lower(), text_of(headers, b"origin").lower()
    if not host or origin not in (f"http://{host}", f"https://{host}"):
        allowed = f"http://{host}, because no page of another server may use this one"
        raise forbidden("Origin", origin or None, allowed, None if origin else "is missing")


def check_role(may: set[str], role: str | None) -> None:
    """Raise Refused (403) unless one may do what the role stands for. None: whoever was admitted may."""
    if role is not None and role not in may:
        allowed = f"a key with the role {role}" + ("" if role == "manage" else " or manage")
        raise forbidden("Authorization", None, allowed, "has another role")


def name_of(host: str) -> str:
    """The name of a host without its port.

    >>> name_of("localhost:8710"), name_of("[::1]:8710"), name_of("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


class Sessions:
    """The sessions of a server, in its memory alone, by the digest of the token."""

    def __init__(self, keys: Keys, clock: Callable[[], float] = time.monotonic) -> None:
        self.keys, self.clock = keys, clock
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()  # a key's digest, and the end

    def may(self, headers: Headers, method: str) -> set[str]:
        """What the holder of a key may do, or a browser with the cookie of a session. Raises Refused (401);
        the refusal does not repeat the key."""
        if b"authorization" not in headers and (tokens := tokens_of(headers)):
            if method not in READING:
                check_same_origin(headers)
            key, why = self.find(tokens), "is missing, and the session of the cookie has ended"
        else:
            sent = text_of(headers, b"authorization")
            kind, _, text = sent.partition(" ")
            key = self.keys.find(text.strip()) if kind.lower() == "bearer" else None
            why = "names none of them" if sent else "is missing"
        if key is None:
            allowed = "'Bearer' and a key of this server"
            raise Refused(field="Authorization", allowed=allowed, found=why, status=NO_KEY)
        return MAY[key.role]

    def begin(self, text: str) -> str | None:
        """The token of a new session of the key with this text; None if there is no such key."""
        if (key := self.keys.find(text)) is None:
            return None
        token = secrets.token_urlsafe(32)
        self._known[_mark(token)] = key.digest, self.clock() + WEEK
        if len(self._known) > MOST_SESSIONS:
            self._known.popitem(last=False)
        return token

    def find(self, tokens: list[str]) -> Key | None:
        """The key of the first token whose session goes on; None if none does."""
        for token in tokens[:MOST_TRIED]:
            digest, until = self._known.get(_mark(token), ("", 0.0))
            if self.clock() < until and (key := self.keys.with_digest(digest)) is not None:
                return key
            self.end([token])
        return None

    def end(self, tokens: list[str]) -> None:
        for token in tokens[:MOST_TRIED]:
            self._known.pop(_mark(token), None)


def _mark(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def cookie_name(headers: Headers) -> str:
    """The name of the cookie: with the port under which a browser reaches the server.

    >>> cookie_name({b"host": b"localhost:8710"}), cookie_name({b"host": b"[::1]"})
    ('lighttail_8710', 'lighttail')
    """
    _, colon, port = text_of(headers, b"host").rpartition(":")
    return f"lighttail_{port}" if colon and port.isascii() and port.isdigit() else "lighttail"


def tokens_of(headers: Headers) -> list[str]:
    """The tokens that a browser keeps for this server: there may be more than one cookie of a name.

    >>> tokens_of({b"host": b"a:81", b"cookie": b"lighttail_81=x; lighttail_80=y; lighttail_81=z"})
    ['x', 'z']
    """
    pairs = (part.strip().partition("=") for part in text_of(headers, b"cookie").split(";"))
    wanted = cookie_name(headers)
    return [token for name, _, token in pairs if name == wanted and token]


def token_cookie(token: str, headers: Headers) -> tuple[bytes, bytes]:
    """The cookie that keeps a token: no script reads it, and no page of another server makes use of it. An
    empty token removes the cookie."""
    secure = "; Secure" if headers.get(b"origin", b"").startswith(b"https://") else ""
    age = WEEK if token else 0
    text = f"{cookie_name(headers)}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
    return (b"set-cookie", text.encode("ascii"))
