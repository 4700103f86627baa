"""Whole pages: the list of experiments, one experiment, and what surrounds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lighttail.dashboard.charts import when
from lighttail.dashboard.form import create_form
from lighttail.dashboard.html import Html, el, html, note, table
from lighttail.dashboard.panels import panels
from lighttail.dashboard.words import View, sentence

STATIC = Path(__file__).parent / "static"
FILES = {"page.css": b"text/css; charset=utf-8", "page.js": b"text/javascript; charset=utf-8",
         "icon.svg": b"image/svg+xml"}  # fmt: skip
TITLES = {
    "risk": "What may be lost",
    "arms": "Which arm is better",
    "traffic": "Where the traffic goes",
    "rewards": "Whether rewards arrive",
    "events": "What happened",
    "settings": "Settings",
}
CHANGES = {
    "pause": (
        "Pause",
        "From now on every ask gets the fall-back arm. Rewards still count, and you can resume.",
    ),
    "resume": ("Resume", "From now on the policy chooses again."),
    "stop": ("Stop", "No more trials are given out, for good. Rewards still count. This cannot be undone."),
}


def frame(title: str, content: Html, signed: bool = False, script: bool = False) -> str:
    """A page of the server. signed: whether a cookie stands for a key. script: whether the page updates."""
    linked = [
        el("link", rel="stylesheet", href="/static/page.css"),
        el("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        el("script", src="/static/page.js", defer=True) if script else None,
    ]
    leave = el("form", el("button", "Forget my key"), method="post", action="/logout") if signed else None
    links = el("nav", el("a", "Experiments", href="/"), el("a", "Routes", href="/docs"), aria_label="Pages")
    top = el("header", el("a", "lighttail", href="/", class_="brand"), links, leave, class_="top")
    skip = el("a", "To the content", href="#content", class_="skip")
    return _document(title, linked, skip, top, el("main", content, id="content", tabindex="-1"))


def _document(title: str, linked: Any, *parts: Html) -> str:
    """A page. linked: what its head has besides the title. parts: what its body has."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"{title} · lighttail"),
        linked,
    )
    return f"<!doctype html>\n{el('html', head, el('body', *parts), lang='en')}\n"


def experiment_page(view: View, manage: bool, signed: bool, asked: View) -> str:
    """The page of an experiment. manage: whether its reader may change it. asked: loss and horizon as the
    reader wrote them, and the sentence `error` if they cannot be used."""
    shown = panels(view)
    name = view["name"]
    head = el("h1", el("bdi", name), " ", _live("status", shown["status"], "span"))
    content = html(
        el("div", head, as_of(view["now"]), class_="title"),
        _live("alarm", shown["alarm"], aria_live="polite"),
        _live("sum", shown["sum"]),
        _live("controls", controls(name, view["status"], manage)),
        section("risk", html(loss_form(asked), _live("risk", shown["risk"]))),
        *(section(part, _live(part, shown[part])) for part in TITLES if part != "risk"),
        el("noscript", note("Without JavaScript this page does not update: load it again.")),
    )
    whole = el("article", content, data_feed=f"/experiments/{name}/parts")
    return frame(str(name), whole, signed, script=True)


def as_of(now: float) -> Html:
    """The line that says when the page was made, and in which time zone all of its times are."""
    said = html("As of ", when(now, seconds=True), " (all times: UTC)")
    return el("p", said, class_="note", id="fresh", role="status")


def _live(part: str, content: Html, name: str = "div", **more: str) -> Html:
    """What the script replaces."""
    return el(name, content, data_part=part, **more)


def section(part: str, content: Html) -> Html:
    head = el("h2", TITLES[part], id=f"h-{part}")
    return el("section", head, content, aria_labelledby=f"h-{part}", class_=part)


def loss_form(asked: View) -> Html:
    """The fields for the loss and the end that the forecast is about."""
    shape = {"inputmode": "decimal", "size": "8", "autocomplete": "off"}
    fields = [
        (said, {"name": name, "value": asked.get(name) or "", **shape})
        for name, said in (("loss", "Loss X "), ("horizon", "Pulls at the end "))
    ]
    return _short_form(fields, "Forecast", asked.get("error"), "loss-error", method="get")


def _short_form(fields: list[tuple[str, View]], button: str, error: str | None, id: str, **more: str) -> Html:
    """A form on one line. fields: what stands before each, and its attributes. id: of the error."""
    about = id if error else None
    typed = [el("label", said, el("input", **shape, aria_describedby=about)) for said, shape in fields]
    wrong = el("p", error, class_="error", id=id, role="alert") if error else None
    return el("form", typed, el("button", button), wrong, **more, class_="ask")


def controls(name: str, status: str, manage: bool) -> Html:
    """Buttons that ask before they change anything."""
    if status == "stopped":
        return note("The experiment was stopped for good.")
    if not manage:
        return note("Your key may look, and not pause or stop.")
    kinds = ("resume" if status == "paused" else "pause", "stop")
    return el("div", [_control(name, kind) for kind in kinds], class_="controls")


def _control(name: str, kind: str) -> Html:
    """A button, and the question that it opens: a popover, which needs no script."""
    word, meaning = CHANGES[kind]
    box, head = f"box-{kind}", f"head-{kind}"
    yes = el("button", f"Yes, {kind}", class_=kind)
    parts = [
        el("h2", f"{word} {name}?", id=head),
        el("p", meaning),
        el("form", yes, method="post", action=f"/experiments/{name}/{kind}"),
        el("button", "No, leave it", type="button", popovertarget=box, popovertargetaction="hide"),
    ]
    question = el(
        "div", parts, id=box, popover="auto", role="dialog", aria_labelledby=head, class_="question"
    )
    button = el("button", f"{word} …", type="button", popovertarget=box, class_=kind, aria_haspopup="dialog")
    return html(button, question)


def experiments_table(summaries: list[View]) -> Html:
    if not summaries:
        return note("There is no experiment yet.")
    rows = [
        [
            el("a", el("bdi", one["name"]), href=f"/experiments/{one['name']}"),
            *(one[field] for field in ("policy", "arms", "tries")),
            el("span", one["status"], class_=f"status {one['status']}"),
            el("strong", one["alarm"], class_="alarm") if one["alarm"] else "none",
        ]
        for one in summaries
    ]
    heads = ["experiment", "policy", "arms", "pulls", "status", "alarm"]
    return table("All experiments", heads, rows, hidden=True)


def list_page(listed: Html, now: float, form: View, manage: bool, signed: bool) -> str:
    """All experiments, and the form for another one. form: its values and errors (`create_form`)."""
    begin = create_form(form) if manage else note("Your key may look, and not begin experiments.")
    content = html(
        el("h1", "Experiments"),
        as_of(now),
        _live("list", listed),
        el("section", el("h2", "Begin an experiment", id="h-form"), begin, aria_labelledby="h-form"),
    )
    return frame("Experiments", el("div", content, data_feed="/parts"), signed, script=True)


def login_page(error: str | None = None) -> str:
    key = {"name": "key", "type": "password", "autocomplete": "current-password", "required": True}
    content = html(
        el("h1", "A key is needed"),
        el("p", "This server has keys. ", el("code", "lighttail keys add NAME --role manage --keys FILE")),
        _short_form([("Key ", key)], "Enter", error, "key-error", method="post", action="/login"),
        note(
            "The browser does not keep the key, but a cookie that stands for the key for a week and that no "
            "script can read."
        ),
    )
    return frame("A key is needed", content)


def error_page(sentence: str, status: int) -> str:
    content = html(
        el("h1", "There is no such page" if status == 404 else "The server refused this"),
        el("p", sentence, class_="error"),
        el("p", el("a", "All experiments", href="/")),
    )
    return frame("Refused", content)


def static_page(view: View) -> str:
    """The page of a view, whole in one file: its style is inside, and there is no script."""
    shown = panels(view)
    parts = [
        section(part, shown[part])
        for part in TITLES
        if part not in ("events", "settings") or view["history"]["events"]
    ]
    style = el("style", Html((STATIC / "page.css").read_text("utf-8")))
    said = [el("h1", el("bdi", view["name"])), el("p", sentence(view), class_="sum")]
    return _document(view["name"], style, el("main", said, parts))
