"""From a policy and a problem to an outcome: prepare, play blocks of paths on a pool, keep the result."""
