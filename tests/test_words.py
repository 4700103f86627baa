"""The words of the command line for policies: what they make, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import cases
import pytest

import lighttail as lt
from lighttail.checks import BadInput
from lighttail.reading.words import BY_FIELDS, FORMS, NOISES, parse_noise, parse_policy

MADE = {
    "klucb": lt.KlUcb(),
    "klucb:0.5": lt.KlUcb(0.5),
    "KLUCB:0.5:2": lt.KlUcb(0.5, sigma=2.0),
    "imed": lt.Imed(),
    "imed:0.7": lt.Imed(sigma=0.7),
    "bayesucb": lt.BayesUcb(),
    "bayesucb:5": lt.BayesUcb(5.0),
    "betats": lt.BetaThompson(),
    "inflated:0.5": lt.InflatedThompson(0.5),
    "egreedy:5:0.1": lt.EpsilonGreedy(5.0, 0.1),
    "etc:20": lt.ExploreThenCommit(20),
    "evensplit": lt.EvenSplit(),
    "moss": lt.UCB(lt.Moss()),
    "moss:2": lt.UCB(lt.Moss(2.0)),
    "ucb:moss:2": lt.UCB(lt.Moss(2.0)),
    "eqo:0.5": lt.UCB(lt.Eqo(0.5)),
    "se:eqo:0.1": lt.SuccessiveElimination(lt.Eqo(0.1)),
    "twopart:0.5:1": lt.UCB(lt.TwoPart(0.5, 1.0)),
    "ucb:twopart:0.5:1:0.6:0.2": lt.UCB(lt.TwoPart(0.5, 1.0, alpha=0.6, beta=0.2)),
    "ucb:armoptimal:0.4:0.2": lt.UCB(lt.ArmOptimal(0.4, 0.2)),
}


@pytest.mark.parametrize("word", MADE)
def test_a_word_makes_its_policy(word: str) -> None:
    assert parse_policy(word) == MADE[word]


def test_every_word_has_a_form_and_a_case() -> None:
    assert set(BY_FIELDS) <= set(FORMS)
    assert set(BY_FIELDS) <= {word.lower().split(":")[0] for word in MADE}


def test_every_shipped_noise_has_a_word() -> None:
    """Without a word, a command and a study cannot name the noise."""
    assert {type(noise) for noise in cases.NOISES} == set(NOISES.values())


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("klucb:1:2:3", "policy must be of the form klucb, klucb:C or klucb:C:SIGMA, but is 'klucb:1:2:3'"),
        ("klucb:much", "c must be a number, but is 'much'"),
        ("egreedy:5", "policy must be of the form egreedy:C:D"),
        ("etc:2.5", "m must be a whole number of at least 1, but is 2.5"),
        ("etc", "policy must be of the form etc:M"),
        ("evensplit:2", "policy must be of the form evensplit, but is"),
        ("eqo", "policy must be of the form eqo:KAPPA"),
        ("twopart:1", "policy must be of the form twopart:KAPPA:CAP, twopart:KAPPA:CAP:ALPHA or"),
        ("ucb:eqo", "policy must be of the form ucb:BONUS:KAPPA"),
        ("inflate:1", "did you mean 'inflated'?"),
    ],
)
def test_another_form_is_refused(word: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_policy(word)
    assert said in str(caught.value)


def test_an_assumed_noise_scales_what_grows_with_it_and_nothing_else() -> None:
    scaled = {word: policy.for_noise(2.0) for word, policy in MADE.items()}
    assert scaled["KLUCB:0.5:2"] == lt.KlUcb(0.5, sigma=4.0)
    assert scaled["imed:0.7"] == lt.Imed(sigma=1.4)
    assert scaled["inflated:0.5"] == lt.InflatedThompson(1.0)
    assert scaled["moss"] == lt.UCB(lt.Moss(2.0))
    assert scaled["ucb:twopart:0.5:1:0.6:0.2"] == lt.UCB(lt.TwoPart(1.0, 2.0, alpha=0.6, beta=0.2))
    assert scaled["ucb:armoptimal:0.4:0.2"] == lt.UCB(lt.ArmOptimal(0.8, 0.4))
    for word in ("klucb:0.5", "imed", "bayesucb:5", "betats", "egreedy:5:0.1", "etc:20", "evensplit"):
        assert scaled[word] == MADE[word]


@dataclass(frozen=True)
class Skewed(lt.Laplace):
    """A noise with fields of its own, before and after sigma."""

    sigma: float = 1.0
    skew: float = 0.5
    reach: float = 2.0


def test_a_noise_takes_the_numbers_of_its_own_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NOISES, "skewed", Skewed)
    assert parse_noise("skewed", None) == Skewed()
    assert parse_noise("Skewed:0.1:3", 0.7) == Skewed(0.7, skew=0.1, reach=3.0)
    assert parse_noise("studentt:4.5", 2.0) == lt.StudentT(4.5, 2.0)
    assert parse_noise("bernoulli", None) == lt.Bernoulli()
    for text, sigma, said in (
        ("skewed:1:2:3", None, "noise must be skewed or studentt:DF or skewed:SKEW:REACH, but is"),
        ("gaussian:1", None, "noise must be gaussian or studentt:DF or skewed:SKEW:REACH, but is"),
        ("laplace:1", None, "; sigma=1.0 says how large it is"),
        ("bernoulli:0.2", None, "sigma must be left out with bernoulli noise, but is '0.2'"),
        ("bernoulli", 2.0, "sigma must be left out with bernoulli noise, but is 2.0"),
        ("studentt:x", None, "df must be a number, but is 'x'"),
    ):
        with pytest.raises(BadInput, match=said):
            parse_noise(text, sigma)
