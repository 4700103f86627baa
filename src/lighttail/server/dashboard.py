"""The dashboard: pages for people, over the same desks as the routes for programs (docs/dashboard.md)."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from lighttail.checks import BadInput, whole
from lighttail.dashboard import form, page
from lighttail.dashboard.html import Html
from lighttail.dashboard.panels import panels
from lighttail.dashboard.view import arms_view, default_loss, risk_view, service_view, status_word
from lighttail.dashboard.words import View
from lighttail.inference import Evidence, evidence_of
from lighttail.live.alarms import is_on
from lighttail.live.errors import status_of
from lighttail.live.requests import Change, Look
from lighttail.outcomes.format import chance
from lighttail.reading.numbers import parse_number, parse_whole
from lighttail.server.answers import Answer, json_answer
from lighttail.server.forecasts import outlook_module
from lighttail.server.guard import Sessions, token_cookie, tokens_of
from lighttail.server.looks import Asked, Histories, Outlooks, keep
from lighttail.server.routes import PATIENCE, ExperimentName, Horizon, Loss, Routes
from lighttail.server.visits import PageRoute, Visit, go_to, page_answer

FIRST_FORECAST = 3.0  # seconds that a page waits for its first forecast
MOMENT = 0.9  # seconds for which panels and limits are kept, however many people look
LONGER = 20.0  # seconds, if nothing happened; trials may have become older than the window
MOST_LISTED = 500  # experiments on a page
Panels = tuple[View, dict[str, Html]]
NO_END = "A forecast needs the number of pulls at the end: write it into the field above."
NO_LOSS = "A forecast needs the loss that you ask about: write it into the field above."


class Dashboard:
    """The pages of an office. sessions: of browsers that have shown a key; None if the server has no keys."""

    def __init__(self, routes: Routes, sessions: Sessions | None = None) -> None:
        self.routes, self.sessions = routes, sessions
        self.histories = Histories(routes.office.journal)
        self.outlooks = Outlooks(routes.forecast)
        self._arms_of: dict[str, tuple[int, float, View]] = {}
        self._shown: dict[Any, tuple[float, asyncio.Task[Panels]]] = {}

    # Views

    async def view(self, name: ExperimentName, loss: Loss = None, horizon: Horizon = None) -> Any:
        """Everything that the page of an experiment shows."""
        return await self._view(name, loss, horizon, 0.0)

    async def _view(self, name: str, loss: float | None, horizon: int | None, patience: float) -> View:
        summary: Any = await self.routes.summary(name)
        history = await run_in_threadpool(self.histories.look, name)
        evidence: Evidence = evidence_of(summary["settings"].get("rewards"))
        if summary["arms"] is None:
            arms, why = None, "There is no forecast: the actions change at every ask."
            risk = risk_view(loss, horizon, why=why)
        else:
            arms = await self._arms(summary, evidence)
            against = arms["contradiction"]
            risk = await self._risk(summary, evidence, loss, horizon, patience if against is None else 0.0)
            if against is not None:  # a forecast of a moment ago would be wrong, too
                why = f"There is no forecast: the rewards contradict settings.means: {against}."
                risk = {**risk, "forecast": None, "why": why, "waiting": False}
        return {**service_view(summary, history, arms, risk), "now": self._now()}

    async def _arms(self, summary: View, evidence: Evidence) -> View:
        """The arms with their limits: those of a moment ago, if many people look at once. Rewards that are
        no evidence have no limits."""
        name, now = summary["name"], time.monotonic()
        seq, at, arms = self._arms_of.get(name, (0, -math.inf, {}))
        if now - at < (LONGER if seq == summary["seq"] else MOMENT):
            return arms
        await outlook_module()  # which the desk imports, and must not wait for
        heard, why = await self.routes.desk_of(name, Look("heard"))
        tries = {arm: summary["tries"].get(arm, 0) for arm in heard}
        first = len(summary["arms"]) - summary["joined"]
        means = summary["settings"].get("means")
        between = None if means is None else (means["low"], means["high"])
        retired = summary["retired"]
        arms = await run_in_threadpool(arms_view, tries, heard, evidence, retired, why, first, between)
        arms["old_alone"] = why is None and summary["settings"].get("window") is not None
        keep(self._arms_of, name, (summary["seq"], now, arms))
        return arms

    def _now(self) -> float:
        return float(self.routes.office.clock())

    async def _risk(
        self, summary: View, evidence: Evidence, loss: float | None, horizon: int | None, patience: float
    ) -> View:
        if summary["stopped"]:
            horizon = max(1, summary["pulls"])
        end = summary["horizon"] if horizon is None else horizon
        if loss is None:
            limit, means = (summary["settings"].get(name) for name in ("risk", "means"))
            loss = default_loss(end, evidence, means) if limit is None else limit["loss"]
        if end is None or loss is None:
            return risk_view(loss, end, why=NO_END if end is None else NO_LOSS)
        end = max(end, summary["pulls"], 1)
        return await self.outlooks.look(Asked(summary["name"], loss, end), summary["seq"], patience)

    # Pages

    async def index(self, visit: Visit) -> Answer:
        return await self._index(visit, {"values": form.from_link(visit.texts)})

    async def _index(self, visit: Visit, filled: View, status: int = 200) -> Answer:
        now, manage = self._now(), "manage" in visit.may
        return page_answer(page.list_page(await self._list(), now, filled, manage, visit.signed), status)

    async def index_parts(self, visit: Visit) -> Answer:
        """The list of experiments, which the script replaces."""
        listed = await self._list()
        return json_answer({"now": self._now(), "parts": {"list": listed}})

    async def _list(self) -> Html:
        names = await run_in_threadpool(self.routes.office.names)
        return page.experiments_table(await asyncio.gather(*map(self._listed, names[-MOST_LISTED:][::-1])))

    async def _listed(self, name: str) -> View:
        try:
            async with asyncio.timeout(PATIENCE):
                one: Any = await self.routes.summary(name)
        except (BadInput, TimeoutError):
            said = dict.fromkeys(("policy", "arms", "tries"), "unknown")
            return {**said, "name": name, "status": "unknown", "alarm": None}
        due = "" if one["horizon"] is None else f" of {one['horizon']:,}"
        alarm: Any = one.get("alarm")
        return {
            "name": name,
            "policy": one["policy"],
            "arms": f"vectors of {one['dim']}" if one["arms"] is None else f"{len(one['arms']):,}",
            "tries": f"{one['pulls']:,}{due}",
            "status": status_word(one),
            "alarm": f"{chance(alarm['chance'])} > {chance(alarm['limit'])}" if is_on(alarm) else None,
        }

    async def experiment(self, visit: Visit, name: str) -> Answer:
        texts = visit.texts
        loss, horizon, error = question_of(texts)
        view = await self._view(name, loss, horizon, FIRST_FORECAST)
        asked = {key: texts.get(key) or written(view["risk"][key]) for key in ("loss", "horizon")}
        text = page.experiment_page(view, "manage" in visit.may, visit.signed, {**asked, "error": error})
        return page_answer(text, 400 if error else 200)

    async def parts(self, visit: Visit, name: str) -> Answer:
        """The panels of an experiment's page, which the script replaces."""
        loss, horizon, _ = question_of(visit.texts)
        view, shown = await self._panels(name, loss, horizon)
        controls = page.controls(name, view["status"], "manage" in visit.may)
        return json_answer({"now": view["now"], "parts": {**shown, "controls": controls}})

    async def _panels(self, *asked: Any) -> Panels:
        """The view and its panels; many people who look at once see the same."""
        shown = self._shown.get(asked)
        if shown is None or (shown[1].done() and time.monotonic() - shown[0] > MOMENT):
            shown = (time.monotonic(), asyncio.create_task(self._make_panels(*asked)))
            keep(self._shown, asked, shown)
        return await asyncio.shield(shown[1])

    async def _make_panels(self, name: str, loss: float | None, horizon: int | None) -> Panels:
        view = await self._view(name, loss, horizon, 0.0)
        return view, panels(view)

    async def create(self, visit: Visit) -> Answer:
        """Begin an experiment from the form; a wrong field is named beside it."""
        values = {name: visit.fields.get(name, "") for name in form.KNOWN}
        try:
            body = form.body_of(values)
            await self.routes.create(body)  # type: ignore[arg-type]
        except BadInput as error:
            errors = form.errors_of(error)
            return await self._index(visit, {"values": values, "errors": errors}, status_of(error))
        return go_to(f"/experiments/{body['name']}")

    async def change(self, visit: Visit, name: str) -> Answer:
        """Pause, resume or stop, as the last word of the route says, and show the page again."""
        await self.routes.desk_of(name, Change(visit.last, {}))
        return go_to(f"/experiments/{name}")

    # Keys

    async def ask_key(self, visit: Visit) -> Answer:
        return go_to("/") if self.sessions is None else page_answer(page.login_page())

    async def login(self, visit: Visit) -> Answer:
        """Begin a session, if the key is one of this server."""
        if self.sessions is None:
            return go_to("/")
        token = self.sessions.begin(visit.fields.get("key", "").strip())
        if token is None:
            return page_answer(page.login_page("This is no key of this server."), 401)
        return go_to("/", token_cookie(token, visit.head))

    async def logout(self, visit: Visit) -> Answer:
        if self.sessions is not None:
            self.sessions.end(tokens_of(visit.head))
        return go_to("/", token_cookie("", visit.head))

    async def static(self, visit: Visit) -> Answer:
        content = await run_in_threadpool((page.STATIC / visit.last).read_bytes)
        kind = (b"content-type", page.FILES[visit.last])
        return Answer(200, content, (kind, (b"cache-control", b"no-cache")))

    def add_to(self, app: FastAPI) -> None:
        one = "/experiments/{name}"
        pages: list[tuple[str, str, Any, str | None]] = [
            ("GET", "/", self.index, "read"),
            ("GET", "/parts", self.index_parts, "read"),
            ("POST", "/experiments", self.create, "manage"),
            ("GET", one, self.experiment, "read"),
            ("GET", f"{one}/parts", self.parts, "read"),
            ("GET", "/login", self.ask_key, None),
            ("POST", "/login", self.login, None),
            ("POST", "/logout", self.logout, None),
        ]
        pages += [("POST", f"{one}/{kind}", self.change, "manage") for kind in page.CHANGES]
        pages += [("GET", f"/static/{name}", self.static, None) for name in page.FILES]
        for method, path, endpoint, role in pages:
            more: Any = {"response_model": None, "openapi_extra": {"x-role": role}, "methods": [method]}
            app.router.add_api_route(
                path, endpoint, include_in_schema=False, route_class_override=PageRoute, **more
            )


def question_of(texts: dict[str, str]) -> tuple[float | None, int | None, str | None]:
    """The loss and the pulls at the end that a person wrote, and the sentence if they cannot be used."""
    loss = end = None
    try:
        if texts.get("loss"):
            loss = parse_number("loss", texts["loss"])
            if not 0.0 < loss < float("inf"):
                return None, None, f"loss must be a positive number, but is {loss:g}"
        if texts.get("horizon"):
            end = whole("horizon", parse_whole("horizon", texts["horizon"].replace(",", "")), 1, most=2**53)
        return loss, end, None
    except BadInput as error:
        return None, None, error.sentence


def written(value: float | None) -> str | None:
    """A number as one would type it.

    >>> written(100.0), written(0.5), written(None)
    ('100', '0.5', None)
    """
    return None if value is None else f"{value:.15g}"
