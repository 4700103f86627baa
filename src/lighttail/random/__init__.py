"""Random numbers: one generator per block, the two basic draws, and binomial counts."""
