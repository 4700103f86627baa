"""The OpenAPI document of the routes."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

ABOUT = "Adaptive experiments that several programs share. Every reward counts exactly once."
BEARER = {"type": "http", "scheme": "bearer", "description": "A key of the server, if it has keys."}


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
        name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        body["required"] = bool(schemas[name].get("required"))
