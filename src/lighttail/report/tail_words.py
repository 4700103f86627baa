"""What is known about a tail, in words and in the rows of a table."""

from __future__ import annotations

import math

from lighttail.bounds import Bound
from lighttail.bounds.bound import TINY
from lighttail.outcomes.estimates import Estimate
from lighttail.outcomes.format import precise
from lighttail.outcomes.losing import event
from lighttail.policies import Policy
from lighttail.problems import Bandit
from lighttail.tails.curve import TailCurve, TailPoint
from lighttail.tails.known import KnownBounds
from lighttail.tails.luck import without_noise
from lighttail.tails.task import TailEstimate

COLUMNS = ("method", "chance", "95 % interval", "paths", "pulls")
COMPARED = "The simulated paths of the table are there to compare."
NOTHING = "exceeds 1, so it tells us nothing"
BELOW = f"below {TINY:.1e}"
MANY_ARMS = 6  # a line names the means of at most this number of arms


def sentence(curve: TailCurve, point: TailPoint) -> str:
    """The chance of the loss, the limits of its interval, and what is guaranteed."""
    if max(curve.problem.gaps) == 0.0 and curve.kind == "pseudo_regret":
        return "All arms are equally good, so no choice of arms loses anything."
    luck = ", the luck of single rewards included," if curve.kind == "regret" else ""
    estimate, loss = point.estimate, f"{event(curve.kind, point.regret)}{luck}"
    if estimate.method == "certain":
        return _certain(curve, point, loss)
    exactly = ""
    if point.exact is not None and estimate.method != "exact":
        exactly = f", exactly {precise(point.exact, estimate.value)}"
    return f"{_estimated(estimate, loss)}{exactly}; {_guaranteed(point.bounds)}."


def note(curve: TailCurve, point: TailPoint) -> str:
    """Whether the estimate is as good as was asked for; for splitting, also by what the paths were split."""
    score = point.estimate.diagnostics.score
    return _how_good(curve, point) + (f" {score[0].upper()}{score[1:]}." if score else "")


def _how_good(curve: TailCurve, point: TailPoint) -> str:
    estimate, wanted = point.estimate, curve.relative_error
    if estimate.method == "certain":
        return f"This chance needs no simulation. {COMPARED}"
    if _unseen(estimate):
        return f"A chance {_unseen(estimate)} has no relative error."
    if estimate.method == "exact":
        return f"The chance was worked out, not simulated. {COMPARED}"
    if estimate.diagnostics.doubt:
        return f"The estimate cannot be trusted: {estimate.diagnostics.doubt}."
    got = estimate.diagnostics.relative_error
    if estimate.reached:
        return f"Relative error {got:.2g} (asked for: at most {wanted:g})."
    error = f"the relative error is {got:.2g}" if math.isfinite(got) else "no path got there"
    stopped = estimate.diagnostics.stopped or "the budget of pulls was spent"
    return f"{stopped[0].upper()}{stopped[1:]} before the relative error {wanted:g} was reached: {error}."


def rows(point: TailPoint, simulated_paths: int, horizon: int) -> list[tuple[str, ...]]:
    """One row per method, in the order of COLUMNS."""
    estimate = point.estimate
    worked_out = estimate.method in ("certain", "exact")
    shown = (_unseen(estimate) or _digits(estimate.value), "") if worked_out else _with_limits(estimate)
    effort = ("", "") if worked_out else (f"{estimate.paths:,}", f"{estimate.pulls:,}")
    table: list[tuple[str, ...]] = [(estimate.method, *shown, *effort)]
    plain = (f"{simulated_paths:,}", f"{simulated_paths * horizon:,}")
    table.append(("simulated paths", *_with_limits(point.simulated), *plain))
    if point.exact is not None and not worked_out:
        table.append(("exact", _digits(point.exact), "", "", ""))
    return table + [(name, value, "", "", "") for name, value in bound_rows(point.bounds)]


def bound_rows(known: KnownBounds) -> list[tuple[str, str]]:
    """The upper bounds of the certificate and of the theorem, as text."""
    return [("certificate", _at_most(known.certificate)), ("theorem's bound", _at_most(known.theorem))]


def missing(known: KnownBounds) -> list[str]:
    """A sentence with the reason for each bound that does not exist."""
    reasons = {"certificate": known.why_no_certificate, "theorem's bound": known.why_no_theorem}
    return [f"No {name}: {why}." for name, why in reasons.items() if why]


def guarantee_words(known: KnownBounds) -> str:
    """The smaller bound and its source."""
    best = known.guarantee
    return "none is known" if best is None else f"{_at_most(best)} ({best.source})"


def exact_words(exact: float | None, why_none: str) -> str:
    """The exact chance, or why there is none."""
    if exact is not None:
        return _digits(exact)
    return why_none or "not computed: the chance is too small for the exact law"


def subject(curve: TailCurve) -> str:
    """The policy and the problem in one line."""
    late = "" if curve.course.straight else f"; {curve.course.short()}"
    return f"{policy_on(curve.policy, curve.problem)}{late}"


def policy_on(policy: Policy, problem: Bandit) -> str:
    """The policy, the means and the noise in one line."""
    means = ", ".join(f"{mean:.4g}" for mean in problem.means)
    arms = f"means {means}" if problem.arms <= MANY_ARMS else f"{problem.arms} arms"
    return f"{policy}; {arms}; {problem.noise!r}"


def _certain(curve: TailCurve, point: TailPoint, loss: str) -> str:
    loss, none = f"{loss[0].upper()}{loss[1:]}", point.estimate.value == 0.0
    if point.regret > 0.0 and without_noise(curve.problem.noise, curve.problem.means):
        sure = "impossible" if none else "certain"
        return f"{loss} is {sure}: without noise, every run of this policy is the same."
    if none:
        possible = point.regret <= max(curve.problem.gaps) * curve.horizon
        with_it = " with this policy" if possible else ""
        return f"{loss} is impossible in {curve.horizon:,} pulls{with_it}."
    in_turn = curve.policy.turns is not None
    why = "the policy pulls the arms in turn" if in_turn else "every arm is pulled at least once"
    why = "every policy loses 0 or more" if point.regret <= 0.0 else why
    return f"{loss} is certain: {why}."


def _estimated(estimate: TailEstimate, loss: str) -> str:
    if _unseen(estimate):
        more = ", less than a float can hold" if estimate.high <= TINY else ""
        return f"The chance of {loss} is {_unseen(estimate)}{more}"
    if estimate.method == "exact":
        return f"The chance of {loss} is exactly {precise(estimate.value)}"
    if estimate.value == 0.0:
        most = precise(estimate.high)
        return f"The chance of {loss} is below {most}, because no simulated path lost so much"
    value, low, high = (precise(end, estimate.value) for end in (estimate.value, estimate.low, estimate.high))
    return f"The chance of {loss} is {value} (between {low} and {high})"


def _unseen(estimate: TailEstimate) -> str:
    """The limit below which a chance lies that no float or no exact law can hold; otherwise empty."""
    if 0.0 < estimate.high <= TINY:
        return BELOW
    tiny = estimate.method == "exact" and estimate.low < estimate.value <= TINY
    return f"below {estimate.high:.0e}" if tiny else ""


def _guaranteed(known: KnownBounds) -> str:
    best = known.guarantee
    if best is None:
        return f"no bound is known ({known.why_no_certificate})"
    source = "the certificate" if best is known.certificate else f"the theorem ({best.source})"
    if best.vacuous:
        return "no useful guarantee is available for this problem"
    # A proof gives no 0: a smaller bound is rounded.
    most = f"a chance {BELOW}" if best.value <= TINY else f"at most {precise(best.value)}"
    words = f"{source} guarantees {most}"
    if known.certificate is None:
        words += f" (no certificate is known: {known.why_no_certificate})"
    return words


def _at_most(bound: Bound | None) -> str:
    if bound is None:
        return "none"
    if bound.vacuous:
        return NOTHING
    digits = _digits(bound.value)
    return digits if digits == BELOW else f"≤ {digits}"


def _with_limits(estimate: Estimate) -> tuple[str, str]:
    if 0.0 < estimate.high <= TINY:
        return BELOW, ""
    low = estimate.low if estimate.low > TINY else 0.0
    limits = f"[{_digits(low)}, {_digits(estimate.high)}]"
    return _digits(estimate.value), limits


def _digits(value: float) -> str:
    return BELOW if 0.0 < value <= TINY else f"{value:.4g}"
