"""The numbers that the paper prints: the mean cumulative reward of 5,000 paths (Tables mean-2, mean-4)."""

from __future__ import annotations

PATHS = 5000  # paths per published mean
KAPPAS = (0.1, 0.2, 0.4, 0.8)

# {number of arms: {policy: mean for each kappa}}
MEANS: dict[int, dict[str, tuple[float, float, float, float]]] = {
    2: {
        "SE": (311.60, 336.46, 375.53, 374.69),
        "UCB": (349.68, 359.68, 377.17, 390.23),
        "TS": (351.00, 360.71, 377.94, 390.32),
        "SE_new": (388.16, 376.69, 354.25, 309.58),
        "UCB_new": (393.27, 387.48, 377.72, 360.69),
        "UCB_any": (391.66, 387.60, 377.37, 359.59),
    },
    4: {
        "SE": (293.11, 311.74, 351.81, 316.64),
        "UCB": (339.41, 348.52, 360.26, 369.25),
        "TS": (341.05, 349.86, 359.82, 365.26),
        "SE_new": (361.93, 334.18, 283.69, 251.52),
        "UCB_new": (371.10, 361.13, 339.29, 309.71),
        "UCB_any": (368.86, 359.87, 335.68, 305.88),
    },
}
