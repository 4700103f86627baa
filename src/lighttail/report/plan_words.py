"""A plan in words and in the rows of its tables."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any
from urllib.parse import urlencode

from lighttail import bonuses, policies
from lighttail.noises import Noise
from lighttail.outcomes.format import amount, chance
from lighttail.outcomes.losing import EXPLAINED
from lighttail.planning import Plan
from lighttail.planning.answer import Option, chance_words, loss_words, of_noise
from lighttail.planning.sensitivity import Misjudged
from lighttail.reading.words import words_of

COLUMNS = ("", "policy", "tuning", "mean loss", "chance of the limit or more", "chance from")
MISJUDGED = ("if", "the limit", "mean loss", "chance of the limit or more")
NOMINAL = (
    "A nominal limit assumes that no weighted run weighs more than three times the largest weight seen, "
    "which is not proven."
)
SERVER = "http://127.0.0.1:8710"  # of `lighttail serve` without options
ALARM, MOST_ALARM = 20.0, 0.5  # an alarm rings above so many times the limit of the plan, at most above this
COINS = {"low": 0, "high": 1}
SIZES = {0.5: "half", 2.0: "twice"}


def rows(plan: Plan) -> list[tuple[str, ...]]:
    """One row per policy of the table, in the order of COLUMNS."""
    return [
        (part, one.label, tuning(one), loss_words(one.mean_loss), chance_words(one.chance), one.source)
        for part, one in plan.options().items()
    ]


def misjudged_rows(plan: Plan) -> list[tuple[str, ...]]:
    """One row per misjudgement, in the order of MISJUDGED."""
    cases: list[tuple[str, float, Option | Misjudged]] = [("all is as planned", plan.loss, plan.choice)]
    cases += [(_judged(case), case.loss, case) for case in plan.misjudged]
    return [
        (what, amount(loss), loss_words(one.mean_loss), chance_words(one.chance)) for what, loss, one in cases
    ]


def tuning(option: Option) -> str:
    """The tuning of a policy in words; empty if the policy has none."""
    if not option.scale > 0.0:
        return ""
    if option.unit == "kappa / sigma":
        return of_noise(option.scale)
    return (
        f"{option.scale:.3g} {option.unit}"
        if option.unit.startswith("pulls")
        else f"{option.unit} = {option.scale:.3g}"
    )


def family_words(plan: Plan) -> str:
    """What is known of the problem, how long the experiment is, and when rewards become known."""
    family, count = plan.family, len(plan.family.members)
    noise = "the standard deviation of one reward"
    noise += " of the noisiest arm, on average over the family," if count > 1 else ""
    known = f"What is known: {family.about}; {noise} is {family.sigma:.3g}."
    long = f"The experiment has {plan.horizon:,} pulls."
    average = f"Mean losses are averages over {count} problems that stand for all problems that are possible."
    return " ".join(filter(None, (known, long, plan.course.words(), average if count > 1 else "")))


def limit_words(plan: Plan) -> str:
    """Where the limit is asked for, and where the plan confirms it."""
    asked = f"a loss of {amount(plan.loss)}{plan.unit} or more with a chance of at most {chance(plan.limit)}"
    count = len(plan.family.members)
    if plan.family.single:
        return f"The limit is {asked}."
    if plan.over == "average":
        return f"The limit is {asked}, on average over these {count} problems."
    many = "problem" if plan.choice.confirmed_in == 1 else f"{plan.choice.confirmed_in} problems"
    done = f"{name_of(plan)} was {'confirmed' if plan.met else 'estimated'}"
    return (
        f"The limit is {asked}, in the worst problem that is possible. The plan looks for this problem. The "
        f"chance of the {done} in the {many} that looked worst, not in all problems that are possible; the "
        "table shows the chance in the worst problem found."
    )


def notes(plan: Plan) -> list[str]:
    """What a reader of the table must know: what a loss is, whose chances these are, and what is assumed."""
    where = (
        "of each policy on average over the family"
        if plan.over == "average"
        else "of each policy in the problem of the family that was found to be its worst"
    )
    chances = f"Chances are those {where}; mean losses are averages over the family."
    nominal = NOMINAL if any(one.nominal for one in plan.options().values()) else ""
    said = (EXPLAINED["pseudo_regret"], "" if plan.family.single else chances, tail_words(plan), nominal)
    return list(filter(None, said))


def tail_words(plan: Plan) -> str:
    """That the choice keeps the limit without a light tail; empty if a theorem proves its tail light."""
    one = plan.choice
    if not plan.met or one.policy.light_tailed or one.chance.low == one.chance.high:
        return ""
    return (
        f"No theorem makes large losses of {one.label} exponentially rare: it keeps the limit in an "
        "experiment of this length because it explores enough. If the experiment grows, the chance of a loss "
        "that grows alike may fall slowly."
    )


def name_of(plan: Plan) -> str:
    return "choice" if plan.met else "nearest policy"


def worst_words(plan: Plan) -> str:
    """The problem in which the choice is at its worst; empty if there is one problem alone."""
    if plan.family.single:
        return ""
    worst = plan.choice.worst
    means = ", ".join(f"{mean:.4g}" for mean in worst.means)
    return f"The {name_of(plan)} is at its worst if the means of the arms are {means}."


def run_parts(plan: Plan) -> list[tuple[str, list[str]]]:
    """How to run the choice in a live experiment: sentences, each with its lines. If no policy keeps the
    limit, one sentence says that there is no such line."""
    if not plan.met:
        none = "No policy was confirmed to keep the limit"
        return [(f"{none}, so this plan has no line that starts a live experiment.", [])]
    parts = [("Run this policy in a live experiment, in Python:", live_lines(plan))]
    beyond = " (rewards have the limits of the data, and the server refuses others: widen them if need be)"
    filled = "Or behind HTTP: start the server, and open the form, in which all of this is filled in"
    if plan.choice.words:
        rewards = rewards_of(plan)
        observed = "low" in rewards and rewards != COINS
        parts += [
            (f"{filled}{beyond if observed else ''}:", ["lighttail serve", form_link(plan)]),
            ("Or send the same to the server, as any program can (choose any name):", [begin_line(plan)]),
            (_telling(rewards == COINS), []),
            (_alarming(plan), []),
        ]
    return parts


def _telling(coins: bool) -> str:
    """What must be told, and the words of the settings that replace the telling."""
    said = (
        "Tell the reward of every visitor, zeros too: if conversions alone are told, every mean is 1."
        if coins
        else "Tell the reward of every pull, the bad ones too: otherwise the means are too high."
    )
    return (
        f'{said} Or add "window": 604800, "default": 0 to the settings, which closes a trial without a '
        "reward after 604,800 seconds (a week) with the reward 0; the form has fields for them."
    )


def _alarming(plan: Plan) -> str:
    """Why the chance of the alarm is not the chance of the plan."""
    return (
        f"The server warns if the chance of this loss rises above {chance(alarm_chance(plan))}. The "
        f"{chance(plan.limit)} of the plan would be too low for this: a limit so close to the chance at the "
        "beginning is often passed by luck."
    )


def live_lines(plan: Plan) -> list[str]:
    """Lines of Python that start a live experiment with the choice."""
    policy = python_words(plan.choice.policy)
    made = f"lt.Experiment({policy}, arms={arms_of(plan)!r}, horizon={plan.horizon})"
    return ["import lighttail as lt", f"experiment = {made}"]


def form_link(plan: Plan, server: str = SERVER) -> str:
    """The page of `lighttail serve` on which an experiment with the choice can be begun; empty if the service
    does not know the policy."""
    if not plan.choice.words:
        return ""
    filled = {"arms": "\n".join(arms_of(plan)), "policy": plan.choice.words, "horizon": plan.horizon}
    filled |= {"loss": f"{plan.loss:.10g}", "chance": f"{alarm_chance(plan):g}"}
    if (limits := means_of(plan)) is not None:
        filled |= {"least_mean": limits[0], "largest_mean": limits[1]}
    filled |= rewards_of(plan)
    return f"{server}/?{urlencode(filled)}"


def begin_line(plan: Plan, server: str = SERVER) -> str:
    """The command that begins an experiment with the choice at `lighttail serve`: what the link of
    `form_link` fills in, with a name."""
    body: dict[str, Any] = {"name": "planned", "arms": arms_of(plan), "policy": plan.choice.words}
    lost = int(plan.loss) if plan.loss == int(plan.loss) else float(f"{plan.loss:.10g}")
    risk = {"loss": lost, "chance": float(f"{alarm_chance(plan):g}"), "then": "warn"}
    body |= {"horizon": plan.horizon, "settings": {"risk": risk}}
    if (limits := means_of(plan)) is not None:
        body["settings"]["means"] = dict(zip(("low", "high"), limits, strict=True))
    if rewards := rewards_of(plan):
        body["settings"]["rewards"] = rewards
    held = "-H 'Content-Type: application/json'"
    return f"curl {server}/v1/experiments {held} -d {shlex.quote(json.dumps(body))}"


def alarm_chance(plan: Plan) -> float:
    """The chance above which an alarm of the live experiment shall ring: many times the limit of the plan,
    because forecasts from a beginning with the chance c reach p by luck with a chance of up to c / p
    (docs/forecasts.md)."""
    return max(plan.limit, min(ALARM * plan.limit, MOST_ALARM))


def means_of(plan: Plan) -> tuple[float, float] | None:
    """The limits of all means for the setting `means`, which must differ; None if there are none."""
    limits = plan.family.limits
    return limits if limits is not None and limits[0] < limits[1] else None


def rewards_of(plan: Plan) -> dict[str, float]:
    """The setting `rewards`: 0 and 1, the sigma of the noise, or the limits of observed rewards. Empty for
    noise that is not sub-Gaussian, of which the service knows nothing."""
    members = [member for member in plan.family.members if not member.noise.certain]
    if members and all(member.noise.is_coin for member in members):
        return dict(COINS)
    if not members:
        return {}
    spans = [member.noise.span(member.means) for member in members]
    if not any(member.noise.moves for member in members) and None not in spans:
        low, high = (pick(ends) for pick, ends in zip((min, max), zip(*spans, strict=True), strict=True))
        return {"low": low, "high": high} if low < high else {}
    sigmas = [float(member.noise.sub_gaussian or 0.0) for member in members]
    return {"sigma": max(sigmas)} if min(sigmas) > 0.0 else {}


def arms_of(plan: Plan) -> list[str]:
    """The arms by name: A, B, ... if they have no names of their own."""
    arms = [re.sub(r"^arm (?=\d+$)", "", label) for label in plan.family.labels]
    if arms == [str(place + 1) for place in range(len(arms))] and len(arms) <= 26:
        arms = [chr(ord("A") + place) for place in range(len(arms))]
    return arms


def python_words(policy: object) -> str:
    """A policy as Python writes it after `import lighttail as lt`; a class of the user's own as it is.

    >>> python_words(policies.UCB(bonuses.LightTailed(0.031)))
    'lt.UCB(bonus=lt.LightTailed(kappa=0.031))'
    """

    def named(found: re.Match[str]) -> str:
        shipped = any(hasattr(room, found[1]) for room in (policies, bonuses))
        return f"lt.{found[0]}" if shipped else found[0]

    return re.sub(r"\b([A-Z]\w*)\(", named, repr(policy))


def closer_words(plan: Plan) -> str:
    """What `closer_look` estimates."""
    if plan.over == "average" and not plan.family.single:
        return "This command estimates its chance in the worst of these problems alone, not on average"
    return "This command estimates its chance again, in the worst problem that was found"


def misjudged_words(plan: Plan) -> str:
    """What the table of misjudgements shows."""
    where = (
        "on average over the changed problems"
        if plan.over == "average"
        else "in the problem that is the worst as planned, changed in the same way (0 % if nobody can lose "
        "so much there); another problem may then be worse"
    )
    one = "" if plan.family.single else f" Chances are those {where}."
    return (
        f"The {name_of(plan)}, {plan.choice.label}, is played in a world other than the one planned for."
        f"{one} The limit grows with the horizon. If the gaps are larger, there is more to lose, so that a "
        "larger chance is no fault of the policy alone."
    )


def closer_look(plan: Plan) -> str:
    """A command that estimates the choice's chance in its worst problem; empty if no command can say it."""
    one, noise = plan.choice, noise_words(plan.choice.worst.noise)
    if not one.words or not noise or not plan.course.straight:
        return ""
    means = ",".join(f"{mean:.6g}" for mean in one.worst.means)
    start = f"lighttail tail --policy {one.words} --means={means} {noise}"
    return f"{start} --horizon {plan.horizon} --loss {plan.loss:g}"


def noise_words(noise: Noise) -> str:
    """The options that name a noise on the command line; "" if lighttail ships no words for the noise.

    >>> from lighttail.noises import Bernoulli, StudentT
    >>> noise_words(Bernoulli()), noise_words(StudentT(df=5.0, sigma=2.0))
    ('--noise bernoulli', '--noise studentt:5.0 --sigma 2.0')
    """
    if (found := words_of(noise)) is None:
        return ""
    word, sigma = found
    return f"--noise {word}" + ("" if sigma in (None, 1.0) else f" --sigma {sigma!r}")


def _judged(case: Misjudged) -> str:
    size = SIZES.get(case.factor, f"{case.factor:g} times")
    plural = case.what.endswith("s") and not case.what.endswith("ss")
    return (
        f"{case.what} {'are' if plural else 'is'} {size} as {'long' if 'horizon' in case.what else 'large'}"
    )
