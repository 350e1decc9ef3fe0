#!/usr/bin/env bash
# Writes docs/compatibility.md and docs/clients.md from the result files and reasons.tsv.
. "$(dirname "$0")/lib.sh"

pages=${1:-$root/docs}
page=$pages/compatibility.md
titles="librdkafka:librdkafka's test runner
franz:franz-go, pkg/kgo
rust-rdkafka:rust-rdkafka
kafka-python:kafka-python, integration tests
kafka-tools:Apache Kafka's verifiable tools
streams:Kafka Streams, system test programs"

{
    cat <<'MD'
# Compatibility: the clients' own test suites

Each suite runs against Apache Kafka 4.4.0 and against Gracchus on the same machine, both as one
node with the same settings. A test that fails on Kafka too says nothing about Gracchus. Written by
`make suites`; nothing here is typed by hand but the reasons (`compat-tests/suites/reasons.tsv`).
The quick part of librdkafka's tests is a part of every `make test` (`make suites-gate`).
MD
    # Of every test: its verdict on both. Then the two tables.
    while IFS=: read -r name title; do
        for where in kafka gracchus; do
            [ -s "$results/$name.$where.tsv" ] && sed "s/^/$name\t$where\t/" \
                "$results/$name.$where.tsv"
        done
        printf '%s\t-\t#title\t%s\n' "$name" "$title"
    done <<<"$titles" | awk -F'\t' -v reasons="$here/reasons.tsv" -f "$here/page.awk"
} >"$page.new" || die "no page"
mv "$page.new" "$page"

page=$pages/clients.md
{
    cat <<'MD'
# Clients

What programs of other makers did against Gracchus and against Apache Kafka 4.4.0: one program for
each client (`compat-tests/clients`), which tries what the client can do. `ok` means: on both.
An empty field: the client has no such thing. Written by `make suites`. librdkafka itself has the
tests of `compat-tests/tests` and its own runner, see [compatibility.md](compatibility.md).

MD
    for where in kafka gracchus; do
        [ -s "$results/clients.$where.tsv" ] &&
            sed "s/^/$where\t/" "$results/clients.$where.tsv"
    done | awk -F'\t' -f "$here/clients.awk"
} >"$page.new" || die "no page"
mv "$page.new" "$page"
