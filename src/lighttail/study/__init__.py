"""Many simulations from one file into one folder, which may be stopped and resumed (docs/studies.md)."""

from lighttail.study.file import Study, read_study
from lighttail.study.report import report_study
from lighttail.study.results import Results, load_study
from lighttail.study.run import Done, run_study

__all__ = ["Done", "Results", "Study", "load_study", "read_study", "report_study", "run_study"]
