"""Policies and noises written as words, for the command line and for study files.

ucb:standard:0.8 is UCB(Standard(kappa=0.8)); FORMS has the form of every word. A class of a user's file takes
the place of a word (own.py): se:my.py:MyBonus(0.3) is SuccessiveElimination(MyBonus(0.3)), and a bonus
without a rule, my.py:MyBonus(0.3), belongs to UCB, or to LinearUCB if it is a linear bonus.

A number that grows with the noise may be written in units of the noise: ucb:lighttailed:0.2s is kappa = 0.2
times the noise of the problem, whose standard deviation is s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from lighttail import linear, policies
from lighttail.bonuses import AnyTime, ArmOptimal, Bonus, Eqo, LightTailed, Moss, Standard, TwoPart
from lighttail.checks import Argument, BadInput, enumerated, known_word, refuse, shown, whole
from lighttail.delays import Delay, FixedDelay, GeometricDelay, ObservedDelays, UniformDelay
from lighttail.linear import LinearBandit, LinearBonus, LinearUCB
from lighttail.linear.actions import MOST_ACTIONS
from lighttail.linear.problem import MOST_DIM
from lighttail.noises import Bernoulli, Gaussian, Laplace, Noise, StudentT, Uniform
from lighttail.policies import UCB, Exp3IX, Policy
from lighttail.reading import own
from lighttail.reading.csvfile import read_delays
from lighttail.reading.numbers import UNITS, parse_in_units, parse_number, parse_numbers, parse_whole

BONUSES: dict[str, type[Bonus]] = {
    "standard": Standard,
    "lighttailed": LightTailed,
    "armoptimal": ArmOptimal,
    "anytime": AnyTime,
    "moss": Moss,
    "eqo": Eqo,
    "twopart": TwoPart,
}
LINEAR_BONUSES: dict[str, type[LinearBonus]] = {
    "lighttailed": linear.LinearLightTailed,
    "standard": linear.LinearStandard,
    "oful": linear.Oful,
}
NOISES: dict[str, Callable[..., Noise]] = {
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "uniform": Uniform,
    "laplace": Laplace,
    "studentt": StudentT,
}
BY_FIELDS: dict[str, type[Policy] | type[Bonus]] = {  # a bonus without a rule stands for UCB with that bonus
    "klucb": policies.KlUcb,
    "imed": policies.Imed,
    "bayesucb": policies.BayesUcb,
    "betats": policies.BetaThompson,
    "inflated": policies.InflatedThompson,
    "egreedy": policies.EpsilonGreedy,
    "etc": policies.ExploreThenCommit,
    "evensplit": policies.EvenSplit,
    "moss": Moss,
    "eqo": Eqo,
    "twopart": TwoPart,
}


def _form(word: str, kind: Any) -> str:
    """The forms of a word whose object takes its fields in their order; fields with defaults may be left out.

    >>> _form("klucb", policies.KlUcb)
    'klucb, klucb:C or klucb:C:SIGMA'
    """
    names = [f.name.upper() for f in fields(kind)]
    return enumerated((":".join([word, *names[:count]]) for count in _counts(kind)), "or")


def _counts(kind: Any) -> range:
    """How many of the fields may be given: those with defaults may be left out at the end."""
    return range(sum(f.default is MISSING for f in fields(kind)), len(fields(kind)) + 1)


FORMS = {
    "ucb": "ucb:BONUS:KAPPA",
    "se": "se:BONUS:KAPPA",
    "ts": "ts:KAPPA or ts:KAPPA:PRIOR_MEAN:PRIOR_SD",
    "exp3ix": "exp3ix:reward or exp3ix:loss:UPPER",
    "linucb": "linucb:lighttailed:KAPPA, linucb:standard:BETA or linucb:oful:SIGMA:DELTA:BOUND",
    "lints": "lints:SCALE",
    **{word: _form(word, kind) for word, kind in BY_FIELDS.items()},
}
RULES: dict[str, tuple[Callable[..., Policy], own.Kinds]] = {  # rules for a user's bonus
    "ucb": (UCB, {"lighttail.Bonus": Bonus}),
    "se": (policies.SuccessiveElimination, {"lighttail.Bonus": Bonus}),
    "linucb": (LinearUCB, {"lighttail.LinearBonus": LinearBonus}),
}
OWN_POLICIES: own.Kinds = {"lighttail.Policy": Policy, **RULES["ucb"][1], **RULES["linucb"][1]}
OWN_NOISES: own.Kinds = {"lighttail.Noise": Noise}
DELAYS = "geometric:MEAN, uniform:LOW:HIGH or FILE.csv"  # beside a number of pulls


def names_own(text: str) -> bool:
    """Whether words name a class of a file or a module other than lighttail, so that reading them runs it."""
    prefix, _, rest = text.strip().partition(":")
    words = own.where_and_call(rest if prefix.lower() in RULES else text)
    return words is not None and words[0] != own.LIBRARY


def in_units_of_noise(text: str) -> bool:
    """Whether words give a number in units of the noise, so that they name another policy for another noise.

    >>> in_units_of_noise("ucb:lighttailed:0.2s"), in_units_of_noise("ucb:lighttailed:0.2")
    (True, False)
    """
    word, *parts = text.strip().lower().split(":")
    return word in FORMS and own.where_and_call(text) is None and any(map(UNITS.fullmatch, parts))


def shares(text: str) -> list[str]:
    """The numbers that words give in units of the noise, without the unit.

    >>> shares("ucb:armoptimal:0.4s:0.2s")
    ['0.4', '0.2']
    """
    numbers = [part.strip()[:-1] for part in text.strip().lower().split(":") if UNITS.fullmatch(part)]
    return [f"{parse_number('share', one):.3g}" for one in numbers]


def in_units(words: Iterable[str], sigma: float) -> tuple[str, ...]:
    """Default words, whose numbers end with {s}, for the noise sigma: in units of the noise or, if there is
    no noise, as for the noise 1.

    >>> in_units(["ts:0.8{s}"], 0.2), in_units(["ts:0.8{s}"], 0.0)
    (('ts:0.8s',), ('ts:0.8',))
    """
    unit = "s" if 0.0 < sigma < math.inf else ""
    return tuple(word.format(s=unit) for word in words)


def parse_policy(text: str, load: own.Load | None = None, sigma: float | None = None) -> Policy:
    """The policy that the text names.

    load: loads a file or module; None if the text must not name one. sigma: the noise of the problem, for
    numbers such as 0.2s; None if no problem is known.

    >>> parse_policy("ucb:lighttailed:0.2s", sigma=0.5)
    UCB(bonus=LightTailed(kappa=0.1))
    """
    prefix, _, named = text.strip().partition(":")
    if prefix.lower() in RULES and own.where_and_call(named):
        rule, kinds = RULES[prefix.lower()]
        return rule(own.build("bonus", named, load, kinds))
    if prefix.lower() not in FORMS and own.where_and_call(text):
        return _as_policy(own.build("policy", text, load, OWN_POLICIES))
    return _in_words(text, sigma)  # type: ignore[no-any-return]


def _in_words(text: str, sigma: float | None) -> Any:
    word, *rest = text.strip().lower().split(":")
    known_word("policy", word, FORMS)
    if word in BY_FIELDS:
        policy = _by_fields(text, BY_FIELDS[word], rest, sigma)
        return UCB(policy) if word in BONUSES else policy
    if word == "linucb":
        known_word("bonus", rest[0] if rest else "", LINEAR_BONUSES)
        kind: Any = LINEAR_BONUSES[rest[0]]
        return LinearUCB(_by_fields(text, kind, rest[1:], sigma, [len(fields(kind))]))
    if word in RULES and rest:
        known_word("bonus", rest[0], BONUSES)
        return RULES[word][0](_by_fields(text, BONUSES[rest[0]], rest[1:], sigma))
    if word == "lints":
        return _by_fields(text, linear.LinearThompson, rest, sigma, [1])
    if word == "ts":  # all numbers are in units of reward
        kind = policies.ThompsonSampling
        return _by_fields(text, kind, rest, sigma, [1, 3], [f.name for f in fields(kind)])
    if [*rest[:1], len(rest)] not in (["reward", 1], ["loss", 2]):
        raise _wrong_form(text)
    upper = (_number("upper", part, (), sigma) for part in rest[1:])
    return Exp3IX(rest[0], *upper)  # type: ignore[arg-type]


def _as_policy(own_object: Any) -> Policy:
    """A user's policy, or a user's bonus with UCB or LinearUCB."""
    for rule, kinds in (RULES["ucb"], RULES["linucb"]):
        if isinstance(own_object, tuple(kinds.values())):
            return rule(own_object)
    if not own_object.linear:
        own_object.rule()  # raises BadInput if the policy lacks one of its functions
    return own_object  # type: ignore[no-any-return]


def parse_noise(text: str, sigma: float | None, load: own.Load | None = None) -> Noise:
    """The noise that the text names: a word, with the class's fields besides sigma, or a user's class.

    load: as in `parse_policy`.
    """
    if own.where_and_call(text):
        if sigma is not None:
            raise refuse("sigma", sigma, f"left out with {text}, whose arguments say how large the noise is")
        return own.build("noise", text, load, OWN_NOISES)  # type: ignore[no-any-return]
    word, *rest = text.strip().lower().split(":")
    known_word("noise", word, NOISES)
    numbers, scaled = _numbers_of(word)
    if not scaled and (sigma is not None or len(rest) > len(numbers)):
        given = rest[0] if sigma is None else sigma
        raise refuse("sigma", given, f"left out with {word} noise")
    if len(rest) > len(numbers):
        longer = [form for form in noise_forms() if ":" in form]
        named_sigma = Argument("sigma", (parse_number("sigma", rest[-1]),))
        more = "" if sigma is not None else ("; ", named_sigma, " says how large it is")
        raise refuse("noise", text, " or ".join((word, *longer)), more=more)
    named = {name.lower(): parse_number(name.lower(), one) for name, one in zip(numbers, rest, strict=False)}
    return NOISES[word](**named) if sigma is None else NOISES[word](**named, sigma=sigma)


def _numbers_of(word: str) -> tuple[list[str], bool]:
    """The fields of a noise that stand behind its word, as in studentt:DF, and whether it has a sigma."""
    names = [field.name for field in fields(NOISES[word])]  # type: ignore[arg-type]
    return [name.upper() for name in names if name != "sigma"], "sigma" in names


def words_of(noise: Noise) -> tuple[str, float | None] | None:
    """The word of a noise with the numbers behind it, and its sigma; None if no word names the noise.

    >>> words_of(Bernoulli()), words_of(StudentT(df=5.0, sigma=2.0))
    (('bernoulli', None), ('studentt:5.0', 2.0))
    """
    for word, kind in NOISES.items():
        if type(noise) is kind:
            numbers, scaled = _numbers_of(word)
            values = [repr(getattr(noise, name.lower())) for name in numbers]
            return ":".join((word, *values)), noise.sigma if scaled else None  # type: ignore[attr-defined]
    return None


def noise_forms() -> list[str]:
    """The words of all noises, with the numbers that may stand behind them."""
    return [":".join((word, *_numbers_of(word)[0])) for word in NOISES]


def parse_course(
    delay: str | None, batch: str | None, never: str | None, find: Callable[[str], Path] = Path
) -> tuple[Delay | None, int | None]:
    """The delay and the batch that the texts name; None if a text is None. find: returns the path of a file.

    delay: a number of pulls, geometric:MEAN, uniform:LOW:HIGH, or a CSV file of observed delays. never: the
    chance that a reward never becomes known.

    >>> parse_course("geometric:500", "100", "0.1")
    (GeometricDelay(mean=500.0, never=0.1), 100)
    """
    group = None if batch is None else whole("batch", parse_whole("batch", batch), 1)
    if delay is None and never is None:
        return None, group
    wait: Any = FixedDelay(0) if delay is None else _delay(delay.strip(), find)
    return (wait if never is None else replace(wait, never=parse_number("never", never))), group


def _delay(text: str, find: Callable[[str], Path]) -> Delay:
    if text.lower().endswith(".csv"):
        return ObservedDelays(read_delays(find(text)))  # type: ignore[arg-type]
    word, *rest = text.lower().split(":") if ":" in text else ("fixed", text)
    kinds: dict[tuple[str, int], tuple[Callable[..., Delay], Callable[[str, str], Any]]] = {
        ("geometric", 1): (GeometricDelay, parse_number),
        ("uniform", 2): (UniformDelay, parse_whole),
        ("fixed", 1): (FixedDelay, parse_whole),
    }
    try:
        kind, parse = kinds[word, len(rest)]
        numbers = [parse("delay", part) for part in rest]
    except (KeyError, BadInput):
        raise refuse("delay", text, f"a whole number of pulls such as 100, or {DELAYS}") from None
    try:
        return kind(*numbers)
    except BadInput as error:
        raise error.within(f"delay {shown(text)} is out of range") from None


def parse_linear(theta: str | None, dim: str | None, actions: str, noise: Noise) -> LinearBandit:
    """The linear bandit that the texts name.

    theta: numbers; (1, ..., 1) / sqrt(dim) by default. dim: the length of theta, or 4 if theta is not given.
    actions: A or sphere:A, ball:A, or the name of an .npy file with A x d or rounds x A x d numbers.
    """
    vector = None if theta is None else parse_numbers("theta", theta)
    size = 4 if dim is None else whole("dim", parse_whole("dim", dim), 1, most=MOST_DIM)
    if vector is None:
        vector = [1.0 / math.sqrt(size)] * size
    elif dim is not None and len(vector) != size:
        raise refuse("dim", size, f"{len(vector)}, as many numbers as theta has")
    if actions.endswith(".npy"):
        return LinearBandit(vector, Path(actions), noise)
    word, _, count = actions.rpartition(":")
    known_word("actions", word or "sphere", ("sphere", "ball"))
    kind = linear.BallActions if word == "ball" else linear.SphereActions
    offered = whole("actions", parse_whole("actions", count), 2, most=MOST_ACTIONS)
    return LinearBandit(vector, kind(offered), noise)


def _by_fields(
    text: str,
    kind: Any,
    parts: list[str],
    sigma: float | None,
    counts: Iterable[int] = (),
    in_units: Iterable[str] | None = None,
) -> Any:
    """An object whose fields are given in their order.

    counts: how many may be given; by default, fields with defaults may be left out at the end. in_units: the
    fields that may be in units of the noise; by default those that grow with the noise.
    """
    names = [f.name for f in fields(kind)]
    if len(parts) not in (counts or _counts(kind)):
        raise _wrong_form(text)
    in_units = kind.in_units_of_noise() if in_units is None else in_units
    given = zip(names, parts, strict=False)
    return kind(**{name: _number(name, part, in_units, sigma) for name, part in given})


def _number(name: str, text: str, in_units: Iterable[str], sigma: float | None) -> float:
    """The number of a field. in_units: the fields that may be in units of the noise."""
    if name not in in_units and UNITS.fullmatch(text):
        raise refuse(name, text, "a number without the unit s, because it does not grow with the noise")
    return parse_in_units(name, text, sigma)


def _wrong_form(text: str) -> BadInput:
    form = FORMS[text.strip().lower().partition(":")[0]]
    bonuses = f"BONUS one of {', '.join(BONUSES)} (armoptimal takes KAPPA:FLOOR, twopart KAPPA:CAP)"
    return refuse("policy", text, f"of the form {form}" + (f", {bonuses}" if "BONUS" in form else ""))


def policy_words(policy: Policy) -> str:
    """The words that name a policy, the opposite of `parse_policy`; "" if lighttail ships no such words.

    >>> policy_words(UCB(LightTailed(0.031))), policy_words(policies.ThompsonSampling(0.2, 0.04, 0.2))
    ('ucb:lighttailed:0.031', 'ts:0.2:0.04:0.2')
    """
    for text in _possible_words(policy):
        try:
            if parse_policy(text) == policy:
                return text
        except BadInput:
            continue
    return ""


def _possible_words(policy: Any) -> list[str]:
    """Words that may name the policy: a rule with a bonus, or a word with the fields in their order."""
    bonus = getattr(policy, "bonus", None)
    listed = []
    if bonus is not None:
        kinds = [word for word, kind in (*BONUSES.items(), *LINEAR_BONUSES.items()) if type(bonus) is kind]
        listed = [":".join([rule, word, *_field_texts(bonus)]) for rule in RULES for word in kinds]
    values = _field_texts(policy)
    single = [*BY_FIELDS, "ts", "exp3ix", "lints"]
    return listed + [":".join([word, *values[:count]]) for word in single for count in range(len(values) + 1)]


def _field_texts(named: Any) -> list[str]:
    """The fields of a dataclass as words; numbers with all their digits."""
    values = (getattr(named, f.name) for f in fields(named))
    return [f"{v:g}" if isinstance(v, float) and float(f"{v:g}") == v else str(v) for v in values]
