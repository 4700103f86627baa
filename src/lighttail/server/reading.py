"""The body of a request: read within a limit of bytes and seconds, and understood as JSON without
surprises."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn

from lighttail.checks import BadInput, refuse
from lighttail.live.errors import Refused

Receive = Callable[[], Awaitable[Any]]
Headers = dict[bytes, bytes]
LARGEST_BODY = 2**20  # bytes
LONGEST_READ = 10.0  # seconds for all of a body
DEEPEST = 16  # lists and objects within one another
TIMEOUT, TOO_LARGE, NOT_JSON = 408, 413, 415
INNERMOST = re.compile(rb"\[\]|\{\}")
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class Gone(Exception):
    """The client has closed the connection: there is nobody to answer."""


async def body_of(receive: Receive, headers: Headers) -> bytes:
    """All bytes of the body. Raises Refused (413, 408) if there are too many or they come too slowly."""
    if (told := headers.get(b"content-length")) is not None and told.isdigit() and len(told) < 19:
        _check_length(int(told))
    try:
        async with asyncio.timeout(LONGEST_READ):
            return await _all_of(receive)
    except TimeoutError:
        why = f"the body must be complete within {LONGEST_READ:g} seconds, but was not"
        raise Refused(why, field="body", status=TIMEOUT) from None


async def while_there(work: Coroutine[Any, Any, Any], receive: Receive) -> Any:
    """What the work returns, while the client waits for it. Raises Gone, and ends the work, if the client
    closes the connection before: nobody else should wait for an answer that nobody reads."""
    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Gone
        return doing.result()
    finally:
        doing.cancel()
        leaving.cancel()


async def _left(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _all_of(receive: Receive) -> bytes:
    parts, length, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        _check_length(length)
        more = message.get("more_body", False)
    return b"".join(parts)


def _check_length(length: int) -> None:
    if length > LARGEST_BODY:
        allowed = f"at most {LARGEST_BODY} bytes"
        raise Refused(field="the size of the body", value=length, allowed=allowed, status=TOO_LARGE)


def check_json(headers: Headers) -> None:
    """Raise Refused (415) unless the content type is JSON, which no form of a foreign web page can send."""
    if (kind := content_type(headers)) != "application/json":
        allowed, found = "application/json, also if there is no body", None if kind else "is missing"
        more = '; add -H "Content-Type: application/json" to a curl command'
        raise wrong_type(kind or None, allowed, found=found, more=more)


def content_type(headers: Headers) -> str:
    """The content type of the body, without its parameters."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")


def wrong_type(kind: str | None, allowed: str, **more: Any) -> Refused:
    return Refused(field="Content-Type", value=kind, allowed=allowed, status=NOT_JSON, **more)


def _no_number(word: str) -> NoReturn:
    raise refuse("body", word, "JSON, which has no such number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, times in counts.items() if times > 1)
        raise refuse("a field of the body", twice, "named once")
    return fields


_decode = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_once).decode


def json_of(body: bytes) -> Any:
    """The value of a JSON text. An empty text counts as an object without fields.

    >>> json_of(b'{"key": "visit 1"}')
    {'key': 'visit 1'}
    """
    if not body:
        return {}
    try:
        text = body.decode("utf-8")
        if body.count(b"[") + body.count(b"{") > DEEPEST:
            _check_depth(body)
        return _decode(text)
    except UnicodeDecodeError:
        raise refuse("body", None, "JSON in UTF-8", found="is not") from None
    except json.JSONDecodeError as error:
        where = f"is not, at line {error.lineno}, column {error.colno}"
        raise refuse("body", None, "JSON", found=where) from None
    except RecursionError:
        raise _too_deep() from None
    except BadInput:
        raise
    except ValueError:  # a whole number of thousands of digits
        raise refuse("body", None, "JSON with shorter numbers", found="is not") from None


def without_strings(body: bytes) -> bytes:
    """A JSON text without its strings, in a time that grows in proportion to its length, also if a string
    does not end: every second piece between quotes, after the escaped quotes are taken away.

    >>> without_strings(b'{"a [": ["b", 1]}'), without_strings(rb'["\\" {"]'), without_strings(b'["a[[')
    (b'{: [, 1]}', b'[]', b'[')
    """
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2])


def _check_depth(body: bytes) -> None:
    """Refuse lists and objects that are nested too deeply, before anything is built from them: what is left
    if the innermost brackets are taken away, one level after another."""
    left = without_strings(body).translate(None, NO_BRACKETS)
    for _ in range(DEEPEST):
        if not left:
            return
        left = INNERMOST.sub(b"", left)
    if left:
        raise _too_deep()


def _too_deep() -> Refused:
    allowed = f"at most {DEEPEST} lists and objects within one another"
    return Refused(field="body", allowed=allowed, found="has more")
