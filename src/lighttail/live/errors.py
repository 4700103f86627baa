"""The refusals of the service: the sentence of a `BadInput`, and the HTTP status that says what kind it
is."""

from __future__ import annotations

from typing import Any

from lighttail.checks import BadInput

WRONG, UNKNOWN, CONFLICT, UNAVAILABLE = 400, 404, 409, 503


class Damaged(Exception):
    """A journal is not what a server wrote: the sentence says which event does not fit."""


class Refused(BadInput):
    """A request that is refused.

    status: 400 (the request is wrong), 404 (there is no such thing), 409 (the request contradicts what is in
    the journal) or 503 (not now; the same request may be sent again). A plain `BadInput` counts as 400.

    >>> error = Refused(field="id", value="7", allowed="the id of a trial", status=UNKNOWN)
    >>> error.status, str(error)
    (404, "id must be the id of a trial, but is '7'")
    """

    def __init__(self, message: str = "", *, status: int = WRONG, **parts: Any) -> None:
        super().__init__(message, **parts)
        self.status = status


def status_of(error: BadInput) -> int:
    """The HTTP status of a refusal."""
    return getattr(error, "status", WRONG)


def unknown(value: Any, field: str = "name", allowed: str = "the name of an experiment") -> Refused:
    """There is no such thing; unless it is named, no such experiment."""
    return Refused(field=field, value=value, allowed=allowed, status=UNKNOWN)


def conflict(field: str, value: Any, allowed: str, **parts: Any) -> Refused:
    """The request contradicts what is in the journal."""
    return Refused(field=field, value=value, allowed=allowed, status=CONFLICT, **parts)


def unavailable(why: str, field: str = "journal") -> Refused:
    """Not now: nothing of the request was kept, or it is not known whether it was; send it again."""
    return Refused(why, field=field, status=UNAVAILABLE)
