"""The panels of an experiment's page, each from the view alone. A page has all of them, and the script
replaces those that have changed."""

from __future__ import annotations

import json
from typing import Any

from lighttail.dashboard.charts import law_chart, means_chart, traffic_chart, when
from lighttail.dashboard.history import BYS, OTHERS
from lighttail.dashboard.html import Html, el, html, table
from lighttail.dashboard.words import (
    WRONG_SHARES,
    View,
    alarm_words,
    chance_of,
    chance_range,
    contradicting,
    event_words,
    exactly,
    lasting,
    limit_words,
    limits,
    made_after,
    number,
    plainly,
    sentence,
    so_far,
    the_chance,
)
from lighttail.outcomes.format import rounded

WHY = {
    "policy": "the policy chose",
    "floor": "a floor (shares) chose",
    "holdout": "the unit is in the holdout",
    "sticky": "the unit had the arm before",
    "fallback": "the experiment was paused",
}
NOT_FINAL = (
    "Late rewards have replaced defaults, and more may come. Until then the default counts, and the means of "
    "arms whose rewards are slow, their limits, and what is shown may be wrong. A window that is longer than "
    "rewards take helps."
)
NO_MEANS = (
    "No limits on the means are set, so the forecast allows for arms that differ by a lot, and is too high "
    "if they do not."
)
WHY_WORST = (
    "Act on the average, as alarms do. The worst problem is the worst one that the rewards so far do not "
    "exclude: in it these rewards would be luck, so that its chance from here on may be far above what a "
    "plan promised for the whole experiment."
)
IN_AVERAGE = "; the doubt about the means is in the average"
HOW = {
    "tell": "told",
    "default": "closed by the window",
    "late": "late, not counted",
    "amend": "late, counted",
}


def panels(view: View) -> dict[str, Html]:
    """The content of every panel, by its name."""
    return {
        "status": status(view),
        "alarm": html(alarm(view)),
        "sum": el("p", sentence(view), class_="sum"),
        "risk": risk(view),
        "arms": arms(view),
        "traffic": traffic(view),
        "rewards": rewards(view),
        "events": events(view),
        "settings": settings(view),
    }


def status(view: View) -> Html:
    """One word."""
    return el("span", view["status"], class_=f"status {view['status']}")


def alarm(view: View) -> Html | None:
    """The alarm that is on, or the newest note of an alarm since somebody resumed or changed the settings."""
    if is_on(view["alarm"]):
        return _stressed(view["alarm"])
    for event in view["history"]["events"]:
        if event["kind"] in ("resume", "settings", "create"):
            return None
        if event["kind"] == "alarm" and "state" not in event:
            over = event.get("about") == "settings.means" and view["contradiction"] is None
            return None if over else _stressed(event)
    return None


def is_on(found: View | None) -> bool:
    """Whether there is an alarm that is not over."""
    return found is not None and found.get("state") == "on"


def _stressed(event: View) -> Html:
    head = el("strong", "Alarm of ", when(event["time"]), ".")
    return el("p", head, " ", alarm_words(event), class_="alarm")


# What may be lost


def risk(view: View) -> Html:
    """The chance of losing X, in large type, twice; the law of the loss; and what was lost so far."""
    asked = view["risk"]
    found = asked["forecast"]
    if said := contradicting(view):
        return el("p", said, class_="warning")
    if found is None:
        said = asked["why"] or "The forecast is being made; it takes some seconds."
        return el("p", said, class_="note", role=None if asked["why"] else "status")
    loss, end = exactly(found["loss"]), f"{found['horizon']:,}"
    old = made_after(view)
    when_lost = f"Lost in the first {old}, on average" if old else "Lost so far, on average"
    lost = so_far(found["so_far"], view["means_between"] is not None)
    pair = el(
        "div",
        _answer("On average over what the rewards say", found["chance"], IN_AVERAGE),
        _answer("On the worst problem found that the rewards do not exclude", found["worst"], "", "medium"),
        _card(when_lost, number(found["so_far"]["value"]), lost, "medium"),
        class_="answers",
    )
    parts: list[Any] = [
        el("p", f"{the_chance(view)} of losing {loss} or more by the end, after {end} pulls:", class_="lead"),
        pair,
        el("p", WHY_WORST, class_="note"),
        _figure(
            law_chart(found),
            f"The loss after {end} pulls, in units of reward (the scale of the shares is logarithmic)",
        ),
    ]
    if (limit := limit_words(view)) is not None:
        parts.append(el("p", limit[0], class_="warning" if limit[1] else "kept"))
    mean = found["mean_loss"]
    said = f"Mean loss at the end: {number(mean['value'])} ({limits(mean)}"
    parts.append(el("p", f"{said}, the error of the simulation alone)."))
    if means := found["worst"].get("means"):
        shown = ", ".join(f"{arm} {rounded(mean)}" for arm, mean in list(means.items())[:10])
        parts.append(el("p", f"The means of the worst problem found: {shown}.", class_="note"))
    if view["means_between"] is None:
        parts.append(el("p", NO_MEANS, class_="note"))
    if not old and asked["at"] is not None and asked["at"] != view["seq"]:
        parts.append(el("p", "Something happened since this forecast; a newer one follows.", class_="note"))
    return html(*parts)


def _answer(name: str, estimate: View, more: str = "", size: str = "large") -> Html:
    return _card(name, chance_of(estimate), chance_range(estimate) + more, size)


def _card(name: str, value: str, note: str, size: str) -> Html:
    return el(
        "div", el("p", name, class_="answer-name"), el("p", value, class_=size), el("p", note, class_="note")
    )


def _figure(chart: Html | None, caption: str) -> Html | None:
    return None if chart is None else el("figure", chart, el("figcaption", caption))


# Which arm wins


def arms(view: View) -> Html:
    """The means with their limits, and what is shown."""
    if view["arms"] is None:
        estimate = ", ".join(number(one) for one in (view["estimate"] or [])[:20])
        return el("p", f"The actions change at every ask. The estimate of the policy is ({estimate}).")
    rows = [
        _arm_row(el("bdi", one["arm"]), one, _limits_of(one, view["no_limits"] is None))
        for one in view["arms"]
    ]
    for name, ones in view["apart"].items():
        rows += [_arm_row(html(el("bdi", one["arm"]), f" ({name})"), one, "–") for one in ones]
    heads = ["arm", "pulls", "rewards", "mean", "95 % limits"]
    chart = means_chart(view["arms"]) if view["no_limits"] is None else None
    parts = [
        _figure(chart, "The mean reward of each arm, with limits that hold at all times"),
        table("The arms in numbers", heads, rows),
        _shown(view),
    ]
    if view["apart"]:
        said = f"The policy does not see the trials of the {' and of the '.join(view['apart'])}."
        parts.append(el("p", said, class_="note"))
    if view["no_limits"]:
        parts.append(el("p", f"There are no limits: {view['no_limits']}.", class_="warning"))
    elif view["rewards"].get("amended"):
        parts.append(el("p", NOT_FINAL, class_="warning"))
    else:
        held = "The limits hold however often you look, as long as "
        parts.append(el("p", f"{held}{view['rewards_are']}, and the means do not change.", class_="note"))
    if view.get("old_alone"):
        said = (
            f"Trials younger than the window ({lasting(view['settings']['window'])}) are not evidence yet: "
        )
        parts.append(el("p", said + "good news comes before bad news.", class_="note"))
    if (more := view["arms_count"] - len(view["arms"])) > 0:
        parts.append(el("p", f"{more:,} more arms have fewer pulls.", class_="note"))
    return html(*parts)


def _arm_row(name: Html, one: View, said: str) -> list[Any]:
    return [name, f"{one['tries']:,}", f"{one['heard']:,}", number(one["value"]), said]


def _limits_of(one: View, known: bool) -> Html:
    """The limits in a cell, in which a narrow table may break the line after "to" and not within a number."""
    low, to, high = (limits(one) if known else "none").partition(" to ")
    whole = [el("span", part, class_="whole") for part in (low + to.rstrip(), high) if part]
    return html(whole[0], [html(" ", part) for part in whole[1:]], " (retired)" if one["retired"] else None)


def _shown(view: View) -> Html | None:
    if view["best"] is None:
        return None
    best = view["best"]
    rows = [
        el(
            "li",
            el("bdi", best),
            " is better than ",
            el("bdi", one["than"]),
            ": ",
            el("strong", "shown" if one["shown"] else "not shown", class_="yes" if one["shown"] else "no"),
            f" (difference {number(one['value'])}, limits {limits(one)})",
        )
        for one in view["ahead"][:50]
    ]
    return el("ul", rows, class_="shown")


# Where the traffic goes


def traffic(view: View) -> Html:
    """Trials per arm over time, split by who chose the arm; and a table with the sums."""
    past = view["history"]
    if past["traffic"]["start"] is None:
        return el("p", "No trial was asked yet.", class_="note")
    used = {by for span in past["traffic"]["spans"] for _, by, _ in span}
    keys = [
        el("li", el("span", "", class_=f"swatch by-{by}"), f"{by}: {WHY[by]}") for by in BYS if by in used
    ]
    sums: dict[str, dict[str, int]] = {}
    for arm, by, count in past["by"]:
        sums.setdefault(arm, {})[by] = count
    shown = [by for by in BYS if by in used]
    order = [arm for arm in (*past["traffic"]["arms"], OTHERS) if arm in sums]
    rows = [[el("bdi", arm), *(f"{sums[arm].get(by, 0):,}" for by in shown)] for arm in order]
    timed = past["traffic"]["unit"] == "seconds"
    caption = "Trials per arm over time; the colour says who chose the arm" if timed else "Pulls per arm"
    behind = view["seq"] - past["seq"] if view["seq"] is not None else 0
    return html(
        _figure(traffic_chart(past["traffic"]), caption),
        el("ul", keys, class_="keys") if timed else None,
        table("Trials by arm and by who chose it", ["arm", *shown], rows) if rows else None,
        el("p", f"{behind:,} events of the journal are still being read.", class_="note")
        if behind > 0
        else None,
    )


# Whether rewards arrive


def rewards(view: View) -> Html:
    """Open, late and defaulted rewards, and whether shares of traffic are right."""
    names = {
        "open": "open trials, without a reward so far",
        "told": "rewards that were told",
        "defaulted": "trials that the window closed",
        "late": "late rewards, kept and not counted",
        "amended": "late rewards that replaced the default",
    }
    found = view["rewards"]
    rows = [[said, f"{found[name]:,}"] for name, said in names.items() if name in found]
    past = view["history"]
    parts: list[Any] = [table("Rewards in numbers", ["what", "how many"], rows, hidden=True)]
    if view["time"] is not None and past.get("last_ask") is not None:
        last = past.get("last_reward")
        came = html("The last reward came at ", when(last, seconds=True), ".") if last is not None else None
        if last is None and not found["told"]:
            came = html("No reward has come yet.")
        asked = when(past["last_ask"], seconds=True)
        parts.append(el("p", "The last trial was asked at ", asked, ". ", came))
    if view["settings"].get("window") is not None and found["open"]:
        said = f"A trial stays open for {lasting(view['settings']['window'])} at most."
        parts.append(el("p", said, class_="note"))
    elif found["open"] > found["told"]:
        parts.append(el("p", MANY_OPEN, class_="warning"))
    return html(*parts, [_share_check(one) for one in past["checks"]])


MANY_OPEN = (
    "Most trials have no reward. Means are those of the rewards that were told: if only successes are told, "
    "they are far too high. Tell failures too, or set a window and a default, which close such trials."
)


def _share_check(one: View) -> Html:
    total = sum(one["counts"])
    floors = one["what"] == "floors"
    what = "Shares of the floors" if floors else "Share of the holdout, among units"
    rows = [
        [
            el("bdi", group),
            f"{count:,}",
            f"{100 * count / total:.3g} %" if total else "–",
            f"{100 * due:.3g} %",
        ]
        for group, count, due in zip(one["groups"], one["counts"], one["shares"], strict=True)
    ]
    heads = [*(("who chose", "trials") if floors else ("group", "units")), "share", "should be"]
    if not total:
        return html(table(what, heads, rows), el("p", "There is nothing to check yet.", class_="note"))
    if one["p"] < WRONG_SHARES:
        verdict = f"The shares are wrong (p = {one['p']:.1g}): look for a fault before you believe a mean."
        return html(table(what, heads, rows), el("p", verdict, class_="warning"))
    verdict = f"The counts do not contradict what the shares should be (p = {one['p']:.2g})."
    return html(table(what, heads, rows), el("p", verdict, class_="note"))


# What happened


def events(view: View) -> Html:
    """The last events that are no trials, and the last trials."""
    past = view["history"]
    listed = [
        el(
            "li",
            when(event["time"]),
            " ",
            el("strong", event_words(event)) if _is_alarm(event) else event_words(event),
            class_="alarm" if _is_alarm(event) else None,
        )
        for event in past["events"]
    ]
    rows = [
        [one["id"], when(one["time"]), el("bdi", one["arm"]), one["by"], el("bdi", one["unit"]), _reward(one)]
        for one in past["trials"]
    ]
    heads = ["trial", "asked", "arm", "chosen by", "unit", "reward"]
    return html(
        el("ol", listed, class_="events") if listed else el("p", "Nothing is recorded.", class_="note"),
        el("details", el("summary", "The last trials"), table("The last trials", heads, rows, hidden=True))
        if rows
        else None,
    )


def _is_alarm(event: View) -> bool:
    return bool(event["kind"] == "alarm" and event.get("state") != "over")


def _reward(trial: View) -> str:
    return "open" if trial["how"] is None else f"{rounded(trial['reward'])} ({HOW[trial['how']]})"


def settings(view: View) -> Html:
    """The settings, in words and as JSON."""
    found = view["settings"]
    rows = [
        ["policy", view["policy"]],
        ["horizon", "none" if view["horizon"] is None else f"{view['horizon']:,}"],
    ]
    said = {"window": lasting(found["window"])} if found.get("window") is not None else {}
    rows += [[name, plainly(value)] for name, value in {**found, **said}.items()]
    return html(
        table("The settings", ["setting", "value"], rows, hidden=True),
        el("details", el("summary", "As JSON"), el("pre", _lines(json.dumps(found, indent=1))))
        if found
        else None,
    )


def _lines(text: str) -> Html:
    """A text of several lines, in which the ends of lines are no hidden signs."""
    return Html("\n".join(map(html, text.splitlines())))
