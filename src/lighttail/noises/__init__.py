"""The noises, and the contract by which one's own is written (docs/own-noises.md)."""

from lighttail.noises.noise import (
    FACTS,
    PILOT_ARMS,
    SUMS,
    Bernoulli,
    Gaussian,
    Laplace,
    Noise,
    Resampled,
    StudentT,
    Uniform,
    rewards_drawn,
)

__all__ = [
    "FACTS",
    "PILOT_ARMS",
    "SUMS",
    "Bernoulli",
    "Gaussian",
    "Laplace",
    "Noise",
    "Resampled",
    "StudentT",
    "Uniform",
    "rewards_drawn",
]
