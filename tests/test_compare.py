"""`lt.compare` and the `Comparison` that it returns; the command line is tested in test_cli.py."""

from __future__ import annotations

import importlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.compare import default_words, told_apart
from lighttail.outcomes.comparison import comparison_of
from lighttail.outcomes.losing import EXPLAINED
from lighttail.outcomes.verdict import _rank, even_split, no_better_than_even
from lighttail.reading.words import parse_policy

compare_module = importlib.import_module("lighttail.compare")  # the name is the function's
HEAVY, LIGHT = lt.UCB(lt.Standard(0.1)), lt.UCB(lt.LightTailed(0.2))
PROBLEM = lt.Bandit([0.2, 0.8])
EQUAL = lt.Bandit([0.5, 0.5])
QUICK: dict[str, Any] = {"horizon": 500, "paths": 300, "seed": 1}


@pytest.fixture(scope="module")
def comparison() -> lt.Comparison:
    return lt.compare([HEAVY, LIGHT], PROBLEM, **QUICK)


def test_every_outcome_is_that_of_simulate(comparison: lt.Comparison) -> None:
    for policy in (HEAVY, LIGHT):
        alone = lt.simulate(policy, PROBLEM, **QUICK)
        entry = comparison[policy]
        assert np.array_equal(entry.outcome.reward, alone.reward)
        assert entry.outcome.settings == alone.settings
        assert entry.mean == alone.mean()
        assert entry.quantile_95 == alone.quantile(0.95)
        assert entry.quantile_99 == alone.quantile(0.99)
        assert entry.cvar_99 == alone.cvar(0.99)
        assert entry.exceedance == alone.exceedance(comparison.threshold)
        assert entry.worst == alone.pseudo_regret.max()
    other = lt.simulate(LIGHT, PROBLEM, **{**QUICK, "seed": 2})  # negative control
    assert comparison[LIGHT].mean != other.mean()


@pytest.mark.parametrize(
    "settings",
    [{"keep": "law"}, {"delay": 7}, {"batch": 5}, {"threads": 1}],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_are_those_of_simulate(settings: dict[str, Any]) -> None:
    entry = lt.compare([LIGHT], PROBLEM, **QUICK, **settings)[LIGHT]
    alone = lt.simulate(LIGHT, PROBLEM, **QUICK, **settings)
    assert entry.outcome.settings == alone.settings
    assert entry.mean == alone.mean()


def test_an_executor_plays_the_same_bits(comparison: lt.Comparison) -> None:
    with ThreadPoolExecutor(2) as executor:
        there = lt.compare([HEAVY, LIGHT], PROBLEM, **QUICK, executor=executor)
    assert [entry.mean for entry in there.entries] == [entry.mean for entry in comparison.entries]


def test_policies_have_the_names_of_a_mapping_or_their_own(comparison: lt.Comparison) -> None:
    assert list(comparison) == ["UCB + Standard(0.1)", "UCB + LightTailed(0.2)"]
    named = lt.compare({"old": HEAVY, "new": LIGHT, "new again": LIGHT}, PROBLEM, **QUICK)
    assert (list(named), len(named)) == (["old", "new", "new again"], 3)
    assert "new" in named
    assert named["new"].mean == named["new again"].mean == comparison[LIGHT].mean
    assert named[LIGHT] is named["new"]


def test_names_that_are_alike_are_told_apart() -> None:
    near = [lt.ThompsonSampling(0.8), lt.ThompsonSampling(0.8000000001), lt.ThompsonSampling(0.9)]
    assert list(told_apart(near, map(str, near))) == [repr(near[0]), repr(near[1]), "TS(0.9)"]


@pytest.mark.parametrize("key", ["UCB", 0, lt.ThompsonSampling(1.0)])
def test_a_policy_that_was_not_compared_is_refused(key: Any, comparison: lt.Comparison) -> None:
    with pytest.raises(BadInput, match="policy must be one of"):
        comparison[key]


def test_without_policies_those_of_the_command_line_are_compared() -> None:
    arms = lt.compare(None, PROBLEM, horizon=20, paths=5, seed=1)
    linear = lt.LinearBandit([0.5, 0.2], lt.SphereActions(3))
    vectors = lt.compare(None, linear, horizon=20, paths=5, seed=1)
    for found in (arms, vectors):
        made = [parse_policy(word, sigma=1.0) for word in default_words(found.problem)]
        assert [entry.policy for entry in found.entries] == made
    assert (len(arms), len(vectors)) == (6, 4)


def test_a_fresh_seed_is_one_for_all_and_gives_the_same_again() -> None:
    fresh = lt.compare([HEAVY, LIGHT], PROBLEM, horizon=50, paths=20)
    assert {entry.outcome.settings["seed"] for entry in fresh.entries} == {fresh.seed}
    assert isinstance(fresh.seed, int)
    again = lt.compare([HEAVY, LIGHT], PROBLEM, horizon=50, paths=20, seed=fresh.seed)
    assert str(again) == str(fresh)
    assert lt.compare([HEAVY], PROBLEM, horizon=50, paths=20).seed != fresh.seed


def test_it_prints_as_a_table_and_its_verdict(comparison: lt.Comparison) -> None:
    lines = str(comparison).splitlines()
    assert repr(comparison) == str(comparison)
    assert lines[0] == "Loss after 500 pulls, 300 paths, seed 1; 95 % intervals in brackets"
    assert lines[2].split("  ")[0] == "policy"
    assert [line.partition("  ")[0] for line in lines[3:5]] == list(comparison)
    assert len({len(line) for line in lines[2:5]}) == 1  # the last column ends where its heading does
    assert lines[-2:] == [comparison.verdict(), EXPLAINED["pseudo_regret"]]
    lowest = "The chance of losing 100 or more is lowest, 0.0011 % (exact), for UCB + LightTailed(0.2), "
    assert comparison.verdict().startswith(lowest)
    assert ", for UCB + Standard(0.1)." in comparison.verdict()
    late = lt.compare([LIGHT], PROBLEM, **QUICK, delay=7)
    assert str(late).splitlines()[1] == late.course.words() != ""


def test_losing_means_the_pseudo_regret_unless_the_regret_is_asked_for(comparison: lt.Comparison) -> None:
    other = lt.compare([HEAVY, LIGHT], PROBLEM, **QUICK, kind="regret")
    alone = lt.simulate(LIGHT, PROBLEM, **QUICK)
    for found, kind in ((comparison, "pseudo_regret"), (other, "regret")):
        entry = found[LIGHT]
        assert entry.mean == alone.mean(kind)
        assert entry.exceedance == alone.exceedance(100.0, kind)
        assert entry.worst == getattr(alone, kind).max()
        assert found.to_dict()["kind"] == kind
        assert str(found).endswith(EXPLAINED[kind])
        assert str(eval(found.made_by, {"lt": lt, "policies": [HEAVY, LIGHT], "problem": PROBLEM})) == str(
            found
        )
    assert comparison[LIGHT].mean != other[LIGHT].mean  # negative control
    assert "mean regret" in str(other)
    assert "a regret of 100 or more" in other.verdict()


def test_the_shown_chance_is_the_best_known(comparison: lt.Comparison) -> None:
    for entry in comparison.entries:
        exact = lt.exact_tail(entry.policy, PROBLEM, QUICK["horizon"], 100.0)
        assert entry.chance.value == pytest.approx(exact, rel=1e-9)
        assert entry.chance_source == entry.to_dict()["chance_source"] == "exact"
        assert entry.to_dict()["chance"] == entry.growth.chances[-1].to_dict()  # one number on the page
        assert entry.cells()[4][1] == "exact"
    counted = lt.compare([LIGHT], PROBLEM, **QUICK, growth=False)[LIGHT]
    assert counted.chance == counted.exceedance  # negative control
    assert counted.chance_source == "300 paths"
    assert counted.cells()[4] == ("< 1.23 %", "")


def test_the_regret_may_exceed_what_bad_arms_can_lose() -> None:
    far = lt.compare([LIGHT], PROBLEM, **QUICK, kind="regret", threshold=301.0)
    assert far[LIGHT].exceedance.value == 0.0


def test_equal_arms_lose_nothing() -> None:
    found = lt.compare([LIGHT], EQUAL, **QUICK)
    assert found.verdict() == "All arms are equally good, so no choice of arms loses anything."
    assert found[LIGHT].worst == 0.0
    again = eval(found.made_by, {"lt": lt, "policies": [LIGHT], "problem": EQUAL})
    assert str(again) == str(found)


@pytest.mark.parametrize(("horizon", "means"), [(300, [0.2, 0.8]), (301, [0.8, 0.2, 0.5])])
def test_a_policy_that_does_no_better_than_an_even_split_is_named(horizon: int, means: list[float]) -> None:
    """An even split of a horizon that the arms do not divide is one, too. Noise of 1000 teaches nothing."""
    even, loud = lt.EvenSplit(), lt.Bandit(means, lt.Gaussian(1000.0))
    found = lt.compare([even, LIGHT], loud, horizon=horizon, paths=500, seed=1)
    assert f"{even} and {LIGHT} do no better here than an even split" in found.verdict()
    assert found[even].mean.value == pytest.approx(even_split(means, horizon))
    control = lt.compare([even, LIGHT], lt.Bandit(means), horizon=horizon, paths=500, seed=1)
    assert no_better_than_even(control[even], loud, horizon)
    assert not no_better_than_even(control[LIGHT], loud, horizon)
    assert "EvenSplit does no better here than an even split of the pulls" in control.verdict()


def test_rows_frame_and_results_hold_the_same_numbers(comparison: lt.Comparison) -> None:
    rows, frame, results = comparison.table(), comparison.to_frame(), comparison.to_dict()
    assert list(frame["policy"]) == [row["policy"] for row in rows] == list(comparison)
    for place, (row, told) in enumerate(zip(rows, results["policies"], strict=True)):
        entry = comparison[row["policy"]]
        assert row["mean_loss"] == entry.mean
        for name in entry.estimates():
            assert told[name] == row[name].to_dict()
            ends = [frame[f"{name}{end}"][place] for end in ("", "_low", "_high")]
            assert ends == [row[name].value, row[name].low, row[name].high]
        for name in ("worst_loss", "light_tailed_by_theorem"):
            assert told[name] == row[name] == frame[name][place]
    assert [row["light_tailed_by_theorem"] for row in rows] == [False, True]
    assert json.loads(json.dumps(results, allow_nan=False)) == results


def test_the_call_that_made_it_makes_it_again(comparison: lt.Comparison) -> None:
    late = lt.compare(
        [LIGHT], PROBLEM, **QUICK, delay=lt.UniformDelay(2, 9), batch=3, keep="law", threshold=7
    )
    names = {**vars(lt), "lt": lt, "policies": [LIGHT], "problem": PROBLEM}
    assert str(eval(late.made_by, names)) == str(late)
    assert late.to_dict()["command"] == late.made_by
    assert comparison.made_by.endswith("horizon=500, paths=300, seed=1, threshold=100.0)")
    assert comparison.to_dict("lighttail compare")["command"] == "lighttail compare"


def test_it_is_frozen_and_pickles(comparison: lt.Comparison) -> None:
    with pytest.raises(AttributeError):
        comparison.threshold = 5.0  # type: ignore[misc]
    assert str(pickle.loads(pickle.dumps(comparison))) == str(comparison)


def test_progress_is_told_of_all_policies_together() -> None:
    calls: list[tuple[str, int]] = []
    lt.compare([HEAVY, LIGHT], PROBLEM, **QUICK, delay=3, progress=lambda *step: calls.append(step))
    assert calls[0] == ("UCB + Standard(0.1), delay 3", 0)
    assert ("UCB + LightTailed(0.2), delay 3", 600) in calls
    assert calls[-1] == ("UCB + LightTailed(0.2), how its chance falls", 600)
    assert [done for _, done in calls] == sorted(done for _, done in calls)


def test_a_policy_keeps_its_colour_where_others_are_missing(comparison: lt.Comparison) -> None:
    other = lt.UCB(lt.LightTailed(0.4))
    outcomes = {"light": comparison[LIGHT].outcome}
    found = comparison_of({"other": other, "heavy": HEAVY, "light": LIGHT}, outcomes, PROBLEM, 1, 20.0)
    assert [(entry.label, entry.turn) for entry in found.entries] == [("light", 1)]
    assert comparison[LIGHT].turn == 0  # negative control


def test_a_report_is_written_and_says_what_made_it(comparison: lt.Comparison, tmp_path: Path) -> None:
    page = lt.write_report(comparison, str(tmp_path / "new" / "folder"))
    assert page == tmp_path / "new" / "folder" / "report.html"
    assert "lt.compare(policies, problem, horizon=500" in page.read_text()
    assert json.loads((page.parent / "results.json").read_text()) == comparison.to_dict()


class Broken(lt.Policy):
    """A policy of one's own that fails in its first round."""

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()

    @staticmethod
    def choose(rng: Any, t: Any, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> Any:
        return 7

    @staticmethod
    def learn(arm: Any, reward: Any, tried: Any, heard: Any, total: Any, note: Any, params: Any) -> None:
        pass


GOOD: dict[str, Any] = {"policies": [LIGHT, HEAVY], "problem": PROBLEM, **QUICK}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"policies": []}, "policies must be a list of policies such as"),
    ({"policies": LIGHT}, "policies must be a list of policies such as"),
    ({"policies": "ts:1"}, "policies must be a list of policies such as"),
    ({"policies": [LIGHT, "ts:1"]}, r"policies\[1\] must be a policy such as .*, but is 'ts:1'"),
    ({"policies": {"a": LIGHT, "b": 3}}, r"policies\['b'\] must be a policy such as .*, but is 3"),
    ({"policies": {1: LIGHT}}, "a name in policies must be a text that is not empty, but is 1"),
    ({"policies": {" ": LIGHT}}, "a name in policies must be a text that is not empty, but is ' '"),
    ({"policies": [LIGHT, HEAVY, LIGHT]}, "policies must differ from each other .* twice"),
    ({"policies": [LIGHT] * 501}, "the number of policies must be at most 500 in one comparison, but is 501"),
    ({"policies": [LIGHT, Broken()]}, "choose of Broken must return an arm"),
    ({"policies": [LIGHT, lt.LinearThompson(1.0)]}, "policy must be for arms"),
    ({"problem": [0.2, 0.8]}, "problem must be a problem such as"),
    ({"policies": None, "problem": 3}, "problem must be a problem such as"),
    ({"horizon": 1}, "horizon must be a whole number of at least 2"),
    ({"paths": 0}, "paths must be a whole number of at least 1, but is 0"),
    ({"paths": 10**9, "horizon": 10**9, "keep": "law", "delay": 2}, r"paths \* horizon must be at most"),
    ({"seed": -1}, "seed must be a whole number of at least 0"),
    ({"threshold": 0}, "threshold must be a finite number above 0, but is 0"),
    ({"threshold": float("nan")}, "threshold must be a finite number above 0"),
    (
        {"threshold": 300.1},
        "threshold must be at most 300, because no policy can lose more in 500 pulls, but is 300.1",
    ),
    ({"threshold": 1.0, "problem": EQUAL}, "threshold must be left out where all arms are equally good"),
    ({"kind": "loss"}, "kind must be 'pseudo_regret' or 'regret', but is 'loss'"),
    ({"growth": 1}, "growth must be True, False or None, but is 1"),
    ({"delay": -1}, "delay must be"),
    ({"batch": 0}, "batch must be a whole number of at least 1"),
    ({"keep": "all"}, "keep must be 'paths' or 'law'"),
    ({"device": "gpu"}, "device must be 'cpu' or 'cuda'"),
    ({"executor": 3}, "executor must be"),
    ({"threads": 0}, "threads must be a whole number of at least 1"),
    ({"progress": 3}, "progress must be True, False or a function"),
]


@pytest.mark.parametrize(("change", "sentence"), BAD, ids=lambda part: part if isinstance(part, str) else "")
def test_bad_arguments_get_a_sentence_before_any_work(
    change: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Any] = []
    monkeypatch.setattr(compare_module, "simulate", lambda *args, **settings: played.append(args))
    with pytest.raises(BadInput, match=f"^{sentence}"):
        lt.compare(**{**GOOD, **change})
    assert played == []


def test_what_no_pickle_can_send_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsendable(**parts: Any) -> None:
        raise BadInput("policy must be one that pickle can send")

    monkeypatch.setattr(compare_module, "check_travels", unsendable)
    lt.compare([LIGHT], PROBLEM, **QUICK)  # negative control: without an executor nothing is sent
    with ThreadPoolExecutor(1) as executor, pytest.raises(BadInput, match="pickle can send"):
        lt.compare([LIGHT], PROBLEM, **QUICK, executor=executor)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"result": 3}, "result must be a Comparison or a Plan, which `compare` and `plan` return, but is 3"),
        ({"folder": 3}, "folder must be the path of a folder, but is 3"),
        ({"command": 3}, "command must be a text, but is 3"),
        ({"folder": "/dev/null/x"}, "folder must be a folder that can be written"),
    ],
)
def test_a_report_refuses_in_a_sentence(
    change: dict[str, Any], sentence: str, comparison: lt.Comparison, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=f"^{sentence}"):
        lt.write_report(**{"result": comparison, "folder": tmp_path, **change})
    assert list(tmp_path.iterdir()) == []


def test_dir_shows_the_public_names_alone() -> None:
    assert dir(lt) == sorted([*lt.__all__, "__version__"])
    assert "report" in vars(lt)  # negative control: a module that importing the names loads
    assert all(hasattr(lt, name) for name in dir(lt))


def entry_of(value: float, high: float, source: str = "simulated paths") -> Any:
    return SimpleNamespace(chance=lt.Estimate(value, 0.0, high, 0.95), chance_source=source)


def test_a_policy_of_which_no_path_lost_ranks_below_those_of_which_some_did() -> None:
    """Its upper limit may be above the estimate of another policy; an exact chance may be below the limit."""
    none, some, exact = entry_of(0.0, 0.0012), entry_of(0.001, 0.003), entry_of(0.0005, 0.0005, "exact")
    entries = [none, some, exact]
    assert _rank(none, entries) < _rank(some, entries) == 0.001
    assert _rank(exact, entries) < _rank(none, entries)
    assert _rank(none, [none, exact]) == 0.0012
    assert _rank(entry_of(0.0, 0.0, "exact"), entries) == 0.0


def test_a_chance_that_is_exactly_none_is_no_upper_limit() -> None:
    comparison = lt.compare(
        [lt.EvenSplit(), lt.UCB(lt.LightTailed(0.2))],
        lt.Bandit([0.04, 0.05], lt.Bernoulli()),
        horizon=200,
        paths=200,
        seed=1,
        threshold=1.5,
    )
    assert comparison[lt.EvenSplit()].chance.high == 0.0
    assert "is lowest, 0 % (exact), for EvenSplit" in comparison.verdict()
    assert "< 0 %" not in str(comparison)
