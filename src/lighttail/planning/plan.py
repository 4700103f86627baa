"""From what is known of a problem to a decision: the policy to run, and what is risked by running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lighttail.delays import DelayLike
from lighttail.families import Family
from lighttail.planning.answer import Over, Plan
from lighttail.planning.making import planned
from lighttail.planning.request import Request
from lighttail.planning.shortest import shortest
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.running.prepare import check_seed
from lighttail.system.progress import ReportPart


def plan(
    family: Family | Bandit | Sequence[Bandit],
    *,
    horizon: int | None,
    loss: float | None = None,
    loss_per_pull: float | None = None,
    chance: float = 0.001,
    over: Over = "everywhere",
    policies: Sequence[Policy] | Mapping[str, Policy] | None = None,
    also: Sequence[Policy] | Mapping[str, Policy] = (),
    delay: DelayLike = None,
    batch: int | None = None,
    seed: int | None = None,
    effort: float = 1.0,
    threads: int | None = None,
    progress: bool | ReportPart = False,
) -> Plan:
    """The policy with the least mean loss among those whose chance of losing `loss` or more is small enough.

    family: what is known of the problem: a `Family`, one problem, or a list of problems.
    horizon: pulls of the experiment. None asks how long it must be: the shortest horizon, to about a tenth,
        at which some policy loses `loss_per_pull` * horizon or more with the allowed chance at most.
    loss: the loss (pseudo regret) that must be rare. None asks for the smallest loss that can be promised,
        which is smaller if the effort is larger.
    chance: how rare.
    over: "everywhere" looks for the problems of the family in which the chance is highest and confirms, in
        the three that look worst, that the chance is within the limit; it does not prove this for the whole
        family. "average" holds the average chance over the members to the limit. The mean loss is always the
        average over the members.
    policies: those to choose from, each over its tuning; the shipped ones unless given. also: further ones.
    delay, batch: when rewards become known, as in `simulate`.
    effort: times as many paths as usual.
    seed, threads, progress: as in `simulate`; a function is called with (what is done, pulls so far), from 0
        on for each horizon that is tried.

    docs/planning.md says how the search works and what is guaranteed.

    >>> import lighttail as lt
    >>> found = lt.plan(lt.Bandit([0.2, 0.8]), horizon=200, loss=60, chance=0.01, seed=1, effort=0.05)
    >>> found.met, found.choice.chance.high <= 0.01
    (True, True)
    """
    seed = check_seed(seed)
    request = Request(family, chance, over, policies, also, delay, batch, seed, effort, threads, progress)
    if horizon is None or loss_per_pull is not None:
        found = shortest(request, horizon, loss, loss_per_pull)
    else:
        found, _ = planned(request, horizon, loss)
    given = {
        **{"horizon": horizon, "loss": loss, "loss_per_pull": loss_per_pull, "chance": chance, "over": over},
        **{"delay": delay, "batch": batch, "effort": effort, "seed": seed},
    }
    usual = {"loss": None, "loss_per_pull": None, "delay": None, "batch": None, "effort": 1.0}
    said = [f"{name}={value!r}" for name, value in given.items() if usual.get(name, ...) != value]
    named = [f"{name}={name}" for name, value in (("policies", policies), ("also", also)) if value]
    return replace(found, made_by=f"plan({', '.join(['family', *said, *named])})")
