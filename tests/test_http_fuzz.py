"""A fixed portion of the requests that schemathesis draws from the OpenAPI document."""

from __future__ import annotations

from typing import Any

import fuzz_http
import pytest

from lighttail.server.routes import Routes
from lighttail.server.shapes import ListAnswer


@pytest.mark.filterwarnings("default")  # of schemathesis
def test_every_answer_is_documented_and_every_refusal_has_its_fields() -> None:
    tally = fuzz_http.play(8)
    statuses = {line.rsplit(" ", 1)[1] for line in tally}
    assert {"200", "400", "404", "415"} <= statuses  # control: some are played, others refused
    assert sum(tally.values()) > 100


@pytest.mark.filterwarnings("default")
def test_an_answer_that_is_not_documented_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control."""

    async def listed(self: Routes) -> ListAnswer:
        """List nothing."""
        wrong: Any = {"experiment": []}
        return wrong  # type: ignore[no-any-return]

    monkeypatch.setattr(Routes, "listed", listed)
    with pytest.raises(BaseException, match="experiments"):
        fuzz_http.play(2)
