"""Calls of the library with nasty arguments, drawn at random: each must give a value or one sentence.

`python tests/fuzz_calls.py --calls 25000 --seed 1` runs as many as one likes and lists what went wrong;
`tests/test_fuzz_calls.py` runs some in the suite. Live experiments have a fuzzer of their own.

A call is drawn as a name and its arguments. Most arguments come from a pool of good values, some from NASTY.
`judge` says what is wrong with an answer: nothing, where it is a value without nan whose interval holds it
and whose chances lie between 0 and 1, or a `ValueError` with one short sentence, which says its field
where it is a refusal.
"""

from __future__ import annotations

import argparse
import faulthandler
import math
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_surface import Call, Loss, Pool, surface
from fuzz_values import drawn

from lighttail import bounds
from lighttail.checks import BadInput, shown
from lighttail.outcomes.estimates import Estimate

SECONDS = 120.0  # of processors that a call may take: few need one, but a budget of 1e12 pulls takes 75
DEAF = 900.0  # more by the clock until a call that does not listen ends the process
LONGEST = 400  # characters of a message


CHANCES = (
    "bounds.tail",
    "bounds.certificate",
    "bounds.guarantee",
    "tail_prob",
    "exact",
    "Outcome.exceedance",
)
LOSSES = ("bounds.mean", "bounds.regret", "bounds.consistent")  # may be infinite: no float is as large


def judge(name: str, answer: Any) -> str:
    """What is wrong with an answer: empty if nothing is."""
    if isinstance(answer, BaseException):
        return _wrong_error(name, answer)
    if isinstance(answer, (list, tuple)):
        return next((wrong for part in answer if (wrong := judge(name, part))), "")
    if isinstance(answer, Estimate):
        return _wrong_estimate(name, answer)
    if isinstance(answer, (bounds.Bound, Loss, float, np.floating)):
        return _wrong_number(name, answer)
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and not np.isfinite(answer).all():
        return "not finite in an array"
    return ""


def _wrong_estimate(name: str, answer: Estimate) -> str:
    if any(map(math.isnan, (answer.low, answer.value, answer.high))) or math.isinf(answer.value):
        return f"not a number: {answer!r}"
    if not answer.low <= answer.value <= answer.high:
        return f"outside of its interval: {answer!r}"
    chance = name.startswith(CHANCES)
    return f"no probability: {answer!r}" if chance and (answer.low < 0.0 or answer.high > 1.0) else ""


def _wrong_number(name: str, answer: Any) -> str:
    """A chance, a bound on a loss, which no float may hold, or any finite number."""
    value = float(getattr(answer, "value", answer))
    if name.startswith(CHANCES):
        return "" if 0.0 <= value <= 1.0 else f"no probability: {value}"
    if isinstance(answer, (bounds.Bound, Loss)) or name.startswith(LOSSES):
        return "" if value >= 0.0 else f"no bound: {value}"
    return "" if math.isfinite(value) else f"not finite: {value}"


def _wrong_error(name: str, error: BaseException) -> str:
    if isinstance(error, OSError) and name in ("Outcome.load", "Outcome.save"):
        return ""  # there is no such file, or it cannot be written
    text = str(error)
    if not isinstance(error, ValueError):
        return f"{type(error).__name__}: {text[:200]}"
    if len(text.splitlines()) != 1 or re.search(r"[.!?]\s+[A-Z]", text):
        return f"not one sentence: {text[:300]!r}"
    if isinstance(error, BadInput) and error.field is None:
        return f"names no field: {text[:200]}"
    return f"a message of {len(text)} characters: {text[:200]}" if len(text) > LONGEST else ""


class TooLong(BaseException):
    """A call did not come back in time; not an Exception, which a call might catch."""


@contextmanager
def watched(text: str, seconds: float) -> Iterator[None]:
    """Raise where a call takes too long; where compiled code does not listen, end the process and say why."""

    def late(number: int, frame: Any) -> None:
        where = traceback.extract_stack(frame)[-1]
        place = f"{where.name}, {where.filename}:{where.lineno}"
        raise TooLong(f"no answer within {seconds:g} s of a processor (in {place})")

    path = Path(tempfile.gettempdir()) / f"fuzz_calls.{os.getpid()}.txt"  # read it if the process ends here
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    with open(path, "w") as note:
        print(text, file=note, flush=True)
        faulthandler.dump_traceback_later(DEAF + seconds, exit=True, file=note)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, signal.SIG_IGN)  # one on its way would end the process
    path.unlink()


def answer_of(
    function: Callable[..., Any], arguments: dict[str, Any], text: str = "", seconds: float = SECONDS
) -> Any:
    """What a call gives, an error included; a warning of a computation counts as an error."""
    with watched(text, seconds), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            return function(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error


@dataclass(frozen=True)
class Finding:
    """A call with a bad answer."""

    number: int
    call: str
    wrong: str


def run(
    calls: int, seed: int, kernels: bool = True, only: str = "", without: Sequence[str] = (), say: Any = None
) -> list[Finding]:
    """Draw and judge so many calls; what went wrong. Files that they write are left nowhere."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as folder, chdir(folder):
        table = surface(Pool(kernels, Path(folder)))
        names = [name for name in table if only in name and not name.startswith(tuple(without))]
        return _judged(table, names, calls, seed, say)


def _judged(table: dict[str, Call], names: list[str], calls: int, seed: int, say: Any) -> list[Finding]:
    findings: list[Finding] = []
    spent, gave = Counter[str](), Counter[str]()
    for number in range(calls):
        rng = np.random.default_rng([seed, number])
        name = drawn(rng, names)
        arguments = table[name].draw(rng)
        text = f"{name}({', '.join(f'{field}={shown(value)}' for field, value in arguments.items())})"
        begin = time.perf_counter()
        answer = answer_of(table[name].function, arguments, text)
        spent[name] += time.perf_counter() - begin  # type: ignore[assignment]
        wrong = judge(name, answer)
        gave["errors" if isinstance(answer, BaseException) else "values"] += 1
        if wrong:
            findings.append(Finding(number, text, wrong))
            if say:
                say(f"{number}: {text}\n    {wrong}")
                if isinstance(answer, BaseException) and not isinstance(answer, ValueError):
                    last = traceback.extract_tb(answer.__traceback__)[-1]
                    say(f"    at {last.filename}:{last.lineno} in {last.name}")
    if say:
        say(f"{gave['values']} values, {gave['errors']} errors")
        say("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.most_common(6)))
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="calls whose name contains this")
    parser.add_argument("--without", nargs="*", default=[], help="calls whose name begins with one of these")
    options = parser.parse_args()
    findings = run(
        options.calls,
        options.seed,
        only=options.only,
        without=options.without,
        say=partial(print, flush=True),
    )
    print(f"{options.calls} calls, seed {options.seed}: {len(findings)} bad answers")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
