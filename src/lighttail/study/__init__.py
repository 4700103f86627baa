"""Many simulations from one file into one folder, however often that is interrupted (docs/studies.md)."""

from lighttail.study.file import Study, read_study
from lighttail.study.run import Done, run_study

__all__ = ["Done", "Study", "read_study", "run_study"]
