# lowwater: everything a developer runs. `make` alone explains itself.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup test deep soak demo docs claims bench format clean

help: ## Show this list
	@echo "lowwater: continuous queries over streams that arrive out of order"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "Needs python3 (3.11 or newer, with venv) and make; the rest goes into $(VENV)."

setup: $(STAMP) ## Make .venv with everything in it (again only if the dependencies changed)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "lowwater needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "== setup: installing into $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check \
		-c constraints.txt -e '.[spark,claims,dashboard,docs,dev]'
	@touch $(STAMP)

test: setup ## Check style, types and layers, then run all tests and documentation examples
	@echo "== style: ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@echo "== types: mypy"
	@$(BIN)/mypy
	@echo "== layers: import-linter"
	@report=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$report"; exit 1; }; echo "$$report" | tail -n 1
	@echo "== tests: pytest"
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

SEED ?= $(shell printf '%d' 0x$$(git rev-parse --short=7 HEAD 2> /dev/null || echo 1))

deep: setup ## Run the longer tests: more cases on Spark, properties on new examples (make deep SEED=7)
	@echo "== deep: properties on examples drawn from seed $(SEED)"
	@LOWWATER_HYPOTHESIS=deep $(BIN)/python -m pytest -n 2 --dist loadgroup \
		--hypothesis-seed=$(SEED) tests/properties
	@echo "== deep: tests that take long, and an eighth of the cases that rotate, on Spark too"
	@LOWWATER_FULL=1 LOWWATER_ONE_IN=8 LOWWATER_SEED=$(SEED) $(BIN)/python -m pytest -n 2 --dist loadgroup \
		tests/conformance tests/spark tests/test_examples.py tests/unit/joins/test_oblivious_losses.py tests/unit/engine/test_memory_budget.py \
		tests/unit/joins/test_oblivious_restarts.py tests/unit/updates/test_forgetting.py

soak: setup ## Kill runs on Spark again and again (make soak ROUNDS=10)
	@LOWWATER_SOAK=$(or $(ROUNDS),10) $(BIN)/python -m pytest tests/spark/test_kills.py -v

demo: setup ## Three packet streams on Spark, in real time, next to Spark's own watermarks
	@$(BIN)/python examples/packets_on_spark.py

docs: setup ## Build the guide as a site, from docs/
	@$(BIN)/python -m sphinx -b html -n -W --keep-going -q docs build/site
	@echo "open build/site/index.html"

claims: setup ## Measure again what the papers claim (make claims ARGS=--quick for less)
	@$(BIN)/lowwater claims $(ARGS)

bench: setup ## Run the benchmarks (make bench ARGS="NAME ...")
	@$(BIN)/lowwater bench $(ARGS)

format: setup ## Format the code and fix what can be fixed by itself
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format .

clean: ## Remove .venv, caches and outputs
	@rm -rf $(VENV) build dist claims-out *.egg-info src/*.egg-info
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
