"""The noises, and the base class for a noise of your own (docs/own-noises.md)."""

from lighttail.noises.noise import Bernoulli, Gaussian, Laplace, Noise, Resampled, StudentT, Uniform

__all__ = ["Bernoulli", "Gaussian", "Laplace", "Noise", "Resampled", "StudentT", "Uniform"]
