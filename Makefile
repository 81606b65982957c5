# Each target sets up what it needs on a fresh machine (scripts/setup.sh), then does its one job.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# A toolchain that setup.sh has just installed is not on the caller's PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

CARGO ?= cargo
LASTMILE = $(CARGO) run --release --locked --quiet --package lastmile-cli --
# Where cargo puts what it builds.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# A program of that name on the PATH, or the one that setup.sh installs below target/.
export TOOLS := $(abspath $(TARGET))/tools
MDBOOK = $(or $(shell command -v mdbook),$(TOOLS)/bin/mdbook)
# Where `make demo` leaves its reports.
OUT ?= out/demo
# Where `make peers` leaves its results, and which of its trials it runs (an extended regular expression).
PEERS_OUT ?= out/peers
PEERS ?= .
# The profile that `make same-bytes` compares with that of the tests: `PROFILE=release` is the users', and takes minutes longer.
PROFILE ?= ci
# Packets of each soak, if not a hundred million (twenty million where each is a new flow).
PACKETS ?= 1
# Seconds of hostile frames on each path, and of a shaper's hard life.
HARDSHIP_SECONDS ?= 3600
# Tests of one binary at a time: many wait for time limits and for other programs.
TEST_THREADS := $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN))))
IDLE_TESTS = scripts/beside.sh scripts/check-arm64.sh $(CARGO) test --workspace --locked
CHECK_TABLES = ! command -v python3 > /dev/null || python3 scripts/tables.py --check
# Seconds that each fuzz target runs.
FUZZ_SECONDS ?= 60

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

.PHONY: demo
demo: ## Simulate an upload that starves a download, then the same line with two other queues
	@scripts/setup.sh demo
	$(CARGO) build --release --locked --package lastmile-cli
	$(LASTMILE) compare scenarios/upload-starves-download.toml --vary access.up.queue.kind=fifo,sad,priority --out $(OUT)

# The build lints and documents the crates that it compiles.
.PHONY: test
test: export RUSTC_WORKSPACE_WRAPPER = $(abspath scripts/rustc-of-tests.sh)
# rustdoc has the options of the compiler, and may not share its increments.
test: export CARGO_INCREMENTAL = 0
test: export RUST_TEST_THREADS = $(TEST_THREADS)
test: ## Run every check: format, lints, tests, API documentation, and live tests where the machine allows them
	@scripts/setup.sh test
	$(CARGO) fmt --all --check
	$(CARGO) test --workspace --locked --no-run
	@scripts/beside.sh '$(CHECK_TABLES); scripts/python-tests.sh' scripts/web-tests.sh
	@scripts/beside.sh --idle '$(IDLE_TESTS)' scripts/live-tests.sh

.PHONY: same-bytes
same-bytes: ## Check that equal seeds give equal bytes: every scenario with a debug build and with an optimised one
	@scripts/setup.sh same-bytes
	$(CARGO) build --locked --package lastmile-cli
	$(CARGO) build --profile $(PROFILE) --locked --package lastmile-cli
	@scripts/same-bytes.sh $(TARGET)/debug/lastmile $(TARGET)/$(PROFILE)/lastmile

.PHONY: lint
lint: ## Check format, lints (warnings are errors), and the tables of the documents
	@scripts/setup.sh lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	@scripts/check-arm64.sh
	@$(CHECK_TABLES)

# Dependencies are checked by clippy as `cargo clippy` calls it, so that those that `make lint` has checked are ready.
.PHONY: rustdoc
rustdoc: export RUSTC_WORKSPACE_WRAPPER = $(wildcard $(shell rustc --print sysroot)/bin/clippy-driver)
rustdoc: export CLIPPY_ARGS = -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
rustdoc: ## Build the API reference; its warnings are errors
	@scripts/setup.sh rustdoc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --locked --no-deps --quiet

.PHONY: bench
bench: ## Measure events, packets and cells per second, relative to the speed of the machine
	@scripts/setup.sh bench
	$(CARGO) build --release --locked --package lastmile-cli --package lastmile-bench
	$(CARGO) run --release --locked --package lastmile-bench

.PHONY: detect-table
detect-table: ## Compare detection with the truth on 140 simulated lines: names, rates, buffers and queues
	@scripts/setup.sh detect-table
	$(CARGO) run --release --locked --package lastmile-measure --example detect-table

.PHONY: detect-emulated
detect-emulated: ## Compare detection with the truth on 20 emulated lines, with real packets: an hour, as root
	@scripts/setup.sh test
	LASTMILE_LONG=1 scripts/live-tests.sh --nocapture each_line_of_the_table

.PHONY: carried
carried: ## Measure packets a second of one processor by packet path and policy, as root
	@scripts/setup.sh carried
	$(CARGO) run --release --locked --package lastmile-bench -- --only live: --no-instructions --repeat 1

.PHONY: peers
peers: ## Compare with the kernel's HTB, FQ-CoDel and CAKE, in a Debian kernel on QEMU's virtual clock; takes hours
	@scripts/setup.sh peers
	@scripts/peers/fetch.sh
	$(CARGO) build --release --locked --package lastmile-cli
	@scripts/peers/compare.sh $(TARGET)/release/lastmile $(PEERS_OUT) '$(PEERS)'

.PHONY: what-helps
what-helps: ## Compare the built-in policies on every line of the library, for docs/studies/what-helps.md: about seven minutes, and a release build
	@scripts/setup.sh what-helps
	$(CARGO) build --release --locked --package lastmile-cli
	@scripts/what_helps.py $(TARGET)/release/lastmile --note 'Profile `release`.'
	@scripts/tables.py

.PHONY: exactness
exactness: ## Test rates of every seventh size on every preset, with real packets: an hour, as root
	@scripts/setup.sh test
	LASTMILE_LONG=1 scripts/live-tests.sh --nocapture exact:: queue_control::

.PHONY: soak
soak: ## Send PACKETS packets (10^8) of new flows, some damaged, through middlebox and emulated line: an hour, as root
	@scripts/setup.sh test
	LASTMILE_LONG=$(PACKETS) scripts/live-tests.sh --nocapture soak:: unregulated::

.PHONY: hardship
hardship: ## Test an hour of hostile frames on each path, of carrier flaps, reloads, scrapes and slow clients, as root
	@scripts/setup.sh test
	LASTMILE_HOSTILE_S=$(HARDSHIP_SECONDS) scripts/live-tests.sh --nocapture hostile_ hardship::

.PHONY: docs
docs: ## Build the API reference, and update the output shown in README.md and docs/
	@scripts/setup.sh docs
	UPDATE_DOCS=1 $(CARGO) test --locked --package lastmile-cli --test it docs
	@$(MAKE) rustdoc

.PHONY: book
book: ## Build docs/ as a book in target/book, by mdBook
	@scripts/setup.sh book
	$(MDBOOK) build --dest-dir $(abspath $(TARGET))/book

.PHONY: site
site: ## Build playground, stories and documentation as static files in target/site
	@scripts/setup.sh site
	$(CARGO) build --locked --profile wasm --target wasm32-unknown-unknown --package lastmile-playground
	cd web && node build.mjs site $(abspath $(TARGET))/wasm32-unknown-unknown/wasm/lastmile_playground.wasm $(abspath $(TARGET))/site
	cd web && node docs.mjs $(MDBOOK) $(abspath $(TARGET))/site $(abspath $(TARGET))/doc
	@scripts/dist/licences.py $(TARGET)/site/THIRD-PARTY.txt lastmile-playground wasm32-unknown-unknown

.PHONY: stories
stories: ## Compute the values that the stories show, by reproducing their tables: up to an hour of one core
	@scripts/setup.sh web
	$(CARGO) build --release --locked --package lastmile-cli
	cd web && node stories-data.mjs $(abspath $(TARGET))/release/lastmile

.PHONY: fuzz
fuzz: ## Test each parser with random input, FUZZ_SECONDS each
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: web
web: ## Bundle the scripts of reports and of the dashboard from web/ into the crates that embed them
	@scripts/setup.sh web
	@scripts/web-packages.sh
	cd web && npx --no-install tsc --noEmit && node build.mjs report && node dashboard.mjs

.PHONY: python
python: ## Run the tests of the Python package
	@scripts/setup.sh python
	@scripts/python-lint.sh
	$(CARGO) test --workspace --locked --no-run
	@scripts/python-tests.sh

.PHONY: notebooks
notebooks: ## Run the notebooks at full size, and draw their pictures in docs/images/notebooks: about five minutes
	@scripts/setup.sh python
	@scripts/python-tests.sh --run scripts/notebooks.py --pictures docs/images/notebooks

# Its parts use DIST_PROFILE, and TARGETS for the architectures: `make dist-static DIST_PROFILE=ci TARGETS=x86_64` is a trial.
DIST_PROFILE ?= release
export TARGETS
# Parts share target/dist and their tools, and each uses all processors.
.NOTPARALLEL:

.PHONY: dist
dist: ## Build all packages below in target/dist, with SHA256SUMS; an hour and more
	@rm -rf $(TARGET)/dist
	@$(MAKE) dist-deb dist-container dist-wheels dist-crates
	@scripts/dist/summary.sh

.PHONY: dist-static
dist-static: ## Build the program without shared libraries, for x86-64 and arm64
	@scripts/setup.sh dist
	@PROFILE=$(DIST_PROFILE) scripts/dist/static.sh

.PHONY: dist-deb
dist-deb: dist-static ## Build Debian packages of the static programs
	@scripts/setup.sh dist
	@PROFILE=$(DIST_PROFILE) scripts/dist/deb.sh

.PHONY: dist-container
dist-container: dist-static ## Build container images of the static programs
	@scripts/setup.sh dist
	@PROFILE=$(DIST_PROFILE) scripts/dist/container.sh

.PHONY: dist-wheels
dist-wheels: ## Build wheels and source archive of the Python package
	@scripts/setup.sh dist
	@PROFILE=$(DIST_PROFILE) scripts/dist/wheels.sh

.PHONY: dist-crates
dist-crates: ## Build packages for crates.io, and compile the command from them
	@scripts/setup.sh dist
	@PROFILE=$(DIST_PROFILE) scripts/dist/crates.sh

.PHONY: clean
clean: ## Remove build results and the demo's reports
	$(CARGO) clean
	rm -rf out
