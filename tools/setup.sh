#!/bin/sh
# Installs what the build and the tests need and the machine lacks. Debian and Ubuntu; elsewhere it says what to install.
set -eu

missing=
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
command -v redis-server >/dev/null 2>&1 || missing="$missing redis-server"
python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || missing="$missing python3 python3-venv"
# The dashboard is tested in a browser where there is Node to build it.
if command -v npm >/dev/null 2>&1 && [ -z "${DASHBOARD_CHROMIUM:-}" ]; then
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
        command -v google-chrome >/dev/null 2>&1 || missing="$missing chromium"
fi

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Missing:$missing. Install them with this system's package manager and run again." >&2
        exit 1
    fi
    echo "Installing:$missing"
    ${SUDO:-} apt-get update -qq
    # shellcheck disable=SC2086 # a list of names
    ${SUDO:-} env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "Rust 1.89 or newer is needed: https://rustup.rs" >&2
    exit 1
fi
if ! cargo clippy --version >/dev/null 2>&1 || ! cargo fmt --version >/dev/null 2>&1; then
    rustup component add clippy rustfmt
fi
