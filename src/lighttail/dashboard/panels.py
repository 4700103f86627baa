"""The panels of an experiment's page, each from the view alone. A page has all of them, and the script
replaces those that have changed."""

from __future__ import annotations

import json
from typing import Any

from lighttail.dashboard import words
from lighttail.dashboard.charts import law_chart, means_chart, traffic_chart, when
from lighttail.dashboard.history import BYS, OTHERS
from lighttail.dashboard.html import Html, el, html, note, table
from lighttail.dashboard.words import View
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
MANY_OPEN = (
    "Most trials have no reward. Means are those of the rewards that were told: if only successes are told, "
    "they are far too high. Tell failures too, or set a window and a default, which close such trials."
)
COUNTED = {
    "open": "open trials, without a reward so far",
    "told": "rewards that were told",
    "defaulted": "trials that the window closed",
    "late": "late rewards, kept and not counted",
    "amended": "late rewards that replaced the default",
}
HOW = {
    "tell": "told",
    "default": "closed by the window",
    "late": "late, not counted",
    "amend": "late, counted",
}


def panels(view: View) -> dict[str, Html]:
    """The content of every panel, by its name."""
    return {
        "status": el("span", view["status"], class_=f"status {view['status']}"),
        "alarm": html(alarm(view)),
        "sum": el("p", words.sentence(view), class_="sum"),
        "risk": risk(view),
        "arms": arms(view),
        "traffic": traffic(view),
        "rewards": rewards(view),
        "events": events(view),
        "settings": settings(view),
    }


def alarm(view: View) -> Html | None:
    """The alarm that is on, or the newest note of an alarm since somebody resumed or changed the settings."""
    if view["alarm"] is not None and view["alarm"].get("state") == "on":
        return _stressed(view["alarm"])
    for event in view["history"]["events"]:
        if event["kind"] in ("resume", "settings", "create"):
            return None
        if event["kind"] == "alarm" and "state" not in event:
            over = event.get("about") == "settings.means" and view["contradiction"] is None
            return None if over else _stressed(event)
    return None


def _stressed(event: View) -> Html:
    head = el("strong", "Alarm of ", when(event["time"]), ".")
    return el("p", head, " ", words.alarm_words(event), class_="alarm")


# What may be lost


def risk(view: View) -> Html:
    """The chance of losing X, in large type, twice; the law of the loss; and what was lost so far."""
    asked = view["risk"]
    forecast = asked["forecast"]
    if said := words.contradicting(view):
        return el("p", said, class_="warning")
    if forecast is None:
        said = asked["why"] or "The forecast is being made; it takes some seconds."
        return el("p", said, class_="note", role=None if asked["why"] else "status")
    loss, end, old = words.exactly(forecast["loss"]), f"{forecast['horizon']:,}", words.made_after(view)
    lost, mean, worst = (forecast[name] for name in ("so_far", "mean_loss", "worst"))
    when_lost = f"Lost in the first {old}, on average" if old else "Lost so far, on average"
    between = words.so_far(lost, view["means_between"] is not None)
    average, about = words.chance_of(forecast["chance"]), words.chance_range(forecast["chance"]) + IN_AVERAGE
    not_excluded = "On the worst problem found that the rewards do not exclude"
    cards = [
        _card("On average over what the rewards say", average, about, "large"),
        _card(not_excluded, words.chance_of(worst), words.chance_range(worst), "medium"),
        _card(when_lost, words.number(lost["value"]), between, "medium"),
    ]
    law = f"The loss after {end} pulls, in units of reward (the scale of the shares is logarithmic)"
    limit, above = words.limit_words(view) or (None, False)
    at_end = f"{words.number(mean['value'])} ({words.limits(mean)}, the error of the simulation alone)"
    means = ", ".join(f"{arm} {rounded(mean)}" for arm, mean in list(worst.get("means", {}).items())[:10])
    lead = f"{words.the_chance(view)} of losing {loss} or more by the end, after {end} pulls:"
    moved = not old and asked["at"] is not None and asked["at"] != view["seq"]
    return html(
        el("p", lead, class_="lead"),
        el("div", cards, class_="answers"),
        note(WHY_WORST),
        _figure(law_chart(forecast), law),
        el("p", limit, class_="warning" if above else "kept") if limit else None,
        el("p", f"Mean loss at the end: {at_end}."),
        note(f"The means of the worst problem found: {means}.") if means else None,
        note(NO_MEANS) if view["means_between"] is None else None,
        note("Something happened since this forecast; a newer one follows.") if moved else None,
    )


def _card(name: str, value: str, about: str, letters: str) -> Html:
    return el("div", el("p", name, class_="answer-name"), el("p", value, class_=letters), note(about))


def _figure(chart: Html | None, caption: str) -> Html | None:
    return None if chart is None else el("figure", chart, el("figcaption", caption))


# Which arm wins


def arms(view: View) -> Html:
    """The means with their limits, and what is shown."""
    if view["arms"] is None:
        estimate = ", ".join(words.number(one) for one in (view["estimate"] or [])[:20])
        return el("p", f"The actions change at every ask. The estimate of the policy is ({estimate}).")
    known = view["no_limits"] is None
    rows = [_arm_row(el("bdi", one["arm"]), one, _limits_of(one, known)) for one in view["arms"]]
    for name, ones in view["apart"].items():
        rows += [_arm_row(html(el("bdi", one["arm"]), f" ({name})"), one, "–") for one in ones]
    heads = ["arm", "pulls", "rewards", "mean", "95 % limits"]
    chart = means_chart(view["arms"]) if known else None
    parts = [
        _figure(chart, "The mean reward of each arm, with limits that hold at all times"),
        table("The arms in numbers", heads, rows),
        _shown(view),
    ]
    if view["apart"]:
        said = f"The policy does not see the trials of the {' and of the '.join(view['apart'])}."
        parts.append(note(said))
    if not known:
        parts.append(el("p", f"There are no limits: {view['no_limits']}.", class_="warning"))
    elif view["rewards"].get("amended"):
        parts.append(el("p", NOT_FINAL, class_="warning"))
    else:
        held = "The limits hold however often you look, as long as "
        parts.append(note(f"{held}{view['rewards_are']}, and the means do not change."))
    if view.get("old_alone"):
        young = f"Trials younger than the window ({words.lasting(view['settings']['window'])})"
        parts.append(note(f"{young} are not evidence yet: good news comes before bad news."))
    if (more := view["arms_count"] - len(view["arms"])) > 0:
        parts.append(note(f"{more:,} more arms have fewer pulls."))
    return html(*parts)


def _arm_row(name: Html, one: View, said: str) -> list[Any]:
    return [name, f"{one['tries']:,}", f"{one['heard']:,}", words.number(one["value"]), said]


def _limits_of(one: View, known: bool) -> Html:
    """The limits in a cell, in which a narrow table may break the line after "to" and not within a number."""
    low, to, high = (words.limits(one) if known else "none").partition(" to ")
    whole = [el("span", part, class_="whole") for part in (low + to.rstrip(), high) if part]
    return html(whole[0], [html(" ", part) for part in whole[1:]], " (retired)" if one["retired"] else None)


def _shown(view: View) -> Html | None:
    if (best := view["best"]) is None:
        return None
    rows = [
        el(
            "li",
            el("bdi", best),
            " is better than ",
            el("bdi", one["than"]),
            ": ",
            el("strong", "shown" if one["shown"] else "not shown", class_="yes" if one["shown"] else "no"),
            f" (difference {words.number(one['value'])}, limits {words.limits(one)})",
        )
        for one in view["ahead"][:50]
    ]
    return el("ul", rows, class_="shown")


# Where the traffic goes


def traffic(view: View) -> Html:
    """Trials per arm over time, split by who chose the arm; and a table with the sums."""
    past = view["history"]
    over_time = past["traffic"]
    if over_time["start"] is None:
        return note("No trial was asked yet.")
    used = {by for span in over_time["spans"] for _, by, _ in span}
    shown = [by for by in BYS if by in used]
    keys = [el("li", el("span", "", class_=f"swatch by-{by}"), f"{by}: {WHY[by]}") for by in shown]
    sums: dict[str, dict[str, int]] = {}
    for arm, by, count in past["by"]:
        sums.setdefault(arm, {})[by] = count
    order = [arm for arm in (*over_time["arms"], OTHERS) if arm in sums]
    rows = [[el("bdi", arm), *(f"{sums[arm].get(by, 0):,}" for by in shown)] for arm in order]
    timed = over_time["unit"] == "seconds"
    caption = "Trials per arm over time; the colour says who chose the arm" if timed else "Pulls per arm"
    behind = view["seq"] - past["seq"] if view["seq"] is not None else 0
    return html(
        _figure(traffic_chart(over_time), caption),
        el("ul", keys, class_="keys") if timed else None,
        table("Trials by arm and by who chose it", ["arm", *shown], rows) if rows else None,
        note(f"{behind:,} events of the journal are still being read.") if behind > 0 else None,
    )


# Whether rewards arrive


def rewards(view: View) -> Html:
    """Open, late and defaulted rewards, and whether shares of traffic are right."""
    counts = view["rewards"]
    rows = [[said, f"{counts[name]:,}"] for name, said in COUNTED.items() if name in counts]
    past = view["history"]
    parts: list[Any] = [table("Rewards in numbers", ["what", "how many"], rows, hidden=True)]
    if view["time"] is not None and past.get("last_ask") is not None:
        last = past.get("last_reward")
        came = html("The last reward came at ", when(last, seconds=True), ".") if last is not None else None
        if last is None and not counts["told"]:
            came = html("No reward has come yet.")
        asked = when(past["last_ask"], seconds=True)
        parts.append(el("p", "The last trial was asked at ", asked, ". ", came))
    if view["settings"].get("window") is not None and counts["open"]:
        parts.append(note(f"A trial stays open for {words.lasting(view['settings']['window'])} at most."))
    elif counts["open"] > counts["told"]:
        parts.append(el("p", MANY_OPEN, class_="warning"))
    return html(*parts, [_share_check(one) for one in past["checks"]])


def _share_check(check: View) -> Html:
    total, p = sum(check["counts"]), check["p"]
    floors = check["what"] == "floors"
    heads = [*(("who chose", "trials") if floors else ("group", "units")), "share", "should be"]
    rows = []
    for group, count, due in zip(check["groups"], check["counts"], check["shares"], strict=True):
        share = f"{100 * count / total:.3g} %" if total else "–"
        rows.append([el("bdi", group), f"{count:,}", share, f"{100 * due:.3g} %"])
    verdict = note(f"The counts do not contradict what the shares should be (p = {p:.2g}).")
    if not total:
        verdict = note("There is nothing to check yet.")
    elif p < words.WRONG_SHARES:
        wrong = f"The shares are wrong (p = {p:.1g}): look for a fault before you believe a mean."
        verdict = el("p", wrong, class_="warning")
    what = "Shares of the floors" if floors else "Share of the holdout, among units"
    return html(table(what, heads, rows), verdict)


# What happened


def events(view: View) -> Html:
    """The last events that are no trials, and the last trials."""
    past = view["history"]
    listed = []
    for event in past["events"]:
        rings = event["kind"] == "alarm" and event.get("state") != "over"
        said = el("strong", words.event_words(event)) if rings else words.event_words(event)
        listed.append(el("li", when(event["time"]), " ", said, class_="alarm" if rings else None))
    rows = [
        [one["id"], when(one["time"]), el("bdi", one["arm"]), one["by"], el("bdi", one["unit"]), _reward(one)]
        for one in past["trials"]
    ]
    heads = ["trial", "asked", "arm", "chosen by", "unit", "reward"]
    last = table("The last trials", heads, rows, hidden=True)
    return html(
        el("ol", listed, class_="events") if listed else note("Nothing is recorded."),
        el("details", el("summary", "The last trials"), last) if rows else None,
    )


def _reward(trial: View) -> str:
    return "open" if trial["how"] is None else f"{rounded(trial['reward'])} ({HOW[trial['how']]})"


def settings(view: View) -> Html:
    """The settings, in words and as JSON."""
    known, horizon = view["settings"], view["horizon"]
    said = {"window": words.lasting(known["window"])} if known.get("window") is not None else {}
    rows = [["policy", view["policy"]], ["horizon", "none" if horizon is None else f"{horizon:,}"]]
    rows += [[name, words.plainly(value)] for name, value in {**known, **said}.items()]
    lines = json.dumps(known, indent=1).splitlines()
    plain = el("pre", Html("\n".join(map(html, lines))))  # as lines, whose ends are no hidden signs
    return html(
        table("The settings", ["setting", "value"], rows, hidden=True),
        el("details", el("summary", "As JSON"), plain) if known else None,
    )
