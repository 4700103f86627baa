"""The main job: several policies, simulated on one problem and compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from lighttail.checks import positive, refuse, shown, size_of
from lighttail.course import Course, check_course
from lighttail.delays import DelayLike
from lighttail.gpu.run import Device, check_device
from lighttail.outcomes.comparison import Comparison, comparison_of
from lighttail.outcomes.growth import Growth
from lighttail.outcomes.losing import Lost, check_loss, check_lost
from lighttail.outcomes.outcome import Outcome
from lighttail.outcomes.verdict import FEW
from lighttail.policies import Policy
from lighttail.problems import Problem
from lighttail.reading.words import in_units, parse_policy
from lighttail.rehearsal import try_out
from lighttail.running.kept import Keep
from lighttail.running.pool import check_executor, check_travels
from lighttail.running.prepare import (
    check_played,
    check_policy,
    check_problem,
    check_progress,
    check_settings,
)
from lighttail.running.simulate import simulate
from lighttail.system.progress import Report, ReportPart, parts_reporter
from lighttail.tails.growth import RuinQuestion
from lighttail.tails.growth import growth as growth_in

# The six policies as tuned in the paper, in the words of the command line and in units of the noise (see
# `in_units`). The paper's any-time runs leave out the factor 1/sqrt(K), which 0.2 * sqrt(2) makes up for.
TUNED = (
    "se:standard:0.4{s}",
    "ucb:standard:0.8{s}",
    "ts:0.8{s}",
    "se:lighttailed:0.1{s}",
    "ucb:lighttailed:0.2{s}",
    f"ucb:anytime:{0.2 * math.sqrt(2.0)}{{s}}",
)
LINEAR = ("linucb:lighttailed:0.2{s}", "linucb:oful:1{s}:0.05:1", "linucb:standard:1{s}", "lints:1{s}")
PATHS = 5000
MOST_GROWTHS = 12  # policies whose growth is told unless this is asked for
MOST_POLICIES = 500  # per comparison, because its page shows every policy
POLICIES = "a list of policies such as UCB(LightTailed(kappa=0.2)), or a mapping from names to policies"


def compare(
    policies: Sequence[Policy] | Mapping[str, Policy] | None,
    problem: Problem,
    *,
    horizon: int,
    paths: int = PATHS,
    seed: int | None = None,
    threshold: float | None = None,
    kind: Lost = "pseudo_regret",
    growth: bool | None = None,
    delay: DelayLike = None,
    batch: int | None = None,
    keep: Keep = "paths",
    device: Device = "cpu",
    executor: Executor | None = None,
    threads: int | None = None,
    progress: bool | ReportPart = False,
) -> Comparison:
    """Simulate every policy on the problem, each with the same seed, and compare their losses.

    policies: a list, or a mapping whose keys are the policies' names in tables and figures. None stands for
        the policies of `lighttail compare`: the six of the paper or, for a linear bandit, four. Each is tuned
        for the noise of the problem (`problem.sigma`).
    threshold: the loss whose chance is estimated, in units of reward. The default is a third of the largest
        possible loss.
    kind: what counts as lost. "pseudo_regret" is the sum of the gaps of all pulls; "regret" includes the luck
        of single rewards.
    growth: whether to find out how the chance of losing the threshold falls as the experiment grows
        (docs/verdict.md), from exact values or more paths. By default this is done for up to 12 policies.
    horizon, paths, seed, delay, batch, keep, device, executor, threads: as in `simulate`.
    progress: True shows a bar on a terminal and lines elsewhere. A function is called with the policy's name
        and the number of paths that are done, counted over all policies.

    `lt.write_report(comparison, folder)` writes the page with its figures and `results.json`.

    >>> import lighttail as lt
    >>> policies = [lt.UCB(lt.Standard(0.8)), lt.UCB(lt.LightTailed(0.2))]
    >>> comparison = lt.compare(policies, lt.Bandit([0.2, 0.8]), horizon=500, paths=5000, seed=1)
    >>> for entry in comparison.entries:
    ...     print(entry)
    UCB + Standard(0.8): mean loss 10.99 [10.07, 12.08], P(loss >= 100) 0.01183 (exact)
    UCB + LightTailed(0.2): mean loss 12.37 [12.23, 12.62], P(loss >= 100) 1.057e-05 (exact)
    """
    named = _named_policies(policies, problem)
    given: dict[str, Any] = {"horizon": horizon, "paths": paths, "seed": seed, "keep": keep}
    given |= {"device": device, "executor": executor, "threads": threads}
    settings, course = _check(list(named.values()), problem, given, delay, batch)
    progress = check_progress(progress)
    kind, pulls = check_lost(kind), settings["horizon"]
    loss = check_threshold(threshold, problem, pulls, kind)
    grows = _grows(growth, len(named), settings["paths"])
    with parts_reporter(progress, settings["paths"] * len(named)) as report:
        outcomes = _outcomes(named, problem, settings, course, report)
        growths = _growths(named, problem, settings, course, (loss, kind), outcomes, report) if grows else {}
    told = None if kind == "pseudo_regret" and problem.most_lost(pulls) == 0.0 else loss
    made_by = _call(settings, told, course, kind, growth)
    return comparison_of(named, outcomes, problem, settings["seed"], loss, course, made_by, kind, growths)


def check_threshold(threshold: Any, problem: Problem, horizon: int, kind: Lost, unit: float = 1.0) -> float:
    """The loss whose chance is asked for. Raises BadInput if no policy can lose that much.

    unit: the loss that a threshold of 1 stands for: on the command line, 1 per pull. The regret includes luck
    and has no limit here.
    """
    if threshold is None:
        return problem.default_threshold(horizon)
    loss = positive("threshold", threshold)
    if kind == "pseudo_regret":
        check_loss("threshold", loss, problem.most_lost(horizon), horizon, unit=unit)
    return positive("threshold * horizon", loss * unit)


def default_words(problem: Problem) -> tuple[str, ...]:
    """The policies that are compared if the user names none, in the words of the command line.

    Every kappa is in units of the noise of the problem, for example ucb:lighttailed:0.2s. If the problem has
    no noise, the kappas are those for the noise 1.
    """
    return in_units(LINEAR if problem.linear else TUNED, problem.sigma)


def told_apart(policies: Iterable[Policy], names: Iterable[str]) -> dict[str, Policy]:
    """The policies by their names. Policies with the same name get their `repr` as name."""
    pairs = list(zip(policies, names, strict=True))
    alike = Counter(name for _, name in pairs)
    found: dict[str, Policy] = {}
    for policy, name in pairs:
        whole = repr(policy) if alike[name] > 1 else name
        if whole in found:
            allowed, twice = "from each other or be a mapping from names", f"hold {whole} twice"
            raise refuse("policies", policy, allowed, verb="differ", found=twice)
        found[whole] = policy
    return found


def _named_policies(policies: Any, problem: Any) -> dict[str, Policy]:
    """The policies by their names: at least one policy, and at most MOST_POLICIES."""
    if policies is None:
        sigma = check_problem(problem).sigma
        policies = [parse_policy(word, sigma=sigma) for word in default_words(problem)]
    listed = isinstance(policies, (Sequence, Mapping)) and not isinstance(policies, (str, bytes))
    count = size_of(policies) if listed else 0
    if count == 0:
        raise refuse("policies", policies, POLICIES)
    if count > MOST_POLICIES:
        raise refuse("the number of policies", count, f"at most {MOST_POLICIES} in one comparison")
    if isinstance(policies, Mapping):
        for name, policy in policies.items():
            if not (isinstance(name, str) and name.strip()):
                raise refuse("a name in policies", name, "a text that is not empty")
            check_policy(f"policies[{shown(name)}]", policy)
        return dict(policies)
    for place, policy in enumerate(policies):
        check_policy(f"policies[{place}]", policy)
    return told_apart(policies, map(str, policies))


def _check(
    policies: list[Policy], problem: Any, given: dict[str, Any], delay: Any, batch: Any
) -> tuple[dict[str, Any], Course]:
    """The settings of `simulate`, and the course. Refuses what cannot be simulated with one of the policies.

    If no seed was given, all policies get the same fresh seed.
    """
    threads, executor = given["threads"], given["executor"]
    if executor is not None:
        check_executor(executor, threads)
    horizon, paths, seed, keep = (given[name] for name in ("horizon", "paths", "seed", "keep"))
    use, together = 1 if threads is None else threads, len(policies)
    checked, *_ = [  # every policy is checked, and the settings are the same for all
        check_settings(policy, problem, horizon, paths, seed, use, keep, together) for policy in policies
    ]
    device, _ = check_device(given["device"], problem, checked.horizon, executor=executor, threads=threads)
    for policy in policies:
        course = check_course(policy, problem, checked.horizon, delay, batch)
        if executor is None:
            check_played(policy, problem, checked.horizon, checked.paths, device, not course.straight)
        else:
            check_travels(policy=policy, problem=problem)
        if not problem.linear:
            try_out(policy, checked.horizon, problem.dim, not course.straight)
    settings = given | checked._asdict() | {"threads": threads, "device": device}
    return settings | {"delay": course.delay, "batch": course.batch}, course


def _outcomes(
    policies: Mapping[str, Policy],
    problem: Problem,
    settings: dict[str, Any],
    course: Course,
    report: ReportPart | None,
) -> dict[str, Outcome]:
    late, outcomes = "" if course.straight else f", {course.short()}", {}
    for turn, (name, policy) in enumerate(policies.items()):
        told: bool | Report = False
        if report is not None:
            told = partial(_shift, report, name + late, turn * settings["paths"])
            told(0, settings["paths"])
        outcomes[name] = simulate(policy, problem, **settings, progress=told)
    return outcomes


def _grows(growth: Any, policies: int, paths: int) -> bool:
    """Whether to find out how chances fall: if asked, and by default for few policies with enough paths."""
    if growth is not None and not isinstance(growth, bool):
        raise refuse("growth", growth, "True, False or None")
    return (policies <= MOST_GROWTHS if growth is None else growth) and paths >= FEW


def _growths(
    policies: Mapping[str, Policy],
    problem: Problem,
    settings: dict[str, Any],
    course: Course,
    lost: tuple[float, Lost],
    outcomes: Mapping[str, Outcome],
    report: ReportPart | None,
) -> dict[str, Growth | None]:
    """How the chance of losing the threshold falls as the experiment grows, for every policy."""
    horizon, found = settings["horizon"], {}
    if problem.most_lost(horizon) == 0.0:
        return {}
    for name, policy in policies.items():
        if report is not None:
            report(f"{name}, how its chance falls", settings["paths"] * len(policies))
        play = partial(simulate, policy, problem, **settings)
        question = RuinQuestion(
            policy, problem, horizon, *lost, course, settings["seed"], settings["threads"], play
        )
        found[name] = growth_in(question, outcomes[name])
    return found


def _shift(report: ReportPart, label: str, before: int, done: int, total: int) -> None:
    report(label, before + done)


def _call(
    settings: dict[str, Any], threshold: float | None, course: Course, kind: Lost, growth: bool | None
) -> str:
    """The call that gives the same numbers again for the same policies and problem."""
    given = [f"{name}={settings[name]}" for name in ("horizon", "paths", "seed")]
    given += [] if threshold is None else [f"threshold={threshold}"]
    given += [] if kind == "pseudo_regret" else [f"kind={kind!r}"]
    given += [] if growth is None else [f"growth={growth}"]
    given += [f"{name}={value}" for name, value in course.said().items()]
    usual = {"keep": "paths", "device": "cpu"}
    given += [f"{name}={settings[name]!r}" for name in usual if settings[name] != usual[name]]
    return f"lt.compare(policies, problem, {', '.join(given)})"
