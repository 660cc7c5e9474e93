# The commands of this repository; `make help` lists them.

SWIFT ?= swift
SANITIZED = --sanitize=thread -Xswiftc -DTHREAD_SANITIZER --scratch-path .build/tsan

.DEFAULT_GOAL := help
CHECKS = check-docs check-library check-players check-servers check-deb check-plugins check-hosts check-long \
	check-agent check-response-cache check-gallery check-without-traits check-api
.PHONY: help setup setup-build setup-test build build-ios demo test check $(CHECKS) check-simulation \
	test-tsan test-scripts bench fuzz format lint docs api library install examples plugins install-plugins \
	uninstall-plugins deb

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 22

setup: ## Install the Debian packages that building and all checks need (only those missing)
	@scripts/setup.sh

setup-build: ## Install those that building needs alone
	@scripts/setup.sh build

setup-test: ## Install those that building and `make test` need
	@scripts/setup.sh test

build: setup-build ## Build every target, the tests too
	$(SWIFT) build --build-tests

build-ios: setup-build ## Build the engine for iOS, on a Mac (never run)
	xcodebuild build -scheme TieredCache -destination generic/platform=iOS

demo: setup-build ## Show the engine at work against an embedded origin, and check every claim
	$(SWIFT) build --product tieredcache # for debugging: optimising takes longer, and tests use this build
	.build/debug/tieredcache demo

test: setup-test lint test-scripts ## Lint, build, and run each test that needs no player, no other server and little time
	scripts/tests.py
	@echo "make test: make check does the rest: all cases of long and seeded tests, real players and servers, the"
	@echo "make test: library for C with its hosts, plug-ins and packages, the documentation, a build without traits"

# Each is a target of its own, and a part that `scripts/check.py` runs: `make check-players`.
check: setup ## Run all other checks, several at once, and print a table of them; WITHOUT=PART leaves one out
	scripts/check.py $(addprefix --without=,$(WITHOUT))

check-players: setup ## Play films with real players through the proxy
	scripts/tests.py player

check-servers: setup ## Test beside a real nginx and other servers
	scripts/tests.py server

check-long: setup ## Run the tests that take long, and all cases of those that chance or a list decides
	scripts/tests.py long

check-docs: docs ## Build the documentation, warnings as errors

check-without-traits: setup-build ## Build the engine without SwiftNIO, and look that it needs no Foundation
	scripts/verify-no-foundation.sh

check-api: api ## Compare with the last version

library: setup-build ## Build the library for C into .build/library
	scripts/library.sh

# `make install PREFIX=/usr DESTDIR=/tmp/package` installs below /tmp/package/usr, for a prefix of /usr.
PREFIX ?= /usr/local
DESTDIR ?=

install: ## Install the library, its header and its pkg-config file below PREFIX (/usr/local)
	scripts/library.sh install "$(PREFIX)" "$(DESTDIR)"

check-library: setup ## Build the library for C and check what it promises
	scripts/check-library.sh

# `make examples LIBRARY=DIRECTORY` takes library and tieredcache.pc from elsewhere.
LIBRARY ?= .build/library
export LIBRARY

examples: setup ## Build the hosts of Examples/C against the library for C
	scripts/examples.sh

check-hosts: examples ## Run them against an origin on loopback, and the library's races and bad input
	scripts/check-examples.sh
	scripts/check-races.sh

plugins: setup ## Build the plug-ins for mpv, GStreamer and VLC into .build/plugins, a file each
	scripts/plugins.sh

# For the user; with PREFIX or DESTDIR for the system, where PREFIX is that of the players.
PLUGINS_FOR = $(if $(filter file default undefined,$(origin PREFIX)),$(if $(DESTDIR),system /usr "$(DESTDIR)",user),system "$(PREFIX)" "$(DESTDIR)")

install-plugins: ## Install them for the user, or for the system with PREFIX=/usr
	scripts/plugins.sh install $(PLUGINS_FOR)

uninstall-plugins: ## Remove them there
	scripts/plugins.sh uninstall $(PLUGINS_FOR)

check-plugins: plugins ## Play films with the players' own programs and the plug-ins, from an origin on loopback
	scripts/check-plugins.sh

deb: library plugins ## Make Debian packages in .build/deb: library, headers, program, plug-ins
	scripts/deb.sh

check-deb: deb ## Install them in a root that is thrown away, use them, and remove them
	scripts/check-deb.sh

check-agent: setup ## Compare the agent with aria2c, by real clients, and kill it at random instants
	scripts/check-agent.sh

check-gallery: setup ## Build the example with pictures, and scroll a thousand of them
	scripts/check-gallery.sh

check-response-cache: setup ## Build the example with Hummingbird, and check it between curl and a server on loopback
	scripts/check-response-cache.sh

test-scripts: ## Test the release script, its checks and the comparison of benchmarks, in seconds
	scripts/test-scripts.sh

check-simulation: setup ## Take repairs of the engine back one by one: the simulation has to fail (half an hour)
	scripts/check-simulation.sh

test-tsan: setup ## Run every test under the thread sanitizer
	TEST_SILENCE=1800 TSAN_OPTIONS=suppressions=$(CURDIR)/scripts/tsan.supp \
		scripts/tests.py all -- $(SANITIZED)

bench: setup ## Measure the hit path beside its peers, as a table of ratios
	Benchmarks/run.sh

fuzz: setup ## Feed decoders and a whole engine with libFuzzer's inputs, a minute each
	Fuzzing/run.sh

format: ## Rewrite the sources in the house style
	$(SWIFT) format format --in-place --recursive --parallel Package.swift Sources Tests Fuzzing Examples

lint: ## Refuse what is not in the house style: sources, scripts, workflow files, references, arrows, patches
	scripts/check-scripts.sh
	scripts/check-references.sh
	scripts/check-arrows.sh
	scripts/check-columns.sh
	git apply --check Tests/SimulationTests/Mutations/*.patch # what check-simulation takes back is still there
	@! grep -rnE --include='*.swift' '(^|[^A-Za-z])try\?' Sources # handle an error, or say why not
	@! grep -rnE --include='*.swift' '\bpthread_self\(' Sources # glibc says it never changes; after an await it has
	$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests Fuzzing Examples

api: setup-build ## Refuse what breaks programs written for the last version
	scripts/api.sh

# The modules that have documentation: those of the products in Package.swift.
DOCUMENTED = TieredCache HTTPCaching TieredCacheProxy TieredCacheObservability TieredCacheTesting \
	TieredCacheHTTPClient TieredCacheFoundation TieredCacheAgent TieredCacheImages

docs: setup-build ## Build the documentation of all modules into .build/documentation
	$(SWIFT) package --allow-writing-to-directory .build/documentation \
		generate-documentation $(addprefix --target ,$(DOCUMENTED)) --enable-experimental-combined-documentation \
		--output-path .build/documentation --disable-indexing --warnings-as-errors
