# Every target does its own set-up from nothing. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# A service starts in two thirds of the processor time when its modules are compiled once and kept.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: catalogue site dist oidc-provider screenshots clients typescript chart fuzz-requests faults help setup demo serve test fast fuzz lint lock bench sdk chromium clean

help:  ## List the targets
	@grep -E '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Vettance needs Python 3.11 or newer"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the locked dependencies (once)…"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

setup: $(READY)  ## Make the virtual environment with the locked dependencies

demo: $(READY)  ## Stream labelled traffic through a running service; DATA=file.parquet for your own
	$(BIN)/vettance demo $(if $(DATA),--input "$(DATA)") $(DEMO_ARGS)

serve: $(READY)  ## Run the service on http://127.0.0.1:8080, its data in ./vettance-data
	$(BIN)/vettance serve $(SERVE_ARGS)

bench: $(READY)  ## The figures of docs/benchmarks.md that need no more than a few minutes
	$(BIN)/python bench evaluate $(BENCH_ARGS)
	$(BIN)/python bench grown_stores $(GROWN_ARGS)

bench-%: $(READY)  ## Any benchmark by its name (bench/README.md lists them): make bench-soak BENCH_ARGS="--minutes 5"
	$(BIN)/python bench $* $(BENCH_ARGS)

faults: $(READY)  ## Break the service in every way, for about an hour, and look for what was lost
	$(BIN)/python bench simulate_webhooks --schedules 2000
	$(BIN)/python bench kill --rounds 25
	$(BIN)/python bench faults --rounds 100 $(FAULTS_ARGS)
	$(BIN)/python bench faults --stage servers --rounds 100 $(FAULTS_ARGS)

lint: $(READY)  ## Formatting, lints, types, import contracts
	$(BIN)/ruff format --check src tests bench clients release website
	$(BIN)/ruff check src tests bench clients release website
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

fast: $(READY)  ## The tests that take about two minutes together
	$(BIN)/pytest $(AT_ONCE) -m 'not slow'

fuzz: $(READY)  ## Fuzz by new examples (SEED=n for known ones): the service by its OpenAPI document, then all properties
	@seed=$(or $(SEED),$$RANDOM$$RANDOM); echo "seed $$seed"; \
	  FUZZ_SEED=$$seed FUZZ_TIMES=$(or $(TIMES),5) $(BIN)/pytest tests/web/test_schemathesis.py \
	  && FUZZ_SEED=$$seed $(BIN)/python tests/servers.py $(BIN)/pytest $(AT_ONCE) --hypothesis-seed=$$seed \
	    $$(grep -rl hypothesis tests --include='test_*.py')

fuzz-requests: $(READY)  ## Send 100,000 odd requests to each store with restarts between (FUZZ_ARGS="--count 5000 --seed 7")
	$(BIN)/python bench fuzz_requests --store sqlite $(FUZZ_ARGS)
	$(BIN)/python tests/servers.py $(BIN)/python bench fuzz_requests --store postgres $(FUZZ_ARGS)

# Helm's own library and the schemas of Kubernetes: 350 MB that nothing else needs.
chart: $(READY)  ## Render the Helm chart as Helm does, and hold it against the schemas of Kubernetes
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check helm-python-sdk==0.2.2 kubernetes-validate==1.37.0
	$(BIN)/pytest -rs tests/deploy/test_chart.py

# Debian's Chromium drives the browser tests; where it cannot be had, they are left out and say so at the end.
chromium:
	@command -v chromium >/dev/null || test -x "$(CHROMIUM)" || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && echo "Installing chromium for the browser tests (once)…" \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
	  || echo "WARNING: no chromium here, so the browser tests will be left out"

catalogue: $(READY)  ## Collect what the console says for translators, into src/vettance/console/locale/en.po
	$(BIN)/python -m vettance.console.collect_words

screenshots: $(READY) chromium  ## Take the pictures of docs/console.md anew (BENCH_ARGS="--every FOLDER": every page, two widths)
	$(BIN)/python bench screenshots $(BENCH_ARGS)

clients: $(READY)  ## Write both clients' types and methods anew from the service's OpenAPI document
	$(BIN)/python -m clients.generate

# The TypeScript client, built for its tests. Node is needed for this only; without it those tests are left out.
TYPESCRIPT := clients/typescript
typescript:
	@command -v npm >/dev/null || { echo "WARNING: no Node here, so the tests of the TypeScript client will be left out"; exit 0; }; \
	  if test $(TYPESCRIPT)/package-lock.json -nt $(TYPESCRIPT)/node_modules/.package-lock.json; then \
	    echo "Installing what builds the TypeScript client (once)…"; npm --prefix $(TYPESCRIPT) ci --silent --no-audit --no-fund; fi \
	  && npm --prefix $(TYPESCRIPT) run --silent build

# The provider that the tests of signing in by OpenID Connect use; without Node they are left out.
OIDC_PROVIDER := tests/people/oidc_provider
oidc-provider:
	@command -v npm >/dev/null || { echo "WARNING: no Node here, so the tests of OpenID Connect will be left out"; exit 0; }; \
	  test -e $(OIDC_PROVIDER)/node_modules || npm --prefix $(OIDC_PROVIDER) ci --silent --no-audit --no-fund

sdk:  ## Build the browser SDK into the package (needs Node; running the service does not)
	cd sdk/web && npm ci --no-audit --no-fund && npm run check && npm run build

# What answers the same on both stores is tested on both.
ON_BOTH := tests/lists $(addprefix tests/retention/test_tenant_deletion.py::test_,a_tenant_is_deleted_beside_a_running_server \
  nothing_of_a_deleted_tenant_stays_in_redis_or_in_the_folder) tests/history/test_history_api.py tests/jobs tests/feedback \
  tests/replays/test_idempotency_api.py tests/webhooks/test_api.py tests/decisions/test_evaluate_api.py \
  $(addprefix tests/exchange/test_exchange.py::test_,what_was_exported_can_be_imported \
  importing_a_file_again_takes_nothing_twice an_import_that_was_killed_goes_on_where_it_stopped) $(addprefix tests/retention/test_retention.py::test_,retention_runs_from_the_command_line \
  an_erased_customer_is_named_nowhere_and_counted_as_before) \
  $(addprefix tests/websdk/test_,collect_api.py signals_api.py tokens_api.py) \
  $(addprefix tests/aml/test_,events_api.py cases_api.py screen_api.py)

# Files of tests go to several processes at once; one file's tests share their servers, and stay together. Many wait
# for real clocks, so there are more than two cores have: TEST_JOBS=4 takes 20 minutes on two.
TEST_JOBS ?= 4
AT_ONCE := -n $(TEST_JOBS) --dist loadfile

# What comes first does not wait for one another: mypy keeps one core busy for a minute, the others mostly download.
test: $(READY)  ## Everything CI runs
	@$(MAKE) --no-print-directory -j 4 lint chromium typescript oidc-provider
	$(BIN)/python tests/servers.py sh -c '$(BIN)/python tests/run_suite.py $(AT_ONCE) && { test -z "$$VETTANCE_TEST_POSTGRES" \
	  || VETTANCE_TEST_ENGINE=postgres $(BIN)/python tests/run_suite.py $(AT_ONCE) $(ON_BOTH) \
	  --deselect tests/webhooks/test_api.py::test_a_stop_takes_no_longer_than_promised_though_a_receiver_hangs; }'

site: $(READY)  ## Build the documentation as pages that work offline, into site/
	$(BIN)/python -m website $(SITE_ARGS)

dist: $(READY)  ## Build the packages of a release into dist/, try them in clean environments, describe and check them
	$(BIN)/python -m release $(DIST_ARGS)

lock:  ## Resolve the dependencies again and write the lock files (needs uv)
	uv pip compile --quiet --upgrade --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --python-version 3.11 pyproject.toml --all-extras -o requirements.lock
	uv pip compile --quiet --upgrade --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --python-version 3.11 pyproject.toml --all-extras --group dev \
	  -o requirements-dev.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --python-version 3.11 --group build -c requirements-dev.lock \
	  -o requirements-build.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --python-version 3.11 --group release -o requirements-release.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --python-version 3.11 clients/python/pyproject.toml --all-extras \
	  -o clients/python/requirements.lock

clean:  ## Remove what the targets made
	rm -rf .venv demo-data bench-data fault-data fuzz-data vettance-data .mypy_cache .ruff_cache .pytest_cache
