"""The noises, and the base class for a noise of your own (docs/own-noises.md)."""

from lighttail.noises.noise import (
    PILOT_ARMS,
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
    "PILOT_ARMS",
    "Bernoulli",
    "Gaussian",
    "Laplace",
    "Noise",
    "Resampled",
    "StudentT",
    "Uniform",
    "rewards_drawn",
]
