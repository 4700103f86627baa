"""Three policies of your own, one of each size: an index, a bonus and a rule (docs/own-policies.md).

lighttail compare --policy "examples/my_policies.py:Ucb1(2.0)"
lighttail compare --policy "examples/my_policies.py:OneOverN(0.5)"  # UCB with this bonus
lighttail compare --policy "examples/my_policies.py:EpsilonGreedy(0.1)"
"""

import math
from dataclasses import dataclass

import lighttail as lt


@dataclass(frozen=True)
class Ucb1(lt.IndexPolicy):
    """mean + sqrt(c ln t / n) (Auer, Cesa-Bianchi and Fischer 2002)."""

    c: float = 2.0
    needs_horizon = False

    def params(self, horizon, arms):
        return (self.c,)

    @staticmethod
    def index(n, mean, clock, c):
        return mean + math.sqrt(c * math.log(clock) / n)


@dataclass(frozen=True)
class OneOverN(lt.Bonus):
    """c / n."""

    c: float

    def params(self, horizon, arms):
        return (self.c,)

    @staticmethod
    def radius(n, clock, c):
        return c / n


@dataclass(frozen=True)
class EpsilonGreedy(lt.Policy):
    """A random arm with probability epsilon, otherwise the arm with the highest mean."""

    epsilon: float
    notes = 1
    needs_horizon = False

    def params(self, horizon, arms):
        return (self.epsilon,)

    @staticmethod
    def choose(rng, t, tried, heard, total, note, params):
        (epsilon,) = params
        if lt.uniform(rng) < epsilon:
            return int(lt.uniform(rng) * len(tried))
        for k in range(len(tried)):
            note[k, 0] = total[k] / heard[k] if heard[k] > 0.0 else math.inf
        return lt.highest(rng, note)
