# The two commands of the README: `make serve` and `make test`. Each sets up all it needs.
PYTHON ?= python3
VENV ?= .venv
SITE ?= sites/local.toml
PYTEST_ARGS ?=
SOAK_ARGS ?= --streams 4 --max-tokens 64 --prefill 1k

# one word for the shell, whatever is in it
quoted = '$(subst ','\'',$(1))'
BIN = $(VENV)/bin
TETRASPARK = $(call quoted,$(BIN)/tetraspark)
ENVIRONMENT = $(PYTHON) -m scripts.environment --venv $(call quoted,$(VENV))

.PHONY: serve stop status test lint environment audit soak

serve: environment
	@$(TETRASPARK) serve --site $(call quoted,$(SITE))

stop: environment
	@$(TETRASPARK) stop --site $(call quoted,$(SITE))

status: environment
	@$(TETRASPARK) status --site $(call quoted,$(SITE))

environment:
	@$(ENVIRONMENT)

# An hour on the line that is being served; docs/operations.md has what it says.
soak: environment
	@$(TETRASPARK) soak --site $(call quoted,$(SITE)) --hours 1 $(SOAK_ARGS)

# Needs the network: advisories about every pin. The tests check the rest without it.
audit:
	@$(ENVIRONMENT) --test
	@$(call quoted,$(BIN)/python) scripts/audit.py --advisories

lint:
	@$(ENVIRONMENT) --test
	@$(call quoted,$(BIN)/ruff) check
	@$(call quoted,$(BIN)/ruff) format --check
	@$(call quoted,$(BIN)/mypy)

test: lint
	@$(call quoted,$(BIN)/python) scripts/run_tests.py $(PYTEST_ARGS)
