# On a fresh clone, `make demo` and `make test` need nothing but Python: each makes .venv where it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Releases to install: those of a file, or the newest where it is empty.
CONSTRAINTS ?= constraints.txt
STAMP := $(VENV)/installed
export HF_HUB_OFFLINE ?= 1
DEMO ?= runs/demo-$(shell date +%Y%m%d-%H%M%S)

.PHONY: help install demo test test-all test-fast test-gpu test-random coverage lint types docs check bench package extras clean

help:
	@echo "make demo       data, training, evaluation and export on synthetic stories, in a few minutes"
	@echo "make test       tests and doctests, in a few minutes"
	@echo "make test-all   also the tests of about five seconds or more, and whole fits in rounds or several processes"
	@echo "make test-fast  the quick tests"
	@echo "make test-gpu   the tests that need a GPU with CUDA"
	@echo "make test-random SEED=1  every test and doctest in an order that the seed decides"
	@echo "make coverage   the tests of make test, with the lines and branches of the package that none of them runs"
	@echo "make docs       documentation in site/; a warning is an error"
	@echo "make check      ruff, spelling, mypy, documentation and every test"
	@echo "make package    wheel and sdist in dist/, checked"
	@echo "make extras     each extra alone in a new environment, with its commands: EXTRAS='serve ray' for two of them"
	@echo "make bench      speed and memory against sentence-transformers: a table and runs/bench.json; needs a quiet machine"

install: $(STAMP)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(addprefix -c ,$(CONSTRAINTS)) -e '.[dev]'
	$(BIN)/pip install --quiet --no-deps 'fastcoref>=2.1.6,<3'    # its own list of packages asks for old releases
	@touch $@

demo: $(STAMP)
	$(BIN)/narrlit demo --out "$(DEMO)"

# Three files at a time, a thread each, for two cores: some tests wait for other processes.
ALL_TESTS = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --doctest-modules src/narrlit tests

test: $(STAMP)
	$(ALL_TESTS) -m 'not long'

test-all: $(STAMP)
	$(ALL_TESTS)

test-gpu: $(STAMP)
	NARRLIT_TEST_GPU=1 $(BIN)/pytest tests/test_gpu.py tests/models/test_packing.py

test-random: $(STAMP)
	$(ALL_TESTS) -p randomly $(if $(SEED),--randomly-seed=$(SEED))

coverage: $(STAMP)
	$(ALL_TESTS) -m 'not long' --cov --cov-report=term-missing --cov-report=xml

test-fast: $(STAMP)
	$(BIN)/pytest -m 'not slow and not long'

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(STAMP)
	$(BIN)/mypy --strict src benchmarks release

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check: lint types docs test-all

# make bench STORIES=stories.jsonl PARTS='embedding ranking'
bench: $(STAMP)
	$(BIN)/python benchmarks/bench.py $(PARTS) $(if $(STORIES),--stories "$(STORIES)")

package: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*

extras: package
	$(BIN)/python release/check_extras.py $(EXTRAS)

clean:
	rm -rf $(VENV) runs dist site .mypy_cache .ruff_cache .pytest_cache .coverage .coverage.* coverage.xml
