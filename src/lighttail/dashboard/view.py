"""The view: everything that a page shows of an experiment, as JSON values. Pages show a view and compute
nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lighttail.checks import BadInput
from lighttail.dashboard.history import MOST_ARMS, OTHERS, Spans
from lighttail.dashboard.words import View
from lighttail.forecasting import believed_limits
from lighttail.inference import BoundedRewards, Evidence, Limits, contradiction, lead
from lighttail.inference.evidence import Heard
from lighttail.online import Experiment
from lighttail.online.overview import Overview, overview

DEFAULT_PART = 0.05  # of the largest possible loss: the loss that a page asks about if nobody names one
MOST_SHOWN = 200  # arms in a view
NO_ARMS: View = {
    **{"arms": None, "arms_count": 0, "best": None, "beats": 0, "ahead": []},
    **{"no_limits": None, "contradiction": None},
}


def arms_view(
    tries: Mapping[Any, int],
    heard: Mapping[Any, tuple[int, float]],
    evidence: Evidence,
    retired: Any = (),
    why: str | None = None,
    first: int | None = None,
    between: tuple[float, float] | None = None,
) -> View:
    """The arms with the limits of their means, and the best one so far against the others, of which there may
    be more than a page shows: `beats` is the number of all arms to which the best one is shown to be better.

    tries: the pulls of each arm. heard: the number and the sum of the rewards that are evidence.
    retired: the arms that are never chosen again. why: the sentence that says why the rewards are no
    evidence; then there are no limits, and nothing is shown. first: how many arms there were at the
    beginning, if others were added. between: the limits of all means, if they are stated; `contradiction`
    says why the rewards contradict them, if they do."""
    limits: dict[Any, Limits] = {}
    ahead: list[View] = []
    best, beats = None, 0
    try:
        if why is None:
            now = lead(heard, evidence, first=first)
            limits, best = now.means, now.best
            beats = sum(map(now.shown, now.ahead))
            shown = sorted(now.ahead.items(), key=lambda one: -one[1].low)[:MOST_SHOWN]
            ahead = [{"than": str(arm), "shown": now.shown(arm), **found.to_dict()} for arm, found in shown]
    except BadInput as error:  # rewards outside their range: then no interval is right
        why = error.sentence
    rows = [
        {
            **{"arm": str(arm), "tries": int(count), "heard": int(heard[arm][0])},
            **limits.get(arm, Limits(Heard(*heard[arm]).mean, -math.inf, math.inf)).to_dict(),
            "retired": arm in retired,
        }
        for arm, count in tries.items()
    ]
    if len(rows) > MOST_SHOWN:  # the best arm so far, and the busiest
        rows = sorted(rows, key=lambda row: (row["arm"] != str(best), -row["tries"]))[:MOST_SHOWN]
    return {
        "arms": rows,
        "arms_count": len(tries),
        "best": None if best is None else str(best),
        "beats": beats,
        "ahead": ahead,
        "no_limits": why,
        "contradiction": contradiction({arm: found[1:] for arm, found in limits.items()}, between),
        "rewards_are": _said(evidence),
    }


def _said(evidence: Evidence) -> str:
    if isinstance(evidence, BoundedRewards):
        return f"each reward is from {evidence.low:g} to {evidence.high:g}"
    return f"the noise of rewards is sub-Gaussian with a sigma of {getattr(evidence, 'sigma', 0.0):g}"


def default_loss(
    horizon: int | None, evidence: Evidence, means: Mapping[str, float] | None = None
) -> float | None:
    """The loss that a page asks about if nobody names one: about 5 % of the most that can be lost, with one
    digit; None if nothing limits the loss.

    means: the limits of all means, as in the setting of this name, if they are known.

    >>> default_loss(12_000, BoundedRewards()), default_loss(None, BoundedRewards())
    (600.0, None)
    >>> default_loss(20_000, BoundedRewards(), {"low": 0.03, "high": 0.05})
    20.0
    """
    spans = [evidence.high - evidence.low] if isinstance(evidence, BoundedRewards) else []
    spans += [] if means is None else [means["high"] - means["low"]]
    if horizon is None or not spans:
        return None
    return float(f"{DEFAULT_PART * horizon * min(spans):.0e}")


def status_word(summary: View) -> str:
    """Where an experiment of the service stands."""
    return "stopped" if summary["stopped"] else "paused" if summary["paused"] else "running"


def service_view(summary: View, history: View, arms: View | None, risk: View) -> View:
    """The view of an experiment of the service.

    summary: as the service answers. history: `History.to_plain`. arms: `arms_view`; None if the actions
    change at every ask. risk: the forecast, or why there is none, and what was asked for (`risk_view`)."""
    events = summary["events"]
    apart = {name: summary[name] for name in ("holdout", "fallback")}
    return {
        **{name: summary[name] for name in ("name", "policy", "horizon", "pulls")},
        "trials": sum(summary["asked"].values()),
        "status": status_word(summary),
        **{name: summary[name] for name in ("seq", "time", "settings")},
        "means_between": summary["settings"].get("means"),
        "dim": summary["dim"],
        "estimate": summary.get("estimate"),
        **(arms or NO_ARMS),
        "apart": {name: _apart(one) for name, one in apart.items() if any(one["tries"].values())},
        "rewards": {
            "open": summary["open"] + sum(one["open"] for one in apart.values()),
            "told": events["tell"],
            "defaulted": events["default"],
            "late": events["late"],
            "amended": events["amend"],
        },
        "alarm": summary.get("alarm"),
        "history": history,
        "risk": risk,
    }


def _apart(one: View) -> list[View]:
    return [
        {"arm": str(arm), "tries": tries, "heard": one["heard"][arm], "value": one["means"][arm]}
        for arm, tries in one["tries"].items()
        if tries
    ]


def risk_view(
    loss: float | None,
    horizon: int | None,
    why: str | None = None,
    waiting: bool = False,
    at: int | None = None,
) -> View:
    """What was asked about the end, and room for the forecast.

    why: the sentence that says why there is no forecast. waiting: whether one is being made. at: the event
    after which the forecast was made."""
    return {"loss": loss, "horizon": horizon, "forecast": None, "why": why, "waiting": waiting, "at": at}


def experiment_view(
    experiment: Experiment,
    loss: float | None = None,
    horizon: int | None = None,
    rewards: Evidence | None = None,
    name: str = "experiment",
    **more: Any,
) -> View:
    """The view of an `Experiment` without a service. The arguments are those of `Experiment.forecast`.

    Without a loss, or without a horizon, there is no forecast."""
    now = overview(experiment)
    evidence = BoundedRewards() if rewards is None else rewards
    end = experiment.horizon if horizon is None else horizon
    between, first = more.get("between"), experiment.began_with
    ends = believed_limits(between)
    means = None if ends is None else {"low": ends[0], "high": ends[1]}
    asked = default_loss(end, evidence, means) if loss is None else loss
    risk = risk_view(asked, end)
    if end is None or asked is None:
        risk["why"] = "A forecast needs a loss and the number of pulls at the end."
    else:
        try:
            made = experiment.forecast(loss=asked, horizon=end, rewards=evidence, **more)
            risk["forecast"] = made.to_dict()
        except BadInput as error:
            if loss is not None or horizon is not None:
                raise
            risk["why"] = error.sentence
    return {
        **{"name": name, "policy": str(experiment.policy), "horizon": experiment.horizon},
        **{"pulls": now.pulls, "trials": now.pulls, "status": "running", "seq": None, "time": None},
        **{"settings": {}, "means_between": means, "dim": None, "estimate": None},
        **arms_view(now.tries, now.heard, evidence, now.retired, first=first, between=between),
        "apart": {},
        "rewards": {"open": now.open, "told": sum(n for n, _ in now.heard.values())},
        "alarm": None,
        "history": {"traffic": _traffic(now), "by": [], "events": [], "trials": [], "checks": []},
        "risk": risk,
    }


def _traffic(now: Overview) -> View:
    """The pulls that the state remembers, in their order, in spans of pulls."""
    spans = Spans(1.0)
    busy = set(sorted(now.tries, key=lambda arm: -now.tries[arm])[:MOST_ARMS])
    for place, arm in enumerate(now.order, now.before + 1):
        spans.add(float(place), str(arm) if arm in busy else OTHERS, "policy")
    return {**spans.to_plain(), "unit": "pulls", "arms": [str(arm) for arm in now.tries if arm in busy]}
