"""Simulation on an NVIDIA GPU: one thread per path, the formulas of the CPU, and laws tallied on the device.

Importing this package imports neither numba nor a driver. docs/gpu.md is its page.
"""
