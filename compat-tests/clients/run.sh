#!/usr/bin/env bash
# Runs the clients whose toolchain is here against a broker and writes the matrix of docs/clients.md.
#
#   compat-tests/clients/run.sh BOOTSTRAP
set -uo pipefail
bootstrap=${1:?a bootstrap address, as in 127.0.0.1:9092}
here=$(cd "$(dirname "$0")" && pwd)
page=$here/../../docs/clients.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

have() { command -v "$1" >/dev/null 2>&1; }

# run NAME VERSION COMMAND...: keeps the lines "what ok" and "what FAIL why".
run() {
    local name=$1 version=$2
    shift 2
    printf '== %s %s\n' "$name" "$version"
    timeout 300 "$@" | tee "$work/out" || failed=1
    awk -v client="$name $version" '
        / ok$/ { sub(/ ok$/, ""); printf "| %s | %s | ok |\n", client, $0 }
        / FAIL / { at = index($0, " FAIL "); printf "| %s | %s | FAIL: %s |\n", client,
            substr($0, 1, at - 1), substr($0, at + 6) }
    ' "$work/out" >>"$work/rows"
}

skip() { printf '== %s is skipped: no %s here\n' "$1" "$2"; }

if have node && have npm; then
    (cd "$here/node" && npm install --silent --no-audit --no-fund) &&
        run kafkajs 2.2.4 node "$here/node/main.js" "$bootstrap"
else
    skip kafkajs node
fi

if have go; then
    (cd "$here/go" && go build -o "$work/franz" ./franz) &&
        run franz-go 1.22.3 "$work/franz" "$bootstrap"
else
    skip franz-go go
fi

if have kcat; then
    run kcat "$(kcat -V 2>&1 | sed -n 's/.*Version \([0-9.]*\).*/\1/p')" \
        "$here/kcat.sh" "$bootstrap"
else
    skip kcat kcat
fi

[ -s "$work/rows" ] || exit 1
{
    printf '# Clients\n\nWhat programs of other makers did against Gracchus. Written by\n'
    printf '`compat-tests/clients/run.sh`; librdkafka has the suites of `compat-tests/tests`.\n\n'
    printf '| Client | What | Result |\n|---|---|---|\n'
    cat "$work/rows"
} >"$page"
exit "$failed"
