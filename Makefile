# The two commands of the course are `make lab` and `make test`; both set up what they need.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin/python
BUILD = build
# Where readers tell what is wrong, such as https://github.com/OWNER/NAME/issues/new; empty: no link is drawn.
ISSUES_URL ?=
export ISSUES_URL
PYTEST = -m pytest -n auto --maxprocesses 4 --dist loadscope --no-loadscope-reorder $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help setup lab again teach hub test test-all quick test-oldest bench latency breakages doctor notebooks results site slides \
  locale zh release lint lock clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup:  ## Make the environment (.venv) from requirements.lock; costs nothing when it is there
	@$(PYTHON) -I course/setup/environment.py --venv $(VENV)

# LANGUAGE counts on the command line alone: many systems have a variable of this name.
IN = $(if $(filter command,$(origin LANGUAGE)),$(LANGUAGE))
lab: setup  ## Open the course: your working copy, in JupyterLab (LAB_FLAGS="--no-browser --port=9000"; LANGUAGE=zh)
	$(BIN) -m course.lab $(if $(IN),--language $(IN)) $(LAB_FLAGS)

again: setup  ## Begin one notebook anew, and keep yours beside it (ARGS=06, ARGS=ex06)
	@$(BIN) -m course.lab again $(ARGS)

teach: setup  ## Open the clone itself in JupyterLab, with the menus of nbgrader
	$(BIN) -m course.lab teach $(LAB_FLAGS)

hub: setup  ## Start a hub for a class on this machine (docs/instructor/hub.md)
	@$(BIN) -c "from tutorial_lib.data import load_smollm2; load_smollm2()"  # unpacked once, for everybody
	$(BIN) -m jupyterhub -f classroom/hub/jupyterhub_config.py

test: setup  ## Test what the course needs on this machine: library, notebooks, exercises (ARGS="-k doctor")
	$(BIN) $(PYTEST)

test-all: setup  ## Run every test: browser, site, slides, grading and documents, too
	$(BIN) $(PYTEST) tests tutorial_lib course classroom workshop notebooks

# The core: encodings, attention and model, the form of notebooks and files.
QUICK = tests/notebooks tutorial_lib/encodings $(patsubst %,tests/unit/test_%.py,encodings every_encoding relative \
  rotary attention model properties lesson explorers) $(patsubst %,tests/house/test_%.py,lint tree docs lock)
quick: setup  ## Run the core of the tests, in a minute (ARGS=tests/slides: that, too)
	$(BIN) $(PYTEST) $(QUICK)

# Left out: the peers, which have to be new, and what compares the environment with the lock: the doctor, notebook 00.
# torch stays at the lock's version, because on Linux an older one brings its CUDA libraries.
EXTRAS = experiments course models test cluster teach hub site dev
test-oldest: setup  ## Run the tests on the oldest packages that pyproject.toml allows (TORCH=2.6.0: torch too)
	mkdir -p $(BUILD)
	sed '$(if $(TORCH),s/"torch==.*"/"torch==$(TORCH)"/)' pyproject.toml > $(BUILD)/pyproject.toml
	$(BIN) -m uv pip compile --directory $(BUILD) pyproject.toml --quiet --upgrade --output-file oldest.txt \
	  --resolution lowest-direct $(EXTRAS:%=--extra %) --annotation-style line
	@$(BIN) -I course/setup/environment.py --venv .venv-oldest --lock $(BUILD)/oldest.txt
	@echo "With $$(grep -o '^torch==[^ ]*' $(BUILD)/oldest.txt), and the oldest of everything else."
	.venv-oldest/bin/python $(PYTEST) --ignore tests/parity --ignore tests/lab \
	  --ignore notebooks/00_start_here.ipynb

bench: setup  ## Measure speed and memory beside public implementations (ARGS="rotary --rounds 30")
	$(BIN) -m workshop.benchmarks $(ARGS)

latency: setup  ## Measure the explorers in a browser, from key or drag to picture, beside ipympl and matplotlib
	$(BIN) -m workshop.benchmarks.latency $(ARGS)

breakages: setup  ## Break one line at a time, in a copy, and see which test turns red (ARGS=rotary)
	$(BIN) -m workshop.breakages $(ARGS)

doctor: setup  ## Check the environment, and say what mends it
	@$(BIN) -m course.doctor

notebooks: setup  ## Run all notebooks again and store their outputs
	$(BIN) -m workshop.authoring build

results: setup  ## Measure all experiments in full, one process for each core, and write docs/results.md
	$(BIN) -m course.experiments run all --preset full --scheduler local $(ARGS)
	$(BIN) -m course.experiments results

site: setup  ## Make the course as a web site in build/site, in all its languages (STUDENTS=1: no answers; SITE_URL=…)
	$(BIN) workshop/site/make.py $(BUILD) $(ARGS)

slides: setup  ## Make slides from the notebooks, in build/slides (ARGS=06 for one deck; LANGUAGE=zh after `make zh`)
	$(BIN) -m workshop.slides $(if $(IN),--language $(IN)) $(ARGS)

release: setup  ## Pack wheel, site, slides and the learner's folder from a clean clone (ARGS="--only zip,sums")
	$(BIN) -m workshop.release $(ARGS)

locale: setup  ## Bring the translations up to date with the English, and check them (LANGUAGE=zh; ARGS=03 begins 03)
	$(BIN) -m workshop.translation update $(or $(IN),zh) $(ARGS)
	$(BIN) -m workshop.translation check $(or $(IN),zh)

zh: setup  ## Make the course in Chinese, in build/zh, and its slides; `make lab LANGUAGE=zh` opens it (ARGS=01: that alone)
	$(BIN) -m workshop.translation build zh $(ARGS)
	$(BIN) -m workshop.slides --language zh $(filter-out ex%,$(ARGS))

lint: setup  ## Look for mistakes in the code and its types
	$(BIN) -m ruff check
	$(BIN) -m ruff format --check
	$(BIN) -m mypy

lock: setup  ## Pin what pyproject.toml asks for (ARGS=--upgrade: the newest of everything)
	$(BIN) -m uv pip compile pyproject.toml --quiet --output-file requirements.lock $(ARGS) \
	  --all-extras --universal --python-version 3.11 --fork-strategy fewest \
	  --annotation-style line --custom-compile-command \
	  "make lock   (how it is installed: course/setup/environment.py; torch first, then --no-deps)"

clean:  ## Remove the environment and everything that can be made again
	rm -rf $(VENV) $(VENV).log .venv-oldest .venv-oldest.log $(BUILD) dist *.egg-info .pytest_cache .ruff_cache .mypy_cache
	find . -path './mine*' -prune -o -name __pycache__ -prune -exec rm -rf {} + -o -name .ipynb_checkpoints -prune -exec rm -rf {} +
