"""The routes for readers: the OpenAPI document, and the page of all routes, which is made from it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lighttail.dashboard.html import Html, el, html, table
from lighttail.dashboard.page import frame
from lighttail.server.answers import Answer, json_answer
from lighttail.server.visits import page_answer

ABOUT = "Adaptive experiments that several programs share. Every reward counts exactly once."
BEARER = {"type": "http", "scheme": "bearer", "description": "A key of the server, if it has keys."}


class Pages:
    """The pages of an application."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    async def openapi(self) -> Answer:
        """The OpenAPI document."""
        return json_answer(self.app.openapi())

    async def docs(self) -> Answer:
        """The routes, from the OpenAPI document."""
        found = self.app.openapi()
        rows = [
            [
                el("code", f"{method.upper()} {path}", class_="whole"),
                operation["description"],
                _body(operation),
            ]
            for path, operations in found["paths"].items()
            for method, operation in operations.items()
        ]
        shapes = [
            (el("h3", name, id=name), el("p", shape.get("description")), el("ul", _fields(shape)))
            for name, shape in found["components"]["schemas"].items()
        ]
        content = html(
            el("h1", "Routes"),
            el("p", found["info"]["description"]),
            el("div", table("All routes", ["route", "what it does", "body"], rows, True), class_="routes"),
            el("p", "For programs: ", el("a", "the OpenAPI document", href="/openapi.json"), "."),
            el("h2", "Shapes"),
            shapes,
        )
        return page_answer(frame("Routes", content))


def _body(operation: dict[str, Any]) -> Html | None:
    """The link to the shape of the body that a route takes."""
    if "requestBody" not in operation:
        return None
    name = _shape_of(operation["requestBody"]["content"]["application/json"]["schema"])
    return el("a", name, href=f"#{name}")


def _fields(shape: dict[str, Any]) -> list[Html]:
    needed = shape.get("required", [])
    return [
        el(
            "li",
            el("code", name),
            f"{'' if name in needed else ' (optional)'} {_kind(field)} {field.get('description', '')}",
        )
        for name, field in shape.get("properties", {}).items()
    ]


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
        made = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes)
        made["components"]["securitySchemes"] = {"key": BEARER}
        for path in made["paths"].values():
            for operation in path.values():
                if operation.pop("x-role", None) is not None:
                    operation["security"] = [{}, {"key": []}]
                _optional_body(operation, made["components"]["schemas"])
        app.openapi_schema = made
    return app.openapi_schema


def _optional_body(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Say that a body may be left out if it has no field that must be given."""
    if (body := operation.get("requestBody")) is not None:
        name = _shape_of(body["content"]["application/json"]["schema"])
        body["required"] = bool(schemas[name].get("required"))
