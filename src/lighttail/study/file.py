"""The study file: problems and policies from TOML, all checked before anything is played."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from lighttail.checks import (
    BadInput,
    file_path,
    non_negative,
    number,
    one_of,
    positive,
    refuse,
    refuse_file,
    shown,
    whole,
    whole_float,
)
from lighttail.course import STRAIGHT, Course, check_course
from lighttail.delays import Delay, as_delay
from lighttail.linear import LinearBandit
from lighttail.noises import Noise
from lighttail.policies import Policy
from lighttail.problems import MOST_PULLS, Bandit
from lighttail.reading.csvfile import read_rewards
from lighttail.reading.own import loader
from lighttail.reading.words import (
    DELAYS,
    in_units_of_noise,
    names_own,
    parse_course,
    parse_linear,
    parse_noise,
    parse_policy,
)
from lighttail.running.blocks import Method
from lighttail.running.prepare import MOST_PATHS, check_long, check_method, check_settings, why_not_skip
from lighttail.study.source import LONGEST_TEXT, Check, Source, Table, name, several, text, texts
from lighttail.study.told import Tell, told_noise, told_policy

LATE_KEYS = ("delay", "never", "batch")
LINEAR_KEYS = ("actions", "dim", "theta")
DELAY = f"a whole number of pulls, a list of such numbers, or a text of the form {DELAYS}"
DATA_KEYS = ("data", "arm_column", "reward_column")
PROBLEM_KEYS = ("name", "means", "noise", "sigmas", "labels", *DATA_KEYS, *LINEAR_KEYS, *LATE_KEYS)
POLICY_KEYS = ("name", "policy")
SETTINGS = ("name", "paths", "seeds", "horizons", "sigmas", "method", "threshold")
KEYS = (*SETTINGS, *LATE_KEYS, "problem", "policy")
MOST_PROBLEMS = 1000  # a problem counts once per sigma
MOST_POLICIES = 1000
MOST_CELLS = 10**5
Find = Callable[[str], Path]


@dataclass(frozen=True)
class StudyProblem:
    """A problem of a study with one of its sigmas; None if the study gives no sigma."""

    name: str
    sigma: float | None
    problem: Bandit | LinearBandit
    course: Course = STRAIGHT

    @property
    def title(self) -> str:
        """The name, with the sigma, the delay and the batch if there are any."""
        sigma = "" if self.sigma is None else f"sigma {self.sigma:g}"
        return ", ".join(filter(None, (self.name, sigma, self.course.short())))


@dataclass(frozen=True)
class Study:
    """The content of a study file.

    policies: by their names; a policy in units of the noise as for the noise 1. text: the text of the file.
    inputs: the paths of the data files and Python files that the text names. relative: the words of the
    policies in units of the noise, which differ from problem to problem (`policies_on`).
    """

    name: str
    paths: int
    seeds: tuple[int, ...]
    horizons: tuple[int, ...]
    method: Method
    threshold: float | None  # as a share of the horizon
    problems: tuple[StudyProblem, ...]
    policies: dict[str, Policy]
    text: str = field(repr=False)
    inputs: dict[str, Path]
    relative: dict[str, str] = field(default_factory=dict)

    def policies_on(self, setting: StudyProblem) -> dict[str, Policy]:
        """The policies that play a problem. Those in units of the noise are tuned for the problem's noise."""
        if not self.relative:
            return self.policies
        sigma = setting.problem.sigma
        with warnings.catch_warnings(action="ignore"):  # given when the study was read
            tuned = {called: parse_policy(words, sigma=sigma) for called, words in self.relative.items()}
        return self.policies | tuned


def read_study(path: str | Path) -> Study:
    """The study in a file. The files that it names are looked up in the folder of the study file.

    The Python files and modules that the study names are run.
    """
    path = file_path("study", path)
    try:
        with open(path, "rb") as file:
            raw = file.read(LONGEST_TEXT + 1)  # no more, since the file may be a device without an end
        if len(raw) > LONGEST_TEXT:
            raise refuse("study", str(path), f"a file of at most {LONGEST_TEXT:,} bytes")
        content = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise refuse_file("study", path, "a file that can be read", error) from None
    except UnicodeDecodeError:
        raise refuse("study", str(path), "a TOML file in UTF-8") from None
    return parse_study(content, path.name, lambda file: path.parent / file)


def parse_study(content: str, called: str, find: Find, tell: Tell | None = None) -> Study:
    """The study in a text. called: the name of the file in a message. find: returns the path of a file.

    tell: returns the facts of a user's own policy or noise. If it is given, no code of the user is run.

    >>> content = 'name = "a"' + chr(10) + 'paths = "9"'
    >>> parse_study(content, "study.toml", Path)
    Traceback (most recent call last):
    lighttail.checks.BadInput: study.toml, line 2: paths must be a whole number of at least 1, but is '9'
    """
    top, words = Source(called, content).top, _Words(find, tell)
    top.check_keys("key", KEYS)
    study = Study(
        name=top.value("name", name),
        paths=top.value("paths", lambda key, value: _whole(key, value, 1, MOST_PATHS)),
        seeds=top.value("seeds", several(lambda key, value: _whole(key, value, 0))),
        horizons=top.value("horizons", several(lambda key, value: _whole(key, value, 1, MOST_PULLS))),
        method=top.value("method", lambda key, value: one_of(key, value, get_args(Method)), "auto"),
        threshold=top.value("threshold", positive, None),
        problems=tuple(_problems(top, words)),
        policies=_policies(top, words),
        text=content,
        inputs=words.inputs,
        relative=words.relative,
    )
    count = len(study.problems) * len(study.policies) * len(study.horizons) * len(study.seeds)
    if count > MOST_CELLS:
        cells, found = "the cells, problems x policies x horizons x sigmas x seeds,", f"are {count:,}"
        raise refuse(cells, count, f"at most {MOST_CELLS:,}", found=found).within(called)
    if tell is None:  # otherwise they were checked when the study was played
        _check_pairs(study, top)
    return study


class _Words:
    """The policies, noises and files that the words of a study name.

    inputs: the files that were named so far. relative: the words so far that are in units of the noise, by
    the names of their policies. find, tell: as in `parse_study`.
    """

    def __init__(self, find: Find, tell: Tell | None) -> None:
        self.find, self.tell = find, tell
        self.load = loader(self.file, find("."))
        self.inputs: dict[str, Path] = {}
        self.relative: dict[str, str] = {}

    def file(self, called: str) -> Path:
        self.inputs[called] = self.find(called)
        return self.inputs[called]

    def policy(self, words: str, called: str) -> Policy:
        """The policy that these words name. called: its name in the study."""
        if self.tell is None or not names_own(words):
            return parse_policy(words, self.load, 1.0)
        return told_policy(called, self.tell("policy", called))

    def noise(self, words: str, sigma: float | None, called: str) -> Noise:
        """The noise that these words name. called: the name of its problem."""
        if self.tell is None or not names_own(words):
            return parse_noise(words, sigma, self.load)
        return told_noise(self.tell("noise", called))


def _whole(key: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number, which may be a float because TOML reads 1e5 as a float."""
    if most is not None and isinstance(value, float) and value > most:
        raise refuse(key, value, f"a whole number of at most {most}")
    return whole(key, whole_float(value), least, most=most)


def _policies(top: Table, reader: _Words) -> dict[str, Policy]:
    """The policies by their names."""
    policies: dict[str, Policy] = {}
    for table in top.tables("policy", POLICY_KEYS, MOST_POLICIES):
        words = table.value("policy", text)
        called = table.value("name", name, words)
        _check_fresh(table, policies, called)
        with table.at("policy"):
            policy = reader.policy(words, called)
            if in_units_of_noise(words):
                reader.relative[called] = words
            for other, same in policies.items():
                if same == policy and (other in reader.relative) == (called in reader.relative):
                    both = f"{other!r} and {called!r} are both {shown(words)}"
                    raise refuse("policy.policy", words, "different for every policy", found=both)
        policies[called] = policy
    return policies


def _check_fresh(table: Table, names: Iterable[str], called: str) -> None:
    """Refuse a name that was given before. Many disks do not distinguish upper and lower case."""
    if called.casefold() in [other.casefold() for other in names]:
        key = table.keys[0]
        with table.at("name" if "name" in table.values else "policy"):
            twice = f"is {called!r} twice"
            raise refuse(f"{key}.name", called, f"different for every {key}", found=twice)


def _problems(top: Table, reader: _Words) -> Iterator[StudyProblem]:
    shared = top.value("sigmas", several(non_negative), None)
    seen: list[StudyProblem] = []
    for table in top.tables("problem", PROBLEM_KEYS, MOST_PROBLEMS):
        called = table.value("name", name)
        _check_fresh(table, [other.name for other in seen], called)
        course = _course(top, table, reader.file)
        for sigma, problem in _with_sigmas(top, table, shared, reader):
            setting = StudyProblem(called, sigma, problem, course)
            with table.at():
                if len(seen) == MOST_PROBLEMS:
                    most = f"at most {MOST_PROBLEMS:,} with their sigmas"
                    raise refuse("problems", None, most, found="are more")
                for other in seen:
                    if (other.problem, other.course) == (problem, course):
                        same = f"{other.title!r} and {setting.title!r} are the same"
                        raise refuse("problem", problem, "different under every name", found=same)
            seen.append(setting)
            yield setting


def _course(top: Table, table: Table, find: Find) -> Course:
    """When rewards become known: a key in the table of the problem goes before the key of the study."""

    def value(key: str, check: Check, default: Any) -> Any:
        return (table if key in table.values else top).value(key, check, default)

    delay = value("delay", lambda field, value: _delay(field, value, find), STRAIGHT.delay)
    batch = value("batch", lambda field, value: _whole(field, value, 1), STRAIGHT.batch)
    course = Course(value("never", lambda field, value: replace(delay, never=value), delay), batch)
    if not course.straight and not table.values.keys().isdisjoint(LINEAR_KEYS):
        with table.at():
            raise refuse("delay, never or batch", course.short(), "left out with a linear bandit")
    return course


def _delay(key: str, value: Any, find: Find) -> Delay:
    """The delay that TOML gives as a number, a list or a text."""
    if isinstance(value, list):
        return as_delay(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise refuse(key, value, DELAY)
    found, _ = parse_course(value if isinstance(value, str) else str(whole_float(value)), None, None, find)
    assert found is not None  # a delay is given
    return found


def _with_sigmas(
    top: Table, table: Table, shared: Any, reader: _Words
) -> Iterator[tuple[float | None, Bandit | LinearBandit]]:
    """The problem of a table with each of its sigmas, or with those of the study."""
    values = table.values
    noise = table.value("noise", text, "gaussian")
    if "data" in values:
        others = (key for key in PROBLEM_KEYS[1:] if key not in (*DATA_KEYS, *LATE_KEYS))
        table.without(others, "with data")
    else:
        table.without(DATA_KEYS[1:], "without data")
    fixed = (
        "data" if "data" in values else "bernoulli rewards" if noise.strip().lower() == "bernoulli" else ""
    )
    fixed = fixed or ("a noise of your own" if names_own(noise) else "")
    if fixed:
        table.without(("sigmas",), f"with {fixed}")
        if shared is not None:
            with top.at("sigmas"):
                there = f"in the problems that take them, since {values['name']!r} with {fixed} does not"
                found = f"is {list(shared)} for all of them"
                raise refuse("sigmas", list(shared), there, verb="stand", found=found)
    if "data" in values:
        yield None, _resampled(table, reader)
        return
    for sigma in table.value("sigmas", several(non_negative), shared or (None,)):
        with table.at(*(["noise"] if "noise" in values else [])):
            law = reader.noise(noise, sigma, values["name"].strip())
        is_linear = not values.keys().isdisjoint(LINEAR_KEYS)
        yield sigma, _linear(table, law, reader) if is_linear else _arms(table, law)


def _arms(table: Table, law: Noise) -> Bandit:
    problem: Bandit = table.value("means", lambda key, means: Bandit(means, law))
    return table.value(  # type: ignore[no-any-return]
        "labels", lambda key, labels: Bandit(problem.means, law, texts(key, labels)), problem
    )


def _resampled(table: Table, reader: _Words) -> Bandit:
    columns = [table.value(key, text, None) for key in DATA_KEYS[1:]]

    def read(key: str, value: Any) -> Bandit:
        try:
            return Bandit.from_samples(read_rewards(reader.file(text(key, value)), *columns))
        except BadInput as error:
            raise error.spelled(str) from None  # keys of the file and not options

    return table.value("data", read)  # type: ignore[no-any-return]


def _linear(table: Table, law: Noise, reader: _Words) -> LinearBandit:
    table.without(("means", "labels"), "in a linear bandit")
    theta = table.value("theta", _vector, None)
    dim = table.value("dim", lambda key, value: str(_whole(key, value, 1)), None)

    def build(key: str, actions: Any) -> LinearBandit:
        if isinstance(actions, str) and actions.endswith(".npy"):
            actions = reader.file(actions)
        elif not isinstance(actions, str):
            actions = _whole(key, actions, 2)
        return parse_linear(theta, dim, str(actions), law)

    return table.value("actions", build)  # type: ignore[no-any-return]


def _vector(key: str, value: Any) -> str:
    """Numbers as a text, in the form of the command line. `repr` loses no bit."""
    if not isinstance(value, list) or not value:
        raise refuse(key, value, "a list of numbers")
    return ",".join(repr(number(f"{key}[{place}]", one)) for place, one in enumerate(value))


def _tuned(study: Study, setting: StudyProblem, top: Table) -> dict[str, Policy]:
    """The policies that play a problem. Refuses equal policies, and units of the noise without noise."""
    keys = {called: ("policy", turn, "policy") for turn, called in enumerate(study.policies)}
    with top.at(*keys[next(iter(study.relative or keys))]):
        try:
            policies = study.policies_on(setting)
        except BadInput as error:
            raise error.adding(f" (problem {setting.title!r})") from None
    seen: dict[Policy, str] = {}
    for called, policy in policies.items():
        if policy in seen:
            with top.at(*keys[called]):
                both = f"{seen[policy]!r} and {called!r} are both {policy} on problem {setting.title!r}"
                raise refuse("policy.policy", called, "different for every policy", found=both)
        seen[policy] = called
    return policies


# Where a mistake in a field stands; otherwise in the line of the policy.
FAULTS: dict[str, tuple[str | int, ...]] = {"horizon": ("horizons",), "method": ("method",)}


def _check_pairs(study: Study, top: Table) -> None:
    """Refuse a policy that cannot play a problem, with the line of the mistake."""
    for setting in study.problems:
        problem: Any = setting.problem
        for turn, policy in enumerate(_tuned(study, setting, top).values()):
            for horizon in study.horizons:
                try:
                    late = not setting.course.straight
                    check_settings(policy, problem, horizon, study.paths, seed=0, threads=1, keep="law")
                    check_course(policy, problem, horizon, setting.course.delay, setting.course.batch)
                    check_method(policy, problem, horizon, study.method, late)
                    if late or study.method == "step" or why_not_skip(policy, problem):
                        check_long(problem, horizon, "step")
                except BadInput as error:
                    with top.at(*FAULTS.get(str(error.field), ("policy", turn))):
                        raise error.adding(f" (problem {setting.title!r})") from None
