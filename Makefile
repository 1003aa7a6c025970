# SPDX-License-Identifier: Apache-2.0
# Front door: `make` alone lists what there is.

BUILD ?= build
JOBS  ?= $(shell nproc)
GEN   := hw/contract/gen

.DEFAULT_GOAL := help
# Two targets at a time would install and build at the same time.
.NOTPARALLEL:
.PHONY: help packages build test demo lint contract performance clean configure

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

packages: ## Install the Debian packages that are missing (root), or name them
	@scripts/packages build test lint

configure:
	@scripts/packages build
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja >$(BUILD)/configure.log 2>&1 || \
	  { cat $(BUILD)/configure.log; exit 1; }

build: configure ## Compile everything
	@cmake --build $(BUILD) -j $(JOBS)

test: packages build ## Run every test suite
	@scripts/suites $(BUILD)

demo: ## Run stock fi_info and fi_pingpong over two simulated NICs
	@scripts/packages build test
	@$(MAKE) --no-print-directory build
	@scripts/demo $(BUILD)

lint: packages configure ## Check style, layering, RTL and generated files
	@scripts/lint --build $(BUILD)

contract: ## Regenerate the views of hw/contract/heddle.toml
	@python3 hw/contract/gen_contract.py hw/contract/heddle.toml $(GEN) docs

performance: configure ## Measure in cycles and write docs/performance.md
	@cmake --build $(BUILD) -j $(JOBS) --target heddle_perf
	@$(BUILD)/bin/heddle_perf --markdown docs/performance.md

clean: ## Remove what was built
	@rm -rf $(BUILD)
