# Everything starts here. Needs Python >= 3.11 and make; what else is needed is fetched or built once and cached.
PYTHON ?= python3
UV_VERSION := 0.13.8
BIN := .venv/bin
export PYTHONPATH := tests
READY := .venv/.ready
HARNESS := $(BIN)/python -m harness

.PHONY: demo test check derive bench reliability mutants control-plane e2e clean

demo: $(READY) ## The main job, end to end, on real parts. ONCE=1: clean up and exit. CLUSTER=kind: on kind.
	@$(HARNESS).demo $(if $(ONCE),--once) $(if $(CLUSTER),--cluster $(CLUSTER))

test: $(READY) ## Every test, on the same real control plane.
	@$(HARNESS).binaries
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

check: $(READY) ## Lint, layout, types, layers, derived files.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m edge_operator.derive --check

derive: $(READY) ## Write CRDs, chart parts, samples and reference pages anew from the kinds.
	$(BIN)/python -m edge_operator.derive

bench: $(READY) ## N=200 resources, LATENCY=50ms of the API, OUT=FILE.json.
	@$(HARNESS).bench $(if $(N),--count $(N)) $(if $(LATENCY),--latency $(LATENCY)) $(if $(OUT),--out $(OUT))

reliability: $(READY) ## Inject everything, count it, and write docs/reliability.md. EDGE_OPERATOR_SIZE=large, nightly: more of it.
	@$(HARNESS).reliability $(ARGS)

mutants: $(READY) ## Change engine/ one thing at a time and see that a test notices. COUNT=200 SEED=1: a sample; COUNT=0: all.
	@$(HARNESS).mutants $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

control-plane: $(READY) ## Leaves a control plane running and prints its kubeconfig.
	@$(HARNESS).control_plane

e2e: $(READY) ## The cluster tests on kind, with the image built, loaded and installed by Helm; needs docker or podman.
	@$(HARNESS).kind -- $(BIN)/python -m pytest -m cluster $(ARGS)

clean: ## Takes the virtual environment away; caches of built binaries stay.
	rm -rf .venv

$(READY): pyproject.toml uv.lock
	@command -v $(PYTHON) >/dev/null || { echo "Python >= 3.11 is needed: install python3, or name one with PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python >= 3.11 is needed; $(PYTHON) is $$($(PYTHON) --version). Name another with PYTHON=..."; exit 1; }
	@echo "Preparing the virtual environment .venv, once"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv sync --quiet --frozen --all-extras
	@touch $(READY)
