"""A refusal carries its field, value and what is allowed, and its sentence is written from them alone."""

from __future__ import annotations

import ast
import copy
import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_calls import answer_of
from fuzz_surface import _bounds, _settings
from fuzz_values import drawn

import lighttail as lt
from lighttail.bounds.bound import NoBound
from lighttail.checks import Argument, BadInput, Written, known_word, refuse, refuse_file
from lighttail.cli.app import _option
from lighttail.outcomes.outcome import NotKept

SOURCES = Path(lt.__file__).parent
ERRORS = ("BadInput", "NoBound", "NoManifest", "NotKept")
CALLS = 600


def test_a_refusal_says_its_parts_and_one_sentence() -> None:
    assert lt.BadInput is BadInput
    with pytest.raises(lt.BadInput) as caught:
        lt.UCB(lt.LightTailed(-1))
    error = caught.value
    assert (error.field, error.value, error.allowed) == ("kappa", -1, "a finite number above 0")
    assert str(error) == "kappa must be a finite number above 0, but is -1"
    assert error.args == (str(error),)
    assert error.to_dict() == {
        "field": "kappa",
        "value": "-1",
        "allowed": "a finite number above 0",
        "message": str(error),
    }


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (refuse("x", None, "a number"), "x must be a number, but is None"),
        (refuse("f", 3, "a tuple", verb="return", found="did not"), "f must return a tuple, but did not"),
        (refuse("f", None, "plain", found="", more=": so"), "f must be plain: so"),
        (refuse_file("data", "a.csv", "a file", FileNotFoundError()), "there is no such file"),
        (BadInput("all is wrong"), "all is wrong"),
        (BadInput("all is wrong", field="path"), "all is wrong"),
        (BadInput(), ""),
    ],
)
def test_a_sentence_of_another_form(error: BadInput, sentence: str) -> None:
    assert str(error).endswith(sentence)
    assert json.loads(json.dumps(error.to_dict()))["message"] == str(error)


def test_a_value_that_is_not_there_is_not_shown() -> None:
    assert refuse("x", None, "a number").to_dict()["value"] == "None"
    assert refuse("x", None, "a number", found="is missing").to_dict()["value"] is None
    assert BadInput("all is wrong").to_dict() == dict.fromkeys(("field", "value", "allowed")) | {
        "message": "all is wrong"
    }


def test_a_new_frame_keeps_value_and_allowed() -> None:
    first = refuse("relative_error", 0, "above 0")
    for framed in (
        first.renamed("--relative-error"),
        first.within("study.toml, line 2").within("request 7"),
        first.adding(" (problem 'two')"),
        first.spelled(_option),
    ):
        assert (framed.value, framed.allowed, framed.shown) == (0, "above 0", "0")
        assert framed.args == (str(framed),)
    renamed = first.renamed("--relative-error").adding("; so").within("line 2").within("a.toml")
    assert renamed.field == "--relative-error"
    assert str(renamed) == "a.toml: line 2: --relative-error must be above 0, but is 0; so"
    assert str(first) == "relative_error must be above 0, but is 0"  # unchanged


def test_a_frame_may_cut_what_it_holds() -> None:
    assert str(refuse("x", 1, "y").within("no text", 6)) == "no text: x must ..."
    assert str(refuse("x", 1, "y").within("no text", 100)) == "no text: x must be y, but is 1"


def test_arguments_are_written_for_python_and_for_the_command_line() -> None:
    plain = Argument("method", ("plain", "splitting"))
    few = refuse("paths", 9, ("few, or any with ", Argument("keep", ("law",))), more=("; use ", plain))
    assert str(few) == (
        "paths must be few, or any with keep='law', but is 9; use method='plain' or 'splitting'"
    )
    assert str(few.spelled(_option)) == (
        "paths must be few, or any with --keep law, but is 9; use --method plain or splitting"
    )
    assert few.spelled(_option).allowed == "few, or any with --keep law"
    lost = refuse("out", 1, "whole").adding(": ", Argument("rebuild", (True,)))
    assert (str(lost)[-14:], str(lost.spelled(_option))[-11:]) == (": rebuild=True", ": --rebuild")
    assert _option(Argument("most_pulls", (5,))) == "--most-pulls 5"


def hint() -> None:
    known_word("kind", "regrets", ("regret",))


def no_bound() -> None:
    lt.bounds.tail(lt.EvenSplit(), lt.Bandit([0.2, 0.8]), 50, 10.0)


def not_kept() -> None:
    problem = lt.Bandit([0.2, 0.8], lt.Gaussian(0.0))
    lt.simulate(lt.UCB(lt.LightTailed(0.2)), problem, horizon=9, paths=2, seed=1, keep="law").reward  # noqa: B018


def local_value() -> None:
    raise refuse("of", lambda: 0, "a function that pickle can send").within("a worker")


TRAVELLERS = {"hint": hint, "no bound": no_bound, "not kept": not_kept, "a value that stays": local_value}


def refusal_of(function: Any) -> BadInput:
    with pytest.raises(BadInput) as caught:
        function()
    return caught.value


@pytest.mark.parametrize("case", TRAVELLERS)
@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copy_is_the_same_refusal(case: str, again: Any) -> None:
    error = refusal_of(TRAVELLERS[case])
    other = again(error.within("here"))
    assert type(other) is type(error)
    assert (other.field, other.allowed, other.shown) == (error.field, error.allowed, error.shown)
    assert other.to_dict() == error.within("here").to_dict()
    assert repr(other.value) == error.shown or other.value == error.value
    assert str(other) == f"here: {error}"


def test_what_a_subclass_adds_is_kept() -> None:
    error = pickle.loads(pickle.dumps(refusal_of(no_bound).within("here")))
    assert isinstance(error, NoBound)
    assert error.why == refusal_of(no_bound).why != ""  # type: ignore[attr-defined]
    kept = refusal_of(not_kept).within("here")
    assert isinstance(kept, NotKept)
    assert isinstance(kept, AttributeError)


def test_a_refusal_comes_back_from_a_process() -> None:
    with ProcessPoolExecutor(1, get_context("forkserver")) as pool:
        plain, stays = (refusal_of(pool.submit(f).result) for f in (hint, local_value))
    assert (plain.field, plain.value) == ("kind", "regrets")
    assert str(plain) == "kind must be one of regret, but is 'regrets'; did you mean 'regret'?"
    assert isinstance(stays.value, Written)
    assert repr(stays.value) == stays.shown
    assert "<lambda>" in str(stays)


def test_refusals_of_the_public_surface_carry_a_field() -> None:
    """Of calls drawn at random with nasty arguments, whatever is refused."""
    calls = {**_settings(), **_bounds()}
    refused = []
    for number in range(CALLS):
        rng = np.random.default_rng([14, number])
        call = calls[drawn(rng, list(calls))]
        answer = answer_of(call.function, call.draw(rng))
        refused += [answer] if isinstance(answer, BadInput) else []
    assert len(refused) > CALLS / 4
    for error in refused:
        assert error.field, str(error)
        assert error.allowed, str(error)
        assert str(error).startswith(f"{error.field} must "), str(error)
        assert str(error.shown) in str(error)
        assert json.loads(json.dumps(error.to_dict())) == error.to_dict()
        assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()


def without_a_field(tree: ast.AST) -> list[str]:
    """The calls that make an error and say no field."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ERRORS]
    return [ast.unparse(call) for call in made if "field" not in {word.arg for word in call.keywords}]


def text_of_an_error(tree: ast.AST) -> list[str]:
    """Where a caught refusal is turned into text: str(error), or {error} in another text."""
    found = []
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        if handler.type is None or not handler.name or not set(ERRORS) & set(_names(handler.type)):
            continue
        for node in ast.walk(handler):
            inside = node.value if isinstance(node, ast.FormattedValue) else None
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "str":
                inside = node.args[0]
            if isinstance(inside, ast.Name) and inside.id == handler.name:
                found.append(ast.unparse(node))
    return found


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


@pytest.mark.parametrize("fault", [without_a_field, text_of_an_error])
def test_every_refusal_of_the_package_says_its_field_and_is_passed_on_whole(fault: Any) -> None:
    found = {str(file): fault(ast.parse(file.read_text())) for file in SOURCES.rglob("*.py")}
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_the_search_finds_what_it_looks_for() -> None:
    """Negative control."""
    source = "try:\n    f()\nexcept BadInput as error:\n    raise BadInput(f'line 1: {error}' + str(error))"
    tree = ast.parse(source)
    assert len(without_a_field(tree)) == 1
    assert len(text_of_an_error(tree)) == 2
    assert text_of_an_error(ast.parse(source.replace("BadInput", "OSError"))) == []
