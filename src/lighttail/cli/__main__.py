"""`python -m lighttail.cli`."""

from lighttail.cli import main

main()
