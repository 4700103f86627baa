"""What a simulation leaves: paths or their law, and estimates with intervals made from them."""
