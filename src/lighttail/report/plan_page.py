"""A plan as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from lighttail.outcomes.format import amount, counted
from lighttail.outcomes.format import chance as in_percent
from lighttail.outcomes.losing import EXPLAINED
from lighttail.planning import Plan
from lighttail.report.document import cell, code, document, figure, made_by, table, unbroken
from lighttail.report.plan_words import (
    COLUMNS,
    MISJUDGED,
    NOMINAL,
    closer_look,
    closer_words,
    family_words,
    limit_words,
    misjudged_rows,
    misjudged_words,
    name_of,
    rows,
    run_parts,
    tail_words,
    worst_words,
)
from lighttail.system.versions import used_versions

LONG = 24  # letters from which a cell without an interval may take several lines
LOSSES = (
    "The losses of simulated runs over the family. Triangle: the mean; dashed line: the limit; filled: "
    "light-tailed by design; hatched: not. An even split has one bar per problem, because its loss is no luck"
)


def page(plan: Plan, command: str, frontier: bytes, losses: bytes, above: str = "") -> str:
    """The whole page. frontier, losses: the figures as SVG. above: HTML before the heading."""
    body = f"""{above}<h1>Which policy to run, and what it risks</h1>
<p>{unbroken(family_words(plan))} {unbroken(limit_words(plan))}</p>
<p class="verdict">{unbroken(plan.sentence())}</p>
<h2>The numbers</h2>
{_table(COLUMNS, rows(plan), 2)}
<p>{EXPLAINED["pseudo_regret"]} The brackets contain 95&nbsp;% intervals. {unbroken(worst_words(plan))}
{unbroken(tail_words(plan))}</p>
<h2>Run it</h2>
{_run(plan)}
{_closer(plan)}
<h2>The frontier</h2>
{figure(frontier, _frontier_caption(plan))}
<p>{unbroken(_reading(plan))}</p>
<h2>How much is lost</h2>
{figure(losses, LOSSES)}
<p>{unbroken(_over_family(plan))}</p>
<h2>If the problem was misjudged</h2>
{_table(MISJUDGED, misjudged_rows(plan), 1)}
<p>{unbroken(misjudged_words(plan))}</p>
<h2>How the numbers were made</h2>
<p>{unbroken(_made(plan))}</p>
{made_by(command, used_versions(), f"seed {plan.seed}")}"""
    return document("lighttail: a plan", body)


def _table(names: Sequence[str], cells: Iterable[Sequence[str]], texts: int) -> str:
    """A table whose first `texts` columns are text; an interval stands below its value."""

    def shown(place: int, text: str) -> str:
        value, bracket, limits = text.partition(" [")
        kind = "text" if place < texts else "source" if len(text) > LONG else ""
        return cell(value, bracket.strip() + limits, kind=kind)

    return table(names, ([shown(place, text) for place, text in enumerate(row)] for row in cells), texts)


def _run(plan: Plan) -> str:
    """What to type, under its sentences. An address is a link."""

    def line(text: str) -> str:
        shown = escape(text)
        return f'<a class="word" href="{shown}">{shown}</a>' if text.startswith("http") else code(text)

    parts = []
    for said, lines in run_parts(plan):
        parts.append(f"<p>{unbroken(said)}</p>")
        if lines:
            parts.append(f"<pre>{chr(10).join(map(line, lines))}</pre>")
    return chr(10).join(parts)


def _closer(plan: Plan) -> str:
    command = closer_look(plan)
    if not command:
        return ""
    return f"<p>{closer_words(plan)}, and draws the tail:</p><pre>{code(command)}</pre>"


def _frontier_caption(plan: Plan) -> str:
    what = (
        f"the loss that is reached with a chance of {in_percent(plan.limit)}"
        if plan.asked_for_loss
        else f"the chance of losing {amount(plan.loss)} or more"
    )
    return f"Mean loss and {what}: one curve per policy over its tuning; star: the answer of this plan"


def _reading(plan: Plan) -> str:
    seek = (
        "The lower a policy lies, the smaller is the loss that can be promised. The marks come from few runs "
        "each, so that they are rough and mostly too low. The star is an upper 95 % limit from fresh runs, "
        "and the line below it ends at the estimate from these runs. More effort can promise a smaller loss."
        if plan.asked_for_loss
        else "A policy below the dashed line is allowed. Among these policies the plan seeks the one that is "
        "farthest to the left. The star and the other large marks are estimates from fresh runs; the best of "
        "the small marks look better than they are. An arrow downwards marks the upper limit of a "
        "chance: no simulated run lost so much."
    )
    return (
        f"{seek} Along a curve the exploration grows towards the end that has the curve's name. Too little "
        "exploration gets stuck with a bad arm; too much pays for it in every run. Grey marks lose more on "
        "average than another policy whose risk is no higher. The bars are 95 % intervals. Small faint marks "
        "are policies that the search gave up before it knew them well: their places are rough, and a "
        "dotted line leads past them. Cool colours are light-tailed designs."
    )


def _over_family(plan: Plan) -> str:
    if plan.over == "average" or len(plan.family.members) == 1:
        return ""
    return (
        "These runs are few, and spread over all problems that stand for the family. The chance in the table "
        "is that in the worst problem, and comes from other runs or from an exact law."
    )


def _confirmed(plan: Plan) -> str:
    done = f"{name_of(plan)} was {'confirmed' if plan.met else 'estimated'}"
    if plan.over == "average" or plan.family.single:
        return f"{done} in the same way"
    many = counted(plan.choice.confirmed_in, "problem")
    return f"{done} in {many} in which it looks worst, not in the whole family"


def _made(plan: Plan) -> str:
    return (
        f"{plan.pulls:,} pulls were simulated. A search plays every policy over a range of tunings with few "
        "runs, and the promising policies with more and more runs. The numbers of the search choose, and the "
        "best of many candidates looks better than it is. So the table does not repeat the numbers of the "
        "search: each policy in it was played again with fresh random numbers, and the chance of the "
        f"{_confirmed(plan)}. Its interval allows for every look that was "
        "taken at a candidate. The last column of the table says where a chance comes from: an exact law, "
        "simulated runs, a method for rare events, or a proven upper bound. "
        f"{NOMINAL}"
    )
