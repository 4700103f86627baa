"""The gate, through which every request comes in, and the route behind it: admission, the body, the answer,
and the sentence if anything is refused."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from time import perf_counter
from typing import Any, NoReturn, get_args
from urllib.parse import parse_qsl

from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lighttail.checks import EXACT, BadInput, enumerated, refuse
from lighttail.live.errors import UNKNOWN, Refused, status_of, unavailable, unknown
from lighttail.server.answers import Answer, Pair, Send, json_answer, problem, send_answer
from lighttail.server.guard import NO_KEY, Guard, check_role
from lighttail.server.metrics import Meter
from lighttail.server.reading import Gone, Receive, body_of, check_json, json_of, while_there

Scope = Any
MOST_INSIDE = 2_000  # requests at one moment; the next one is refused with 503
MOST_NAMED = 10  # experiments that a refusal names
NO_METHOD = 405
ALIVE = "/healthz"  # a full server is alive: whoever restarted it would make it worse
CLOSE: Pair = (b"connection", b"close")  # the next request had better go to another server
BEARER: Pair = (b"www-authenticate", b"Bearer")
ONCE = (b"host", b"origin", b"authorization", b"content-type", b"content-length")
HEADERS, MAY = "lighttail.headers", "lighttail.may"
LONGEST_NUMBER = 40  # characters of a number in a query
PageOf = Callable[[BadInput, Scope], Answer | None]
logger = logging.getLogger("lighttail")


class Gate:
    """Admits requests, counts them, and answers whatever goes wrong with a sentence.

    page_of: the refusal as a page, if a person is to read it; None otherwise. names: the names of all
    experiments, which a refusal may tell to whoever may read."""

    def __init__(
        self, app: Any, guard: Guard, meter: Meter, page_of: PageOf, names: Callable[[], list[str]]
    ) -> None:
        self.app, self.guard, self.meter, self.page_of, self.names = app, guard, meter, page_of, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = perf_counter(), 0
        method = scope["method"]
        if method == "HEAD":  # as GET; the web server leaves the body out
            scope = {**scope, "method": "GET"}

        async def sending(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            try:
                await send(message)
            except RuntimeError:  # the messages are in order, so the connection is not: it is closed
                raise Gone from None

        self.meter.inside += 1
        try:
            await self._admit(scope, receive, sending)
        except Gone:
            status = status or 499
        except Exception as error:
            if status:  # the answer has begun: the client must see that it is not whole
                raise
            await send_answer(self._refusal(await self._helped(error, scope), scope), sending)
        finally:
            self.meter.inside -= 1
            route = getattr(scope.get("route"), "path", None)
            method, route = ("any", "unknown") if route is None else (method, route)
            self.meter.answered(method, route, status, perf_counter() - begun)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        full = self.meter.inside > MOST_INSIDE
        if (self.meter.ending or full) and scope["path"] != ALIVE:
            why = "too many requests are being answered" if not self.meter.ending else "the server is ending"
            raise unavailable(f"{why}; send the request again later", "server")
        headers = scope[HEADERS] = dict(scope["headers"])
        if len(headers) < len(scope["headers"]):
            check_once(scope["headers"])
        scope[MAY] = self.guard.admitted(scope["path"], headers, scope["method"])
        await self.app(scope, receive, send)

    async def _helped(self, error: Exception, scope: Scope) -> Exception:
        """The refusal of the name of an experiment, with the names that there are, for those who may read."""
        unnamed = isinstance(error, Refused) and error.status == UNKNOWN and error.field == "name"
        if not unnamed or "read" not in scope.get(MAY, ()):
            return error
        try:
            names = await run_in_threadpool(self.names)
        except Exception:  # the journal cannot be read at this moment
            return error
        return error.adding(names_hint(str(error.value), names))  # type: ignore[attr-defined, no-any-return]

    def _refusal(self, error: Exception, scope: Scope) -> Answer:
        if not isinstance(error, BadInput):
            logger.error("a request failed", exc_info=error)
            error = Refused(f"the server made a mistake: {type(error).__name__}", field="server", status=500)
        if (page := self.page_of(error, scope)) is not None:
            return page
        status = status_of(error)
        if status == NO_METHOD:
            return problem(error, (b"allow", str(error.allowed).encode("ascii")))
        closing, key = (CLOSE,) if self.meter.ending else (), (BEARER,) if status == NO_KEY else ()
        return problem(error, *closing, *key)


class PlainRoute(APIRoute):
    """A route whose arguments FastAPI documents and does not check: the checks of the desk are the same for
    every caller, their sentences are our own, and no second model of a body is built."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        super().__init__(path, endpoint, **more)
        self.role: str | None = (more.get("openapi_extra") or {}).get("x-role")
        names = self.dependant.query_params
        self.queries = {field.name: float in get_args(field.field_info.annotation) for field in names}
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_role(scope[MAY], self.role)
        arguments = scope["path_params"]
        if scope["method"] == "POST":
            headers = scope[HEADERS]
            check_json(headers)
            arguments["body"] = json_of(await body_of(receive, headers))
        elif self.queries:
            arguments |= numbers_of(scope["query_string"], self.queries)
        work = self.endpoint(**arguments)
        answer = await (while_there(work, receive) if self.queries else work)
        await send_answer(answer if isinstance(answer, Answer) else json_answer(answer), send)


def names_hint(name: str, names: list[str]) -> str:
    """Which experiments there are: the one that was probably meant, or the newest.

    >>> names_hint("webb", ["web", "shop"]), names_hint("x", ["web", "shop"]), names_hint("x", [])
    ("; did you mean 'web'?", "; there are 'shop' and 'web'", '; there is none yet')
    """
    if near := get_close_matches(name, names, n=1):
        return f"; did you mean {near[0]!r}?"
    if not names:
        return "; there is none yet"
    shown = [repr(name) for name in names[: -MOST_NAMED - 1 : -1]]
    if (more := len(names) - MOST_NAMED) > 0:
        shown.append(f"{more:,} more")
    return f"; there {'is' if len(names) == 1 else 'are'} {enumerated(shown, 'and')}"


def check_once(headers: list[Pair]) -> None:
    """Refuse a header that is given twice and could be read in two ways."""
    names = [name for name, _ in headers]
    for name in ONCE:
        if names.count(name) > 1:
            header = f"the header {name.decode().title()}"
            raise refuse(header, None, "given once", found="is given more often")


def numbers_of(query: bytes, known: dict[str, bool]) -> dict[str, float]:
    """The numbers of a query. Raises BadInput for any other name or value.

    known: the names, and whether each may be another number than a whole one."""
    numbers: dict[str, float] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known or name in numbers:
            raise refuse("the query", name, f"one of {', '.join(known)}, once")
        if known[name]:
            with suppress(ValueError):
                if value.isascii() and len(value) <= LONGEST_NUMBER and math.isfinite(found := float(value)):
                    numbers[name] = found
            allowed = "a finite number"
        else:
            if value.isascii() and value.isdigit() and len(value) <= 16 and int(value) <= EXACT:
                numbers[name] = int(value)
            allowed = f"a whole number from 0 to {EXACT}"
        if name not in numbers:
            raise refuse(name, value, allowed)
    return numbers


async def refused(request: Request, error: Exception) -> NoReturn:
    """Refuse a path that no route has, or a method that none of its routes has."""
    path = request.url.path
    if getattr(error, "status_code", UNKNOWN) == NO_METHOD:
        routes = [route for route in request.app.routes if isinstance(route, APIRoute)]
        methods = {one for route in routes if route.path_regex.match(path) for one in route.methods or ()}
        allowed = ", ".join(sorted(methods))
        raise Refused(field="method", value=request.method, allowed=allowed, status=NO_METHOD)
    raise unknown(path, "path", "one of the routes that /docs lists")
