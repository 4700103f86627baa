"""Random numbers: a generator per block, the two draws that everything is made of, and binomial counts."""
