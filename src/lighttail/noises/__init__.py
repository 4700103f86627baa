"""The noises, and the base class for a noise of your own (docs/own-noises.md)."""

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
