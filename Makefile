# The two commands of the README: `make serve` and `make test`. Each sets up all it needs.
PYTHON ?= python3
VENV ?= .venv
SITE ?= sites/local.toml
PYTEST_ARGS ?=

TETRASPARK = $(VENV)/bin/tetraspark

.PHONY: serve stop status test lint environment

serve: environment
	@$(TETRASPARK) serve --site $(SITE)

stop: environment
	@$(TETRASPARK) stop --site $(SITE)

status: environment
	@$(TETRASPARK) status --site $(SITE)

environment:
	@$(PYTHON) scripts/environment.py --venv $(VENV)

lint:
	@$(PYTHON) scripts/environment.py --venv $(VENV) --test
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/mypy

test: lint
	@$(VENV)/bin/python -m pytest $(PYTEST_ARGS)
