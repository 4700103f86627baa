"""The machine: its memory, files that are written whole or not at all, Ctrl-C, and the progress bar."""
