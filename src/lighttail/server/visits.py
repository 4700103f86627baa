"""Visits of people with a browser: texts of queries and forms, cookies, and pages in place of JSON.

A form is sent by people alone: whether it comes from a page of this server is checked here, because browsers
let every page send forms to every server."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from lighttail.checks import BadInput, refuse
from lighttail.dashboard.page import error_page, login_page
from lighttail.live.errors import status_of
from lighttail.server.answers import NO_STORE, Answer, Pair, Send, send_answer
from lighttail.server.gate import BEARER, HEADERS, MAY, PlainRoute, Scope
from lighttail.server.guard import FORBIDDEN, NO_KEY, check_role, check_same_origin, tokens_of
from lighttail.server.reading import Headers, Receive, body_of, content_type, wrong_type

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 50
SEE_OTHER = 303
RULES = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE: tuple[Pair, ...] = (
    (b"content-security-policy", RULES.encode("ascii")),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers would send forms without their origin
    (b"cross-origin-opener-policy", b"same-origin"),
    NO_STORE,
)


class Visit(Request):
    """A request for a page. may: what the visitor may do. fields: of the form. signed: whether a cookie
    stands for the visitor's key."""

    def __init__(self, scope: Scope, form: bytes) -> None:
        super().__init__(scope)
        self.head: Headers = scope[HEADERS]
        self.may: set[str] = scope[MAY]
        self.fields = texts_of(form)
        self.signed = bool(tokens_of(self.head))

    @property
    def texts(self) -> dict[str, str]:
        return texts_of(self.scope["query_string"])

    @property
    def last(self) -> str:
        """The last word of the route. (That of the path may end with a line break.)"""
        return str(self.scope["route"].path.rpartition("/")[2])


class PageRoute(PlainRoute):
    """A route that people visit: a query and a form are texts, and the answer is a page."""

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_role(scope[MAY], self.role)
        form = b""
        if scope["method"] == "POST":
            headers = scope[HEADERS]
            check_same_origin(headers)
            if (kind := content_type(headers)) != FORM:
                raise wrong_type(kind, FORM)
            form = await body_of(receive, headers)
        await send_answer(await self.endpoint(Visit(scope, form), **scope["path_params"]), send)


def texts_of(query: bytes) -> dict[str, str]:
    """The texts of a query or a form; of a name that is given twice, the last one. Raises BadInput.

    >>> texts_of(b"arms=A%2CB&loss=")
    {'arms': 'A,B', 'loss': ''}
    """
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise refuse("the query", None, f"at most {MOST_FIELDS} fields", found="has more") from None
    return {name: text.replace("\r\n", "\n") for name, text in pairs}


def page_answer(text: str, status: int = 200, *more: Pair) -> Answer:
    """A page with strict rules about what it may load."""
    kind = (b"content-type", b"text/html; charset=utf-8")
    return Answer(status, text.encode("utf-8", "backslashreplace"), (kind, *SAFE, *more))


def go_to(path: str, *more: Pair) -> Answer:
    """Send a browser to another page after a form, so that loading the page again sends nothing again."""
    return Answer(SEE_OTHER, b"", ((b"location", path.encode("ascii")), *SAFE, *more))


def refusal_page(error: BadInput, scope: Scope) -> Answer | None:
    """A refusal as a page; if a key is missing, the page that asks for one. None if a program asked, and no
    browser will show the answer."""
    accepts = dict(scope["headers"]).get(b"accept", b"")
    if b"text/html" not in accepts or scope["path"].startswith("/v1/"):
        return None
    status = status_of(error)
    if status == NO_KEY:
        return page_answer(login_page(), status, BEARER)
    if status == FORBIDDEN and error.field == "Authorization":
        return page_answer(login_page(str(error)), status)
    return page_answer(error_page(str(error), status), status)
