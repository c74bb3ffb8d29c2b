# Everything starts from here: `make demo` and `make test` need nothing but Python >= 3.11 and make.
# The first run of any target creates .venv; `make` alone lists the targets.

PYTHON ?=
PY     := .venv/bin/python
GATE   := .venv/bin/tidegate
READY  := .venv/.ready
PYTEST := $(PY) -m pytest

# A cache that is not written is work that every process of every run does again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-1 test-2 test-3 test-4 test-all check lint types contracts casebook recall \
        task1 task2-downstream task2-gateway task3-provider task3-gateway task4-providers task4-gateway \
        docs docs-check bench proof foreign conformance lock clean

help:               ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up -------------------------------------------------------------------------------------

setup: $(READY)     ## virtual environment with tidegate and the development tools

# `venv` and `ensurepip` are checked too: some distributions ship Python without them.
$(READY): pyproject.toml
	@set -e; found=; \
	for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	  then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "tidegate needs Python 3.11 or newer with the venv module (on Debian: apt-get install python3-venv)." >&2; \
	  echo "Looked for: $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11." >&2; \
	  echo "Name another one with: make setup PYTHON=/path/to/python" >&2; exit 1; \
	fi; \
	exec $$found .ci/setup.py $@

# --- run ----------------------------------------------------------------------------------------

demo: $(READY)      ## the gateway and its demo world: three scenes, then it stays up
	@$(GATE) demo

task1: $(READY)     ## MCP server of strict tools on stdin/stdout
	@$(GATE) mcp serve

task2-downstream: $(READY)  ## MCP backend on :9001
	@$(GATE) demo mcp-backend --port 9001

task2-gateway: $(READY)     ## MCP security gateway on :9000
	@$(GATE) serve --config examples/mcp-gateway.yaml --port 9000

task3-provider: $(READY)    ## model provider that leaks personal data, on :9101
	@$(GATE) demo leaky-provider --port 9101

task3-gateway: $(READY)     ## redacting gateway on :9100
	@$(GATE) serve --config examples/guardrail.yaml --port 9100

task4-providers: $(READY)   ## primary and backup provider on :9201
	@$(GATE) demo providers --port 9201

task4-gateway: $(READY)     ## limits and failover on :9200
	@$(GATE) serve --config examples/router.yaml --port 9200

# --- tests --------------------------------------------------------------------------------------

# The paths of one pillar. tests/acceptance and tests/seed show that each of them runs something.
PILLAR_1 := tests/unit/tools tests/unit/demo tests/conformance tests/wire/test_task1_stdio.py \
            $(wildcard tests/wire/test_tool_server*.py) $(wildcard tests/wire/test_support*.py)
PILLAR_2 := tests/unit/jsonrpc tests/unit/mcp $(wildcard tests/app/test_tool_traffic*.py) $(wildcard tests/app/test_tool_streams*.py) \
            tests/wire/test_gateway_mcp.py tests/wire/test_tool_traffic_clients.py tests/wire/test_tool_streams_clients.py \
            tests/wire/test_mcp_backend_clients.py tests/seed/test_task2_mcp_gateway.py
PILLAR_3 := tests/unit/redaction tests/unit/wire_formats tests/unit/gateway/test_masking.py \
            tests/unit/gateway/test_pipeline.py tests/unit/cli/test_redact.py tests/wire/test_redact_pipe.py \
            tests/seed/test_task3_guardrail.py
PILLAR_4 := tests/unit/limits tests/contract/ledger tests/unit/routing tests/unit/providers \
            $(wildcard tests/app/test_chat*.py) $(wildcard tests/wire/test_ledger*.py) tests/seed/test_task4_router.py

test: $(READY)      ## the fast tier: under 90 s on two cores
	@$(PYTEST) -n 2 -m "not full and not proof"

test-1: $(READY)    ## tests of the strict MCP server
	@$(PYTEST) -n 2 -m "not full and not proof" $(PILLAR_1)
test-2: $(READY)    ## tests of the MCP gateway
	@$(PYTEST) -n 2 -m "not full and not proof" $(PILLAR_2)
test-3: $(READY)    ## tests of the redaction
	@$(PYTEST) -n 2 -m "not full and not proof" $(PILLAR_3)
test-4: $(READY)    ## tests of limits and failover
	@$(PYTEST) -n 2 -m "not full and not proof" $(PILLAR_4)

lint: $(READY)
	@$(PY) -m ruff format --check src tests bench
	@$(PY) -m ruff check src tests bench
types: $(READY)
	@$(PY) -m mypy
contracts: $(READY)
	@.venv/bin/lint-imports

check: lint types contracts docs-check test    ## format, lint, types, import contracts, fast tests

# The case files lie in tests/data/cases; known failures are listed beside them and may only shrink.
casebook: $(READY)
	@$(PY) -m tests.casebook $(sort $(wildcard tests/data/cases/*.jsonl))
	@$(PY) -m tests.casebook --profile spec $(sort $(wildcard tests/data/cases/*-p1-*.jsonl))

recall: $(READY)    ## how much of labeled text is found, by kind, and what is found by mistake
	@$(PY) -m tests.recall

# Suites of other people, in an environment of their own; see tests/foreign/README.md.
FOREIGN := .venv/foreign/.ready
$(FOREIGN): tests/foreign/requirements.txt | $(READY)
	@$(PY) -m venv .venv/foreign
	@.venv/foreign/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@
foreign: $(FOREIGN)     ## chunk-invariance, pii-leak-benchmark and canarywire against this gateway
	@$(PY) -m tests.foreign

# The MCP conformance harness, the inspector and the Node they need, from npm; see tests/conformance/README.md.
CONFORMANCE := .venv/conformance/.ready
$(CONFORMANCE): tests/conformance/package.json tests/conformance/package-lock.json | $(READY)
	@command -v npm >/dev/null || { \
	  echo "make conformance needs npm (any version; the Node that runs the harness is installed by it)." >&2; \
	  echo "Nothing was checked. On Debian: apt-get install npm" >&2; exit 1; }
	@mkdir -p $(@D)
	@cp tests/conformance/package.json tests/conformance/package-lock.json $(@D)/
	@cd $(@D) && npm ci --omit=optional --no-audit --no-fund --loglevel=error
	@touch $@
conformance: $(CONFORMANCE)     ## the MCP conformance harness against the tool server, both eras
	@$(PY) -m tests.conformance

# pytest runs last, so that its summary closes the output.
test-all: lint types contracts docs-check casebook foreign conformance     ## everything: static checks, case files, foreign suites, all tests
	@$(PYTEST) -n 2 -m "not proof"

docs: $(READY)      ## write the reference pages from the code
	@$(PY) docs/generate.py
docs-check: $(READY)
	@$(PY) docs/generate.py --check

# Other libraries that are measured beside ours live in an environment of their own.
BENCH := bench/.venv/.ready
$(BENCH): bench/requirements.txt bench/requirements-redaction.txt $(READY)
	@$(PY) -m venv --clear bench/.venv
	@bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	@grep -v '^#' bench/requirements-redaction.txt | while read peer; do \
	  bench/.venv/bin/python -m pip install --quiet --disable-pip-version-check "$$peer" || echo "$$peer did not install"; \
	done
	@touch $@

bench: $(READY) $(BENCH)     ## measurements, as ratios within one run
	@for script in bench/bench_*.py; do echo "== $$script"; $(PY) "$$script" || exit 1; done

proof: $(READY)     ## long runs outside CI: kills, crowds, random texts and histories without end
	@$(PYTEST) -n 2 -m proof -o faulthandler_timeout=0

# --- upkeep -------------------------------------------------------------------------------------

# Hashes for every platform, and no index: whoever installs chooses where from.
lock: $(READY)      ## write requirements.lock anew
	@$(PY) -m pip install --quiet --disable-pip-version-check uv
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header \
	  --extra mcp --extra redis --output-file requirements.lock pyproject.toml

clean:              ## remove .venv and everything generated
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist src/*.egg-info
