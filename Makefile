# Two commands: `make demo` draws, retrieves, asks, judges, fills figures/ and writes a report; `make test` runs all tests.
# Both install everything into .venv first; the installation is done once.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Visual-RAG's first; last the one that puts all answers side by side.
FIRST := params/visual_rag/demo.yaml
LAST := params/across/demo.yaml
DEMOS := $(FIRST) $(filter-out $(FIRST) $(LAST),$(sort $(wildcard params/*/demo.yaml))) $(LAST)

.PHONY: demo test suite lint lab

demo: $(READY)
	@$(BIN)/vrag run $(DEMOS); status=$$?; $(BIN)/vrag report $(DEMOS); exit $$status

test: $(READY)
	@$(MAKE) --no-print-directory --jobs=2 lint suite

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
	@echo "installing the tested versions into $(VENV): some minutes, about 5 GB on Linux"
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --quiet -c constraints.txt -e ".[notebooks,tests]"
	@touch $(READY)
