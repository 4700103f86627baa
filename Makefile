# Two commands do everything: `make compare` and `make test`. Both set up `.venv` on first use.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help compare paper quick test test-slow check bench bench-live bench-peers picture frontier screenshots layers delays guard-rails calibration dist lowest clean
.DEFAULT_GOAL := help

help:
	@echo "make compare      run the main job on the paper's problem and write a report"
	@echo "make paper        reproduce every table and figure of the paper"
	@echo "make quick        ruff, mypy and the tests to run while you edit, in under a minute"
	@echo "make test         run every check and test but the slow ones"
	@echo "make test-slow    run the slow tests: statistics and tails that take many paths"
	@echo "make check        ruff and mypy alone"
	@echo "make docs         build the documentation site into build/docs"
	@echo "make bench        cost of a pull in NumPy draws, and start-up times"
	@echo "make bench-live   the service: events per commit, latency in fsyncs, HTTP, restart, two servers"
	@echo "make dist         build the wheel and the sdist, and try the wheel on every supported Python"
	@echo "make lowest       the quick tests with the lowest supported version of every dependency"
	@echo "make bench-peers  the same UCB1 in other libraries, and durable asks and tells in Optuna, side by side"

.venv/ready: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'lighttail needs Python 3.11 or later; set PYTHON=')"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

compare: .venv/ready
	$(BIN)/lighttail compare --out reports/compare

paper: .venv/ready
	$(BIN)/lighttail paper --out reports/paper

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Every layer once, without the statistics that take many paths. The first run compiles, which takes longer.
QUICK := imports names conformance formulas words problems noises bounds plain_rules oracle counts tally outcome statistics \
	online online_state live_parts http dashboard study_file digest

quick: check
	$(BIN)/pytest -n auto --dist worksteal -m "not slow" $(QUICK:%=tests/test_%.py)

# A worker keeps to neighbouring tests (worksteal), which share kernels and fixtures.
test: check
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest tests/test_oracle.py
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest tests/test_linear_oracle.py -k decides
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/pytest -n auto tests/test_gpu.py tests/test_gpu_rules.py

test-slow: .venv/ready
	$(BIN)/pytest -n auto --dist worksteal -m slow

bench: .venv/ready
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/skip.py
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/streaming.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/paper.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/forecast.py

bench-live: .venv/ready
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/live_forecast.py

# In an environment of its own: what the others need must not decide what lighttail is tested with.
bench-peers: .venv-peers/ready
	.venv-peers/bin/python benchmarks/peers.py
	.venv-peers/bin/python benchmarks/live_peers.py

.venv-peers/ready: pyproject.toml benchmarks/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --editable ".[serve]" --requirement benchmarks/peers.txt
	touch $@

# Warnings are errors, links to names without a target too. Nothing is kept from an earlier build.
.PHONY: docs
docs: .venv/ready
	$(BIN)/sphinx-build -q -E -W --keep-going --nitpicky -c docs/site docs build/docs
	@echo "The site is build/docs/index.html"

picture: .venv/ready
	$(BIN)/python docs/picture.py

frontier: .venv/ready
	$(BIN)/python docs/frontier.py

screenshots: .venv/ready
	$(BIN)/python docs/screenshots.py

layers: .venv/ready
	$(BIN)/python docs/layers.py

guard-rails: .venv/ready
	$(BIN)/python docs/guard_rails.py

calibration: .venv/ready
	$(BIN)/python docs/calibration.py

delays: .venv/ready
	$(BIN)/python docs/delays.py

# docs/releasing.md says when.
dist: .venv-release/ready
	.venv-release/bin/python release/dist.py

# The compiled kernels of the lowest versions stay in the environment.
lowest: .venv-release/ready
	.venv-release/bin/uv venv --quiet --clear --python $(PYTHON) .venv-lowest
	.venv-release/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct ".[frames,cluster,studies,serve]"
	.venv-release/bin/uv pip install --quiet --python .venv-lowest pytest pytest-xdist hypothesis httpx
	.venv-release/bin/uv pip list --python .venv-lowest
	.venv-lowest/bin/python -m pytest -n auto --dist worksteal -m "not slow" $(QUICK:%=tests/test_%.py)

.venv-release/ready: pyproject.toml
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-release/bin/python -m pip install --quiet --group release
	touch $@

clean:
	rm -rf .venv .venv-lowest .venv-peers .venv-release build dist reports
