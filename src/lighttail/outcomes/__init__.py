"""What a simulation leaves: its paths or the law of its paths, and estimates with intervals from either."""
