"""The page of all routes, made from the OpenAPI document. It has no script and loads nothing."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import FastAPI

from lighttail.server.answers import Answer, json_answer, text_answer

STYLE = """body{font:16px/1.5 system-ui,sans-serif;
max-width:60rem;margin:2rem auto;padding:0 1rem;color:#16202c}
code,pre{background:#eef2f7;padding:.1rem .3rem;border-radius:4px}pre{padding:.6rem;overflow-x:auto}
table{border-collapse:collapse}td,th{text-align:left;padding:.3rem .8rem .3rem 0;vertical-align:top}"""


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
        rows = "".join(
            _row(method, path, operation)
            for path, operations in found["paths"].items()
            for method, operation in operations.items()
        )
        table = f"<table><tr><th>route</th><th>what it does</th><th>body</th></tr>{rows}</table>"
        shapes = "".join(
            f"<h3 id='{escape(name)}'>{escape(name)}</h3><p>{escape(shape.get('description', ''))}</p>"
            f"<ul>{_fields(shape)}</ul>"
            for name, shape in found["components"]["schemas"].items()
        )
        more = '<p>For programs: <a href="/openapi.json">the OpenAPI document</a>. '
        more += 'For people: <a href="/">the experiments</a>.</p>'
        return page(
            "Routes", f"<p>{escape(found['info']['description'])}</p>{table}{more}<h2>Shapes</h2>{shapes}"
        )


def page(title: str, content: str) -> Answer:
    """A page of HTML."""
    head = f'<meta charset="utf-8"><title>lighttail: {escape(title)}</title><style>{STYLE}</style>'
    body = f"<h1>{escape(title)}</h1>{content}"
    text = f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'
    return text_answer("html", text.encode("utf-8"))


def _row(method: str, path: str, operation: dict[str, Any]) -> str:
    said = str(operation["description"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    name = body.get("$ref", "").rpartition("/")[2]
    link = f"<a href='#{escape(name)}'>{escape(name)}</a>" if name else ""
    route = f"<code>{method.upper()} {escape(path)}</code>"
    return f"<tr><td>{route}</td><td>{escape(said)}</td><td>{link}</td></tr>"


def _fields(shape: dict[str, Any]) -> str:
    needed = shape.get("required", [])
    return "".join(
        f"<li><code>{escape(name)}</code>{'' if name in needed else ' (optional)'} "
        f"{escape(_kind(field))} {escape(field.get('description', ''))}</li>"
        for name, field in shape.get("properties", {}).items()
    )


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(one) for one in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    kind = str(field.get("type", "any"))
    return f"list of {_kind(field['items'])}" if kind == "array" and "items" in field else kind
