# Gracchus: `make run` starts a broker, `make test` runs the tests, `make help` lists the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Looks after compilers and libraries, then runs what follows.
BUILD := deploy/setup.sh --for build
TEST := deploy/setup.sh --for test

TARGET := $(or $(CARGO_TARGET_DIR),target)

# The suites that use clients of other makers against the built binary.
COMPAT := $(wildcard compat-tests/tests/*.rs)

# What `make bench` found.
RESULTS := compat-tests/bench/results.json

# Passes the output of tests on and adds up their results.
SUM := awk '{ print; fflush() } $$1 == "test" && $$2 == "result:" { ok += $$4; bad += $$6; off += $$8 } \
	END { printf "all tests: %d passed, %d failed, %d ignored\n", ok, bad, off }'

.PHONY: help run build test swarm test-unit test-compat oracle suites suites-gate bench \
	bench-page gates fmt-check lint clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build and start one broker; settings in ARGS="--override num.partitions=3"
	@$(BUILD) cargo build --release --bin gracchus
	@exec $(TARGET)/release/gracchus $(ARGS)

build: ## Build the broker: target/release/gracchus
	@$(BUILD) cargo build --release --bin gracchus

test: ## Run all tests, the ones with real clients and the gates last
	@{ $(MAKE) --no-print-directory test-unit; $(MAKE) --no-print-directory test-compat; \
		$(MAKE) --no-print-directory suites-gate; \
		$(MAKE) --no-print-directory gates; } | $(SUM)

test-unit: ## Run the tests of our own crates
	@$(TEST) cargo test

test-compat: ## Run the tests with real Kafka clients against the built broker
ifneq ($(COMPAT),)
	@$(TEST) cargo build --bin gracchus
	@GRACCHUS_BIN=$(abspath $(TARGET))/debug/gracchus $(TEST) cargo test -p compat-tests
else
	@echo 'compat-tests: no suite yet'
endif

oracle: ## Compare with a live Apache Kafka; RECORD=1 records answers and files anew (mvn, Java)
	@$(TEST) cargo build --bin gracchus
	@GRACCHUS_BIN=$(abspath $(TARGET))/debug/gracchus $(TEST) compat-tests/oracle.sh \
		cargo test -p compat-tests --test differ --test on_disk --no-fail-fast -- --nocapture

suites: ## Run the clients' own suites on Gracchus and on Apache Kafka, write the pages
	@$(BUILD) cargo build --release --bin gracchus
	@compat-tests/suites/run.sh $(SUITES)

suites-gate: ## Run the quick part of librdkafka's own tests against the built broker
	@$(TEST) cargo build --bin gracchus
	@GRACCHUS_BIN=$(abspath $(TARGET))/debug/gracchus $(TEST) compat-tests/suites/gate.sh \
		gracchus $(abspath $(TARGET))/suites

swarm: ## Run SEEDS=1000 simulated brokers with faults, from seed FIRST=0 on
	@GRACCHUS_SEEDS=$(or $(SEEDS),1000) GRACCHUS_FIRST_SEED=$(or $(FIRST),0) \
		$(TEST) cargo test -p tests --test swarm -- --nocapture

bench: ## Measure: PEER=kafka measures Kafka too, SIZE=tiny|quick|full, ROUNDS=2, ONLY=1,3
	@$(BUILD) cargo build --release --bin gracchus
	@$(TEST) cargo build --release -p bench
	@jars=$$([ -z '$(PEER)' ] || compat-tests/oracle.sh --jars); \
		GRACCHUS_BIN=$(abspath $(TARGET))/release/gracchus KAFKA_JARS=$$jars \
		$(TARGET)/release/bench --size $(or $(SIZE),full) --rounds $(or $(ROUNDS),2) \
		$(if $(PEER),--peer $(PEER)) $(if $(ONLY),--only $(ONLY)) --out $(RESULTS)

bench-page: ## Write docs/performance.md from the results of the last `make bench`
	@$(TEST) cargo run -q --release -p bench -- --page $(RESULTS) >docs/performance.md

gates: ## Compare instructions, allocations and system calls per request with the recorded ones
	@$(TEST) cargo build --bin gracchus
	@$(TEST) cargo build -p bench
	@GRACCHUS_BIN=$(abspath $(TARGET))/debug/gracchus $(TARGET)/debug/bench \
		$(if $(RECORD),--record-gates,--gates) compat-tests/bench/gates.json

fmt-check: ## Say whether the sources are formatted
	@$(BUILD) cargo fmt --all --check

lint: ## Run clippy, warnings are errors
	@$(TEST) cargo clippy --workspace --all-targets -- -D warnings

clean: ## Remove what was built; data of brokers stay
	@cargo clean
