"""What the machine gives: memory, files that appear whole, Ctrl-C, and the bar that a person sees."""
