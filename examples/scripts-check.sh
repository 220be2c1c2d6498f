#!/usr/bin/env bash
# Runs the examples in Python and Node against a private server: exports the scripts, then each language sells a little
# and passes every vector. Needs cargo, python3 with venv, node with npm, and redis-server (or STOCKADE_TEST_REDIS).
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
work=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT

${CARGO:-cargo} run --quiet --locked -p stockade-scripts --example scripts -- export "$work/scripts"

tools=$target/examples-scripts
python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet --disable-pip-version-check -r examples/scripts-python/requirements.txt
cp examples/scripts-node/package.json examples/scripts-node/package-lock.json examples/scripts-node/main.mjs "$tools/"
(cd "$tools" && npm ci --silent --no-audit --no-fund)

# A port that is free now may be taken when the server starts: then another one is tried.
for try in 1 2 3 4 5; do
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "${STOCKADE_TEST_REDIS:-redis-server}" --port "$port" --bind 127.0.0.1 --save "" --dir "$work" >"$work/log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        if grep -q "Ready to accept connections" "$work/log"; then break 2; fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
done
if [ -z "$server" ]; then
    cat "$work/log" >&2
    exit 1
fi

url=redis://127.0.0.1:$port/0
"$tools/venv/bin/python" examples/scripts-python/main.py "$work/scripts" "$url"
node "$tools/main.mjs" "$work/scripts" "$url"
