"""The form that begins an experiment: its fields, what becomes of them, and which field an error is about."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

from lighttail.checks import BadInput
from lighttail.dashboard.html import Html, el, html
from lighttail.dashboard.words import View
from lighttail.reading.numbers import parse_number, parse_share, parse_whole


class Field(NamedTuple):
    """A field of the form. path: where its value goes in the body of the request."""

    name: str
    label: str
    help: str
    path: str
    kind: str = "text"


FIELDS = (
    Field("name", "Name", "Letters, digits, '.', '_' and '-'.", "name"),
    Field("arms", "Arms", "One per line, at least two.", "arms", "lines"),
    Field("policy", "Policy",
          "As on the command line; lighttail plan recommends one. ucb:anytime:0.1 needs no horizon and suits "
          "rewards of 0 or 1: its number is kappa, in units of the reward.", "policy"),
    Field("horizon", "Horizon (pulls)",
          "How many pulls there will be; optional with some policies.", "horizon", "whole"),
    Field("loss", "Loss limit X", "In units of reward; optional. Needs a chance and a horizon.",
          "settings.risk.loss", "number"),
    Field("chance", "Chance",
          "Warn if the chance of losing X or more is above this, such as 1 %. The alarm may ring by luck if "
          "this is just above the chance that your plan states; many times that chance makes it rare.",
          "settings.risk.chance", "share"),
    Field("then", "If the chance is higher", "Warn, or pause the experiment.",
          "settings.risk.then", "choice"),
    Field("fallback", "Fall-back arm", "The arm while the experiment is paused; the first arm if empty.",
          "settings.fallback"),
    Field("low", "Least reward", "Optional; 0 if rewards are conversions.", "settings.rewards.low", "number"),
    Field("high", "Largest reward", "Optional; 1 if rewards are conversions.", "settings.rewards.high",
          "number"),
    Field("sigma", "Sigma of a reward",
          "In place of the least and largest reward, if rewards have no limits: the sigma of their "
          "Gaussian (or sub-Gaussian) noise.", "settings.rewards.sigma", "number"),
    Field("least_mean", "Least mean",
          "All means lie between the least and the largest mean, such as 3 % and 5 %: forecasts take this "
          "for granted. Optional; without it, forecasts allow for arms that differ by a lot.",
          "settings.means.low", "share"),
    Field("largest_mean", "Largest mean", "Needed with a least mean.", "settings.means.high", "share"),
    Field("window", "Window (seconds)",
          "A trial without a reward for so long is closed. Without a window, tell failures, too.",
          "settings.window", "number"),
    Field("default", "Reward of a closed trial", "Needed with a window, such as 0.", "settings.default",
          "number"),
    Field("late", "Rewards after the window", "amend: they replace the reward of the closed trial.",
          "settings.late", "choice"),
)  # fmt: skip
KNOWN = tuple(field.name for field in FIELDS)
ALSO = {"arms": ("the number of arms", "arm"), "policy": ("bonus", "kappa")}  # what an error may name, too
CHOICES = {"then": ("warn", "pause"), "late": ("amend", "ignore")}
READ = {"whole": parse_whole, "number": parse_number, "share": parse_share}


def body_of(values: Mapping[str, str]) -> View:
    """The body of the request that begins an experiment. An empty field is left out. Raises BadInput.

    >>> body_of({"name": "shop", "arms": "A\\nB", "policy": "ts:0.5", "loss": "", "then": "warn"})
    {'name': 'shop', 'arms': ['A', 'B'], 'policy': 'ts:0.5'}
    """
    body: View = {}
    for field in FIELDS:
        text = values.get(field.name, "")
        value: Any = text.strip()
        if field.kind == "lines":
            value = [line.strip() for line in text.splitlines() if line.strip()]
        elif value and field.kind in READ:
            value = READ[field.kind](field.path, value)
        if value in ("", []) and field.name not in ("name", "policy"):
            continue
        *outer, last = field.path.split(".")
        inside = body
        for part in outer:
            inside = inside.setdefault(part, {})
        inside[last] = value
    settings = body.get("settings", {})
    if settings.get("risk", {}).keys() == {"then"}:  # the choice has a value although nobody wants a limit
        del settings["risk"]
    if "window" not in settings:
        settings.pop("late", None)
    if not settings:
        body.pop("settings", None)
    return body


def field_of(error: BadInput) -> str | None:
    """The field of the form that an error is about; None if it is about none of them.

    >>> from lighttail.checks import refuse
    >>> field_of(refuse("settings.window", -1, "positive")), field_of(refuse("an arm of settings.x", 1, ""))
    ('window', None)
    """
    named = str(error.field).removeprefix("the fields of ")
    for field in FIELDS:
        if named == field.path or named in ALSO.get(field.name, ()):
            return field.name
    inside = [field.name for field in FIELDS if field.path.startswith(f"{named}.")]
    return inside[0] if inside else None


def errors_of(error: BadInput) -> dict[str, str]:
    """The sentence by the field that it is about, with the label of this field; "" if it is about none.

    >>> from lighttail.checks import refuse
    >>> errors_of(refuse("settings.risk.chance", 1.2, "a number strictly between 0 and 1"))
    {'chance': 'Chance must be a number strictly between 0 and 1, but is 1.2'}
    """
    name = field_of(error)
    for field in FIELDS:
        if field.name == name and field.path == error.field:
            return {field.name: error.renamed(field.label).sentence}
    return {name or "": error.sentence}


def from_link(query: Mapping[str, str]) -> View:
    """The values of a form that a link fills in: `/?policy=ts:0.5&arms=A,B&horizon=1000`.

    >>> from_link({"arms": "A,B", "policy": "ts:0.5", "more": "x"})
    {'arms': 'A\\nB', 'policy': 'ts:0.5'}
    """
    values = {name: query[name] for name in KNOWN if name in query}
    if "arms" in values and "\n" not in values["arms"]:
        values["arms"] = values["arms"].replace(",", "\n")
    return values


def create_form(form: View) -> Html:
    """The form. form: `values` by field, and `errors` by field; the error "" is about no single field."""
    values, errors = form.get("values", {}), form.get("errors", {})
    said = errors.get("") or "The experiment was not begun: see the field below."
    head = el("p", said, class_="error", role="alert") if errors else None
    rows = [_row(field, values.get(field.name, ""), errors.get(field.name)) for field in FIELDS]
    parts = html(head, rows, el("button", "Begin the experiment", class_="main"))
    return el("form", parts, method="post", action="/experiments", class_="create", novalidate=True)


def _row(field: Field, value: str, error: str | None) -> Html:
    id, about = f"f-{field.name}", f"a-{field.name}"
    common: dict[str, Any] = {
        "id": id,
        "name": field.name,
        "aria_describedby": f"{about} e-{field.name}" if error else about,
        "aria_invalid": "true" if error else None,
        "autofocus": bool(error),
    }
    if field.kind == "lines":
        typed = Html("\n" + escape(value))  # a browser drops the first line break
        control = el("textarea", typed, rows="3", spellcheck="false", **common)
    elif field.kind == "choice":
        options = [el("option", one, value=one, selected=one == value) for one in CHOICES[field.name]]
        control = el("select", options, **common)
    else:
        mode = "decimal" if field.kind in READ else None
        control = el("input", value=value, inputmode=mode, autocomplete="off", spellcheck="false", **common)
    said = el("p", error, class_="error", id=f"e-{field.name}") if error else None
    parts = (el("label", field.label, for_=id), control, said, el("p", field.help, class_="help", id=about))
    return el("div", *parts, class_="field wrong" if error else "field")
