# The two commands of the README: `make serve` and `make test`. Each sets up all it needs.
PYTHON ?= python3
VENV ?= .venv
SITE ?= sites/local.toml
PYTEST_ARGS ?=
# one worker more than cores: the tests on the four nodes wait more than they compute
WORKERS ?= $(shell expr $$(nproc) + 1)
BESIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# one word for the shell, whatever is in it
quoted = '$(subst ','\'',$(1))'
BIN = $(VENV)/bin
TETRASPARK = $(call quoted,$(BIN)/tetraspark)
ENVIRONMENT = $(PYTHON) scripts/environment.py --venv $(call quoted,$(VENV))

.PHONY: serve stop status test lint environment

serve: environment
	@$(TETRASPARK) serve --site $(call quoted,$(SITE))

stop: environment
	@$(TETRASPARK) stop --site $(call quoted,$(SITE))

status: environment
	@$(TETRASPARK) status --site $(call quoted,$(SITE))

environment:
	@$(ENVIRONMENT)

lint:
	@$(ENVIRONMENT) --test
	@$(call quoted,$(BIN)/ruff) check
	@$(call quoted,$(BIN)/ruff) format --check
	@$(call quoted,$(BIN)/mypy)

# First the tests that can share the machine, side by side; then those that need it alone.
# 5 is pytest's word for "none of these".
test: lint
	@$(call quoted,$(BIN)/python) -m pytest $(BESIDE) -m "not alone" $(PYTEST_ARGS); \
	shared=$$?; [ $$shared -ne 5 ] || shared=0; \
	$(call quoted,$(BIN)/python) -m pytest -m alone $(PYTEST_ARGS); \
	alone=$$?; [ $$alone -ne 5 ] || alone=0; \
	[ $$shared -eq 0 ] && [ $$alone -eq 0 ]
