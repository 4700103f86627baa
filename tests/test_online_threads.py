"""Threads that share one live experiment: no trial is lost, and none is counted twice."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cases import POLICIES, name
from linear_cases import LIGHT, THOMPSON
from live import start

import lighttail as lt

THREADS, EACH = 4, 25


class Yielding(list[Any]):
    """A list that lets another thread run between a look and a change, where a race would be lost."""

    def append(self, entry: Any) -> None:
        super().append(entry)
        time.sleep(1e-6)

    def __getitem__(self, place: Any) -> Any:
        entry = super().__getitem__(place)
        time.sleep(1e-6)
        return entry


class Colliding(Yielding):
    """A list to which the first thread adds together with the second one, which comes for certain if no lock
    keeps it away. late: whether they meet after the first thread has added its entry."""

    def __init__(self, late: bool) -> None:
        super().__init__()
        self.late, self.met, self.calls = late, threading.Event(), itertools.count()

    def append(self, entry: Any) -> None:
        if self.late:
            super().append(entry)
        if next(self.calls):
            self.met.set()
        else:
            self.met.wait()
        if not self.late:
            super().append(entry)


class NoLock(contextlib.nullcontext[None]):
    """Never waits."""

    def acquire(self) -> None:
        pass

    release = acquire


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def linear(policy: Any) -> lt.LinearExperiment:
    return lt.LinearExperiment(policy, 2, seed=3)


def ask(experiment: Any) -> Any:
    return experiment.ask(np.eye(2)) if isinstance(experiment, lt.LinearExperiment) else experiment.ask()


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What each thread returns; all of them begin together."""
    gate = threading.Barrier(THREADS)

    def begun(thread: int) -> Any:
        gate.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begun, range(THREADS)))


def shared(experiment: Any, lists: Callable[[], list[Any]] = Yielding) -> list[str]:
    """What went wrong when threads asked, told (each trial by all of them) and saved at once."""
    for field in ("_arm_of", "_action_of", "_reward_of"):
        if hasattr(experiment, field):
            setattr(experiment, field, lists())

    def asks(thread: int) -> list[Any]:
        trials = []
        for _ in range(EACH):
            trials.append(ask(experiment))
            if len(trials) % 10 == 0:
                experiment.to_json(), repr(experiment), experiment.open_trials
        return trials

    wrong = []
    ids = sorted(trial.id for trials in at_once(asks) for trial in trials)
    if ids != list(range(1, THREADS * EACH + 1)):
        wrong.append("ids are not unique")
    at_once(lambda thread: [experiment.tell(id, float(id % 7)) for id in range(1, THREADS * EACH + 1)])
    rule = json.loads(experiment.to_json())["rule"]
    if sum(rule["sums" if "sums" in rule else "total"]) != sum(id % 7 for id in ids):
        wrong.append("the sums are not those of the rewards")  # which are whole, and so are the actions
    try:  # its sums are checked against its trials
        assert type(experiment).from_json(experiment.to_json()).to_json() == experiment.to_json()
    except ValueError as error:
        wrong.append(str(error))
    return wrong


@pytest.mark.parametrize("policy", POLICIES, ids=name)
def test_threads_share_an_experiment(policy: lt.Policy) -> None:
    assert shared(start(policy)) == []


@pytest.mark.parametrize("policy", [LIGHT, THOMPSON], ids=name)
def test_threads_share_a_linear_experiment(policy: Any) -> None:
    assert shared(linear(policy)) == []


def test_without_the_lock_trials_are_lost_and_rewards_counted_twice() -> None:
    """Negative control: the second ask counts the trials before the first one has added its own."""
    experiment = start(lt.UCB(lt.AnyTime(0.3)))
    experiment._lock = NoLock()
    try:
        wrong = shared(experiment, lambda: Colliding(late=False))
    except Exception as error:  # such as a look at the open trials while they change
        wrong = [str(error)]
    assert wrong != []


def test_without_the_lock_a_linear_experiment_fails_as_well() -> None:
    """Negative control: the first ask counts the trials after the second one has added its own."""
    experiment = linear(LIGHT)
    experiment._lock = NoLock()
    try:
        wrong = shared(experiment, lambda: Colliding(late=True))
    except Exception as error:
        wrong = [str(error)]
    assert wrong != []


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("make", [lambda: start(lt.ThompsonSampling(0.5)), lambda: linear(THOMPSON)])
def test_copies_and_pickles_have_a_lock_of_their_own(make: Callable[[], Any], again: Any) -> None:
    experiment = make()
    experiment.tell(ask(experiment).id, 1.0)
    twin = again(experiment)
    assert twin.to_json() == experiment.to_json()
    assert twin._lock is not experiment._lock
    with experiment._lock, ThreadPoolExecutor(1) as pool:  # another thread can use the copy meanwhile
        assert pool.submit(twin.to_json).result() == experiment.to_json()
