"""Answers on their way out: JSON, refusals with their four fields, and lines that are sent page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

from lighttail.checks import BadInput
from lighttail.live.errors import UNAVAILABLE, status_of
from lighttail.live.journal import encode

Send = Callable[[Any], Awaitable[None]]
Pair = tuple[bytes, bytes]
JSON = (b"content-type", b"application/json")
NO_STORE = (b"cache-control", b"no-store")  # no proxy and no browser keeps what needs a key
NO_SNIFFING = (b"x-content-type-options", b"nosniff")
RETRY = (b"retry-after", b"1")
KINDS = {"text": b"text/plain; version=0.0.4; charset=utf-8", "lines": b"application/x-ndjson"}


class Answer(NamedTuple):
    """An answer that is ready: its status, its bytes or pages of bytes, and headers besides their length."""

    status: int
    content: bytes | AsyncIterator[bytes]
    headers: tuple[Pair, ...] = (JSON, NO_STORE)


def json_answer(value: Any, status: int = 200, *more: Pair) -> Answer:
    """A value as JSON. more: further headers."""
    return Answer(status, encode(value).encode("ascii"), (JSON, NO_STORE, *more))


def text_answer(kind: str, content: bytes | AsyncIterator[bytes]) -> Answer:
    """Plain text, or lines of JSON."""
    return Answer(200, content, ((b"content-type", KINDS[kind]), NO_STORE))


def problem(error: BadInput, *more: Pair) -> Answer:
    """A refusal, with its field, value, what is allowed, and one sentence."""
    status = status_of(error)
    later = (RETRY,) if status == UNAVAILABLE else ()
    return json_answer({"error": error.to_dict()}, status, *later, *more)


async def send_answer(answer: Answer, send: Send) -> None:
    """Send an answer whole, or page by page."""
    content, headers = answer.content, [*answer.headers, NO_SNIFFING]
    if isinstance(content, bytes):
        headers.insert(0, (b"content-length", b"%d" % len(content)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if isinstance(content, bytes):
        await send({"type": "http.response.body", "body": content})
        return
    async for page in content:
        await send({"type": "http.response.body", "body": page, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
