"""Families of problems: their members, their edges, and what fits observations."""

from __future__ import annotations

import numpy as np
import pytest

import lighttail as lt


def test_rates_fill_the_box_evenly() -> None:
    """The average of a uniform law is (low + high) / 2, its variance (high - low)^2 / 12; few points of a
    Halton sequence come much nearer than as many random ones would."""
    family = lt.Family.rates(0.2, 0.6, arms=3, members=60)
    means = np.array([member.means for member in family.members])
    assert ((means > 0.2) & (means < 0.6)).all()
    np.testing.assert_allclose(means.mean(axis=0), 0.4, atol=0.02)
    np.testing.assert_allclose(means.var(axis=0), 0.16 / 12, rtol=0.15)
    assert all(member.noise == lt.Bernoulli() for member in family.members)


def test_the_edges_of_a_box_lie_within_it_and_can_lose_enough() -> None:
    family = lt.Family.rates(0.03, 0.05, arms=3)
    edges = family.edges(0.005)
    assert len(edges) == len({edge.means for edge in edges}) > 10
    for edge in edges:
        assert all(0.03 <= mean <= 0.05 for mean in edge.means)
        assert max(edge.gaps) >= 0.005
    assert max(max(edge.gaps) for edge in edges) == pytest.approx(0.02)
    assert family.most_lost(1000) == pytest.approx(20.0)
    for beside in family.near(edges[3]):
        assert all(0.03 <= mean <= 0.05 for mean in beside.means)
    assert lt.Family([lt.Bandit([0.1, 0.2])]).edges(0.0) == ()


def test_gaps_keep_the_best_arm() -> None:
    family = lt.Family.gaps(0.1, 0.5, arms=4, noise=lt.Gaussian(2.0), best=3.0)
    assert family.sigma == 2.0
    for member in (*family.members, *family.edges(0.05)):
        assert max(member.means) == member.means[0] == 3.0
        assert all(0.1 - 1e-12 <= gap <= 0.5 + 1e-12 for gap in member.gaps[1:])


def test_rates_that_fit_observations_follow_their_posterior_law() -> None:
    """Beta(s + 1/2, n - s + 1/2): mean and variance within 4 standard errors of 4,000 draws. Control: the
    observed rates taken for the truth have no variance."""
    samples = {"A": [1.0] * 3 + [0.0] * 7, "B": [1.0] * 40 + [0.0] * 60}
    family = lt.Family.from_samples(samples, members=4000)
    rates = np.array([member.means for member in family.members])
    for arm, (ones, size) in enumerate([(3, 10), (40, 100)]):
        a, b = ones + 0.5, size - ones + 0.5
        mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
        assert abs(rates[:, arm].mean() - mean) < 4.0 * np.sqrt(variance / 4000)
        assert abs(rates[:, arm].var() / variance - 1.0) < 4.0 * np.sqrt(2.0 / 4000)
    assert np.corrcoef(rates.T)[0, 1] == pytest.approx(0.0, abs=4.0 / np.sqrt(4000))
    assert family.labels == ("A", "B")


def test_means_that_fit_observations_scatter_as_means_do() -> None:
    values = np.random.default_rng(3).normal(10.0, 4.0, 50)
    family = lt.Family.from_samples({"A": values, "B": values[:20]}, members=2000)
    means = np.array([member.means for member in family.members])
    for arm, found in enumerate([values, values[:20]]):
        error = found.std() / np.sqrt(found.size)
        assert abs(means[:, arm].mean() - found.mean()) < 4.0 * error / np.sqrt(2000)
        assert means[:, arm].std() == pytest.approx(error, rel=0.08)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lt.Family.rates(0.5, 0.3), "low must be at most high, which is 0.3, but is 0.5"),
        (lambda: lt.Family.rates(-0.1, 0.3), "low must be a rate from 0 to 1, but is -0.1"),
        (lambda: lt.Family.rates(0.1, 1.3), "high must be a rate from 0 to 1, but is 1.3"),
        (lambda: lt.Family.rates(0.1, 0.3, arms=1), "arms must be"),
        (lambda: lt.Family.gaps(-0.1, 0.3), "low must be a gap of 0 or more"),
        (lambda: lt.Family([]), "members must be a list of 1 to 10,000 problems"),
        (lambda: lt.Family([lt.Bandit([0, 1]), lt.Bandit([0, 1, 2])]), "a problem with 2 arms"),
        (lambda: lt.Family([3]), "a problem such as Bandit"),
        (
            lambda: lt.Family.from_samples({"A": [1.0], "B": [0.0, 1.0]}),
            "observations of A must be at least 2",
        ),
        (lambda: lt.Family.rates(0.1, 0.3, members=0), "members must be"),
        (lambda: lt.Family([lt.Bandit([0, 1])], low=(0.0,), high=(1.0, 1.0)), "low must be left out, or 2"),
        (lambda: lt.Family([lt.Bandit([0, 1])], high=(1.0, 1.0)), "high must be left out, or 2"),
    ],
    ids=lambda case: case if isinstance(case, str) else "made",
)
def test_bad_families_are_refused(make, message) -> None:
    with pytest.raises(lt.BadInput, match=message):
        make()


class Unhashable(lt.Gaussian):
    """A noise that a user forgot to make hashable."""

    __hash__ = None  # type: ignore[assignment]


def test_the_edges_of_a_family_do_not_ask_for_a_hash() -> None:
    with pytest.raises(TypeError):
        hash(Unhashable())
    edges = lt.Family.gaps(0.1, 0.5, 3, noise=Unhashable()).edges(0.1)
    assert [problem.means for problem in edges] == [
        problem.means for problem in lt.Family.gaps(0.1, 0.5, 3, noise=lt.Gaussian()).edges(0.1)
    ]
