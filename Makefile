# The commands of a developer; `make help` lists them. Each sets up what it needs (tools/setup.py).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

PYTHON3 ?= python3
BIN := .venv/bin
# Two processes are what the smallest machine we promise has; more cores than that are left to the person in front of it.
WORKERS ?= 2
FAST := not engine and not cluster and not machine and not fuzz and not versions
# Containers need root. What that would leave in the checkout would belong to root, so caches and bytecode stay off.
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo --preserve-env=CI,HOME,PATH,XDG_CACHE_HOME,DRAHT_CACHE env PYTHONDONTWRITEBYTECODE=1)

# The cluster of `make cluster-up`.
NODES ?= 2
# A machine profile whose devices the nodes serve; nothing: none.
DEVICES ?=
GATES ?= default
SIMULATED ?= 0
VERSION ?= 1.37

.PHONY: help demo test test-versions check lint types bench fuzz constraints clean \
	cluster-up cluster-down cluster-shell setup-%

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup-%:
	@$(PYTHON3) tools/setup.py $*

demo: setup-demo ## twelve use cases of GPUs on Kubernetes, on simulated machines, in real containers
	@$(AS_ROOT) $(BIN)/python tools/demo.py

test: setup-test check ## everything: check, real containers, a real Kubernetes, a fresh machine
	$(AS_ROOT) $(BIN)/pytest -q -p no:cacheprovider -m "(engine or cluster or machine) and not fuzz and not versions" \
		-o faulthandler_timeout=0

test-versions: setup-versions ## the same claims against an older Kubernetes
	$(AS_ROOT) $(BIN)/pytest -q -p no:cacheprovider -m versions -o faulthandler_timeout=0

cluster-up: $(if $(filter 1.33,$(VERSION)),setup-versions,setup-cluster) ## a real Kubernetes on this machine: NODES=2 DEVICES=dgx-h100 GATES=default|alpha SIMULATED=0 VERSION=1.37
	@$(AS_ROOT) $(BIN)/python tests/cluster up --nodes $(NODES) --gates $(GATES) --simulated $(SIMULATED) \
		--version $(VERSION) $(if $(DEVICES),--devices $(DEVICES))

cluster-shell: ## a shell in which kubectl talks to that Kubernetes
	@$(AS_ROOT) $(BIN)/python tests/cluster shell

cluster-down: ## remove that Kubernetes
	@$(AS_ROOT) $(BIN)/python tests/cluster down

check: setup-check lint ## what to run all day: lint, types, unit, property and short differential tests
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "$(FAST)"

lint: setup-lint ## style, types, layers, and the rules for texts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/repository/test_texts.py tests/repository/test_claims.py

bench: setup-bench ## ratios to peers, measured in this run
	$(BIN)/python tools/bench.py

fuzz: setup-fuzz ## long differential runs against upstream; DRAHT_FUZZ_CASES sets their size
	DRAHT_FUZZ_CASES=$${DRAHT_FUZZ_CASES:-100000} $(BIN)/pytest -q -m fuzz --timeout 0 -o faulthandler_timeout=0 --durations 0

constraints: setup-lint ## pin the newest versions of the development packages
	@$(PYTHON3) tools/pin.py

clean: ## remove the virtual environment, caches and what was built
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
	@$(PYTHON3) tools/buildcache.py clean
