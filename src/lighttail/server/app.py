"""The web application: routes with their roles, behind a gate, and the pages about them for readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

import lighttail
from lighttail.checks import BadInput
from lighttail.dashboard.html import Html, el, html, table
from lighttail.dashboard.page import frame
from lighttail.live import Office
from lighttail.server.answers import Answer, json_answer
from lighttail.server.dashboard import Dashboard
from lighttail.server.gate import Gate, PlainRoute, refused
from lighttail.server.guard import Guard
from lighttail.server.keys import Keys
from lighttail.server.metrics import Meter
from lighttail.server.routes import Routes
from lighttail.server.shapes import ProblemAnswer, SummaryAnswer
from lighttail.server.visits import page_answer, refusal_page
from lighttail.server.watch import Webhook

WHY: dict[Any, str] = {
    400: "The request is wrong.",
    401: "A key is needed.",
    403: "The key has another role, or the host or origin is foreign.",
    404: "There is no such experiment or trial.",
    408: "The body came too slowly.",
    409: "The request contradicts what is in the journal.",
    413: "The body is too large.",
    415: "The content type is not JSON.",
    503: "Not now; the same request may be sent again.",
    "default": "Any other refusal has the same form.",
}
READS, WRITES = (401, 403, 503), (400, 401, 403, 408, 413, 415, 503)
LOOK_EVERY, LOOK_SOON = 60.0, 1.0  # seconds, the second if the journal could not be read
EXPERIMENT = "/v1/experiments/{name}"
ABOUT = "Adaptive experiments that several programs share. Every reward counts exactly once."
TEXT = {"schema": {"type": "string"}}
BEARER = {"type": "http", "scheme": "bearer", "description": "A key of the server, if it has keys."}


def made_app(
    office: Office, keys: Keys | None = None, names: Any = (), webhook: Webhook | None = None
) -> FastAPI:
    """The application of an office, which begins to close windows when it starts."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        first = await woken(office)
        tasks = [asyncio.create_task(routes.watch.work())]
        if office.journal.shared or not first:
            tasks.append(asyncio.create_task(look_around(office, first)))
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        dashboard.outlooks.close()
        routes.forecasts.close()

    meter, guard = Meter(), Guard(keys, names)
    app = FastAPI(
        title="lighttail",
        version=lighttail.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=[Middleware(Gate, guard=guard, meter=meter, page_of=refusal_page, names=office.names)],
        exception_handlers={HTTPException: refused},
    )
    app.router.route_class = PlainRoute
    app.state.meter = meter
    app.openapi = lambda: document_of(app)  # type: ignore[method-assign]
    routes = Routes(office, meter, webhook)
    dashboard = Dashboard(routes, guard.sessions)
    add_routes(app, routes)
    add(app, "GET", f"{EXPERIMENT}/view", dashboard.view, "read", 400, 404, response_model=dict[str, Any])
    add_documents(app)
    dashboard.add_to(app)
    return app


async def woken(office: Office) -> bool:
    """Let all desks look at their journals. False if the journal cannot be read at this moment, which must
    not end a server: a database may be gone for a moment when the server begins."""
    try:
        await run_in_threadpool(office.wake)
    except BadInput:
        return False
    return True


async def look_around(office: Office, read: bool) -> None:
    """Look now and then at the experiments of servers that share the journal and may have ended. read:
    whether the journal could be read; if not, it is tried again soon."""
    while True:
        await asyncio.sleep(LOOK_EVERY if read else LOOK_SOON)
        with suppress(Exception):  # a mistake of ours must not end the looks
            read = await woken(office)


def add_routes(app: FastAPI, routes: Routes) -> None:
    """The routes with the roles that they need. The two that are used most come first."""
    add(app, "POST", f"{EXPERIMENT}/ask", routes.ask, "ask", 404, 409)
    add(app, "POST", f"{EXPERIMENT}/tell", routes.tell, "ask", 404, 409)
    old: Any = {"model": SummaryAnswer, "description": "The experiment is there already."}
    new = {"status_code": 201, "response_model": SummaryAnswer, "responses": {200: old}}
    add(app, "POST", "/v1/experiments", routes.create, "manage", 409, **new)
    add(app, "GET", "/v1/experiments", routes.listed, "read")
    add(app, "GET", EXPERIMENT, routes.summary, "read", 404)
    for change in (routes.pause, routes.resume, routes.stop):
        add(app, "POST", f"{EXPERIMENT}/{change.__name__}", change, "manage", 404, 409)
    add(app, "POST", f"{EXPERIMENT}/arms", routes.arms, "manage", 404, 409)
    add(app, "POST", f"{EXPERIMENT}/settings", routes.settings, "manage", 404, 409)
    add(app, "GET", f"{EXPERIMENT}/state", routes.state, "read", 404, response_model=dict[str, Any])
    lines = {"responses": {200: {"content": {"application/x-ndjson": TEXT}}}}
    add(app, "GET", f"{EXPERIMENT}/journal", routes.journal, "read", 400, 404, **lines)
    add(app, "GET", f"{EXPERIMENT}/forecast", routes.forecast, "read", 400, 404, 409)
    add(app, "GET", "/healthz", routes.alive, None)
    add(app, "GET", "/readyz", routes.ready, None)
    text = {"responses": {200: {"content": {"text/plain": TEXT}}}}
    add(app, "GET", "/metrics", routes.metrics, "read", **text)


def add(
    app: FastAPI, method: str, path: str, endpoint: Any, role: str | None, *refusals: int, **more: Any
) -> None:
    """Add a route. role: what one must be allowed to do. refusals: the statuses besides the usual ones."""
    statuses = sorted({*refusals, *(WRITES if method == "POST" else READS)})
    answers: Any = {key: {"model": ProblemAnswer, "description": WHY[key]} for key in (*statuses, "default")}
    answers |= more.pop("responses", {})
    said = str(endpoint.__doc__)
    needs = f" Needs a key with the role {role}, if the server has keys." if role else ""
    more |= {"summary": said.partition(".")[0], "description": said + needs}
    extra = {"x-role": role} if role else {}
    app.add_api_route(path, endpoint, methods=[method], responses=answers, openapi_extra=extra, **more)


def add_documents(app: FastAPI) -> None:
    """The routes about the routes, for programs and for people."""

    async def openapi() -> Answer:
        return json_answer(document_of(app))

    async def docs() -> Answer:
        return page_answer(docs_page(document_of(app)))

    for path, page in (("/docs", docs), ("/openapi.json", openapi)):
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False, response_model=None)


def docs_page(document: dict[str, Any]) -> str:
    """The page of the routes, from the OpenAPI document."""
    rows, shapes = [], []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            route = el("code", f"{method.upper()} {path}", class_="whole")
            body = _body(operation)
            link = None if body is None else el("a", body, href=f"#{body}")
            rows.append([route, operation["description"], link])
    for name, shape in document["components"]["schemas"].items():
        said = " ".join(shape.get("description", "").split())
        shapes += [el("h3", name, id=name), el("p", said), el("ul", _fields(shape))]
    content = html(
        el("h1", "Routes"),
        el("p", document["info"]["description"]),
        el("div", table("All routes", ["route", "what it does", "body"], rows, True), class_="routes"),
        el("p", "For programs: ", el("a", "the OpenAPI document", href="/openapi.json"), "."),
        el("h2", "Shapes"),
        shapes,
    )
    return frame("Routes", content)


def _body(operation: dict[str, Any]) -> str | None:
    """The shape of the body that a route takes; None if it takes none."""
    if (body := operation.get("requestBody")) is None:
        return None
    return _shape_of(body["content"]["application/json"]["schema"])


def _fields(shape: dict[str, Any]) -> list[Html]:
    needed, fields = shape.get("required", []), []
    for name, field in shape.get("properties", {}).items():
        optional = "" if name in needed else " (optional)"
        said = f"{optional} {_kind(field)} {field.get('description', '')}"
        fields.append(el("li", el("code", name), said))
    return fields


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(one) for one in field["anyOf"])
    if "$ref" in field:
        return _shape_of(field)
    kind = str(field.get("type", "any"))
    return f"list of {_kind(field['items'])}" if kind == "array" and "items" in field else kind


def _shape_of(field: dict[str, Any]) -> str:
    return str(field["$ref"]).rpartition("/")[2]


def document_of(app: FastAPI) -> dict[str, Any]:
    """The document, made once. A key is needed if the server has keys, and by no route for probes."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
        shapes = document["components"]["schemas"]
        document["components"]["securitySchemes"] = {"key": BEARER}
        for operation in (one for path in document["paths"].values() for one in path.values()):
            if operation.pop("x-role", None) is not None:
                operation["security"] = [{}, {"key": []}]
            if (body := _body(operation)) is not None:  # a body without a needed field may be left out
                operation["requestBody"]["required"] = bool(shapes[body].get("required"))
        app.openapi_schema = document
    return app.openapi_schema
