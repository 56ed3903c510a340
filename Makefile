# `make demo`: each paper's headline notebooks, small; `make figures`: all notebooks in full; `make test`: all tests.
# All install into .venv first; the installation is done once. `TORCH_INDEX=<address>` takes PyTorch from there,
# for instance its CPU builds.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --quiet -c constraints.txt

# Visual-RAG's first; last the one that compares all papers' answers.
in_order = params/visual_rag/$(1).yaml $(filter-out params/visual_rag/% params/across/%,$(sort $(wildcard params/*/$(1).yaml))) params/across/$(1).yaml

.PHONY: demo figures test quick suite lint lab

demo: $(READY)  # figures go into runs/figures-small
	@$(call run_and_report,$(call in_order,quick))

figures: $(READY)  # goes on where it was stopped
	@$(call run_and_report,$(call in_order,demo))

run_and_report = $(BIN)/vrag run $(1); status=$$?; $(BIN)/vrag report $(1); exit $$status

test: $(READY)
	@$(MAKE) --no-print-directory --jobs=2 lint suite

quick: $(READY)  # some two minutes
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not browser and not notebooks"

suite: $(READY)
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder --durations 20 --durations-min 8

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/lines.py vrag_kit

lab: $(READY)  # in a container one is root, which JupyterLab wants to be told
	$(BIN)/jupyter lab notebooks --LabApp.default_url=/lab/tree/00_tour.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "error: $(PYTHON) is older than Python 3.11; try 'make PYTHON=python3.12 $(MAKECMDGOALS)'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "installing the tested versions into $(VENV): some minutes, about 6 GB on Linux"
	$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) torch torchvision)
	$(PIP) -e ".[notebooks,tests]"
	@touch $(READY)
