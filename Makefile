# SPDX-License-Identifier: Apache-2.0
# Front door: `make` alone lists what there is.

BUILD ?= build
JOBS  ?= $(shell nproc)
GEN   := hw/contract/gen
PREFIX  ?= /usr/local
DESTDIR ?=
SECONDS := 60
# Judged by `make conformance`: all, soft, rtl, stock or the name of one.
PROVIDERS := all
INSTALLED := heddle_installed
SHOWN     := heddle heddle_fi heddle-sim heddle_perf

.DEFAULT_GOAL := help
# Two targets at a time would install and build at the same time.
.NOTPARALLEL:
.PHONY: help packages build install test test-long test-asan test-tsan one-definition test-debug test-vm test-vm-iommufd conformance mutants demo lint architecture contract performance bench bench-check fuzz soak coverage synth clean configure

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

packages: ## Install the Debian packages that are missing (root), or name them
	@scripts/packages build tests figures test lint

# With all tests: for what reads the build folder, such as lint.
configure:
	@scripts/packages build tests figures
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja -DHEDDLE_TESTS=ON >$(BUILD)/configure.log 2>&1 || \
	  { cat $(BUILD)/configure.log; exit 1; }

build: ## Compile everything
	@scripts/build --tests $(BUILD) $(JOBS) build,tests,figures all

install: ## Install under PREFIX (/usr/local) and DESTDIR
	@scripts/build $(BUILD) $(JOBS) build $(INSTALLED)
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

test: packages build ## Run every test suite
	@scripts/suites $(BUILD)

test-long: ## Run 1,000 processes, and fi_pingpong over all sizes, 0 B to 6 MiB
	@scripts/build --tests $(BUILD) $(JOBS) build,tests,demo heddle heddle_fi heddle-soft heddle-sim heddle-wire clients_endpoint
	@scripts/processes_long $(BUILD)
	@scripts/pingpong_long $(BUILD)

# Builds of their own, without a model of the NIC: cmake/Sanitize.cmake.
test-asan: ## Run the tests without RTL under AddressSanitizer and UBSan
	@scripts/packages build tests test
	@scripts/sanitize $(BUILD)/asan address,undefined

test-tsan: ## Run the tests of threads and waiting under ThreadSanitizer
	@scripts/packages build tests test
	@scripts/sanitize $(BUILD)/tsan thread

# A build of its own, too: cmake/OneDefinition.cmake.
one-definition: ## Refuse a class defined twice in a library
	@scripts/packages build tests test
	@mkdir -p $(BUILD)/debug
	@cmake -S . -B $(BUILD)/debug -G Ninja -DHEDDLE_TESTS=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-g0 -DHEDDLE_ONE_DEFINITION=ON \
	  -DHEDDLE_RTL_DEVICE=OFF >$(BUILD)/debug/configure.log 2>&1 || { cat $(BUILD)/debug/configure.log; exit 1; }
	@cmake --build $(BUILD)/debug -j $(JOBS) --target heddle heddle_fi heddle-soft heddle-nicd

# Not part of CI: the same tests run optimized and with AddressSanitizer.
test-debug: one-definition ## Run the soft device's tests unoptimized
	@cmake --build $(BUILD)/debug -j $(JOBS) --target heddle_debug_tests
	@ctest --test-dir $(BUILD)/debug -L '^soft$$' -j $(JOBS) --no-tests=error --output-on-failure >$(BUILD)/debug/tests.log || \
	  { cat $(BUILD)/debug/tests.log; exit 1; }
	@grep 'tests passed' $(BUILD)/debug/tests.log

test-vm: ## Run driver and library on a real kernel, in virtual machines
	@scripts/build --tests $(BUILD) $(JOBS) build,tests,vm \
	  heddle heddle_fi heddle_tool heddle-soft heddle-nicd guest_vfio_test \
	  guest_failure_test guest_remap_test rdm_msg_test rma_test
	@HEDDLE_BUILD=$(BUILD) python3 -B tests/vm/vm_test.py

# Not part of CI: it compiles a kernel.
test-vm-iommufd: ## Run the driver's tests on a kernel with iommufd, built here
	@scripts/build --tests $(BUILD) $(JOBS) build,tests,vm,kernel \
	  heddle heddle-nicd guest_vfio_test guest_remap_test
	@HEDDLE_BUILD=$(BUILD) python3 -B tests/vm/vm_test.py DeviceFileTest

# As a part of it: PROVIDERS=soft,stock needs no model of the NIC.
conformance: ## Judge Heddle and stock providers, write docs/conformance.md
	@scripts/build --tests $(BUILD) $(JOBS) build,tests,conformance heddle heddle_fi heddle-soft heddle-conformance \
	  $(if $(findstring rtl,$(PROVIDERS))$(findstring all,$(PROVIDERS)),heddle-sim)
	@tests/conformance/judge.py --build $(BUILD) --providers "$(PROVIDERS)" --page docs/conformance.md

# A build of its own, too, of the libraries alone. CHOOSE=3 takes three by the
# hash of the commit.
mutants: ## Expect a conformance test to fail for each known defect
	@scripts/build --tests $(BUILD) $(JOBS) build,tests heddle-conformance
	@tests/mutants/run.py --build $(BUILD) --jobs $(JOBS) $(if $(CHOOSE),--choose $(CHOOSE))

demo: ## Run stock fi_info and fi_pingpong over two simulated NICs
	@scripts/build $(BUILD) $(JOBS) build,demo $(SHOWN)
	@scripts/demo $(BUILD)

lint: packages configure ## Check style, layering, RTL and generated files
	@scripts/lint --build $(BUILD)

architecture: ## Draw the layers in docs/architecture.md from the includes
	@python3 -B scripts/checks/architecture.py

contract: ## Regenerate the views of hw/contract/heddle.toml
	@python3 hw/contract/gen_contract.py hw/contract/heddle.toml $(GEN) docs

performance: ## Measure cycles and instructions, write docs/performance.md
	@scripts/build --tests $(BUILD) $(JOBS) build,tests,figures heddle_figures
	@bench/figures.py --build $(BUILD) record

bench: ## Compare the soft device with stock providers of libfabric
	@scripts/build $(BUILD) $(JOBS) build heddle_measure_provider heddle_fi heddle-soft
	@bench/compare.py --build $(BUILD)

bench-check: ## Compare cycles and instructions with the recorded ones
	@scripts/build --tests $(BUILD) $(JOBS) build,tests,figures heddle_figures
	@bench/figures.py --build $(BUILD) check

# A build of its own: clang, models that count lines.
fuzz: ## Fuzz the NIC for SECONDS (60)
	@scripts/fuzz --seconds "$(SECONDS)" --check-arguments
	@scripts/packages build tests fuzz
	@mkdir -p $(BUILD)/fuzz
	@cmake -S . -B $(BUILD)/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DHEDDLE_FUZZ=ON \
	  -DHEDDLE_RTL_COVERAGE=line >$(BUILD)/fuzz/configure.log 2>&1 || { cat $(BUILD)/fuzz/configure.log; exit 1; }
	@cmake --build $(BUILD)/fuzz -j $(JOBS) --target heddle_fuzzers
	@scripts/fuzz --build $(BUILD)/fuzz --seconds "$(SECONDS)"

soak: ## Run the differential test on lossy wires for SECONDS (60)
	@scripts/build $(BUILD) $(JOBS) build heddle_differential
	@scripts/soak --build $(BUILD) --seconds "$(SECONDS)"

# A build of its own: models that count lines and toggles.
coverage: ## Measure the coverage of RTL units, write docs/coverage.md
	@scripts/packages build tests
	@mkdir -p $(BUILD)/coverage
	@cmake -S . -B $(BUILD)/coverage -G Ninja "-DHEDDLE_RTL_COVERAGE=line;toggle" >$(BUILD)/coverage/configure.log 2>&1 || \
	  { cat $(BUILD)/coverage/configure.log; exit 1; }
	@cmake --build $(BUILD)/coverage -j $(JOBS) --target heddle_rtl_tests
	@scripts/coverage --build $(BUILD)/coverage run

# With UNIT="heddle_cq heddle_nscc", the rows of these alone. An hour for all.
synth: ## Synthesize RTL units for an FPGA, write docs/synthesis.md
	@scripts/packages synth
	@scripts/synth --build $(BUILD) --jobs $(JOBS) --page docs/synthesis.md $(UNIT)

clean: ## Remove the build outputs
	@rm -rf $(BUILD)
