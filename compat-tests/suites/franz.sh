#!/usr/bin/env bash
# franz-go's tests of pkg/kgo, from the Go module.
. "$(dirname "$0")/lib.sh"

module=v1.22.3
home=$cache/franz-$module

build() {
    [ -x "$home/kgo.test" ] && return
    want go
    mkdir -p "$home"
    (cd "$home" && { [ -e go.mod ] || go mod init suites; } &&
        go get -t github.com/twmb/franz-go/pkg/kgo@"$module" &&
        go test -c -o kgo.test github.com/twmb/franz-go/pkg/kgo) >"$home/build.log" 2>&1 ||
        die "see $home/build.log"
}

# Tests of the top level; of the chained groups the variants, for they are tests of their own.
verdicts() {
    awk '
        /^ *--- (PASS|FAIL|SKIP): / {
            name = $3; seconds = $4; gsub(/[()s]/, "", seconds)
            at[name] = ++n; names[n] = name; time[name] = seconds
            word[name] = $2 == "PASS:" ? "pass" : $2 == "FAIL:" ? "fail" : "skip"
            last = name; next
        }
        last && /^ +[a-z_0-9]+\.go:[0-9]+:/ && !(last in text) { text[last] = $0 }
        /^ +[a-z_0-9]+\.go:[0-9]+:/ { early = $0 }
        END {
            for (i = 1; i <= n; i++) {
                name = names[i]
                if ((name ~ /Etl|TestGroupETL/) == (index(name, "/") > 0))
                    printf "%s\t%s\t%d\t%s\n", name, word[name], time[name], text[name]
            }
        }' "$1"
}

# kgo LOG LIMIT ARGS...
kgo() {
    local log=$1 limit=$2
    shift 2
    # In the folder of its sources, as go test would: one test reads them.
    (cd "$sources" && KGO_SEEDS=$broker KGO_TEST_RF=1 KGO_TEST_RECORDS=20000 KGO_LOG_LEVEL=none \
        timeout "$limit" "$home/kgo.test" -test.v -test.timeout 5m "$@" >"$log" 2>&1)
}

# part NAME PATTERN: the tests that match, in one process, unless they have results.
part() {
    done_before "part $1" && return
    local log=$home/$peer.$1.log name verdict seconds text
    kgo "$log" 320 -test.run "$2" ${3:+-test.skip "$3"}
    while IFS=$'\t' read -r name verdict seconds text; do
        result "$name" "$verdict" "$seconds" "$([ "$verdict" = pass ] || echo "$text")"
    done < <(verdicts "$log")
    printf 'part %s\tpart\t0\t\n' "$1" >>"$result_file"
}

# The variants of one test, side by side and each in its process: without transactions they wait
# for a producer id until their time is up, and the process with them.
transactions() {
    local variant name pattern found verdict seconds text
    for variant; do
        name=TestTxnEtl/$variant
        pattern="^${name//\//\$/^}\$"
        done_before "$name" ||
            kgo "$home/$peer.${name//\//-}.log" 120 -test.run "$pattern" -test.skip "$pattern/." &
    done
    wait $(jobs -rp | grep -vx "$broker_pid")
    for variant; do
        name=TestTxnEtl/$variant
        done_before "$name" && continue
        found=$(verdicts "$home/$peer.${name//\//-}.log" | awk -F'\t' -v n="$name" '$1 == n')
        IFS=$'\t' read -r _ verdict seconds text <<<"${found:-$'-\tfail\t120\tno end after 120 s'}"
        result "$name" "$verdict" "$seconds" "$([ "$verdict" = pass ] || echo "$text")"
    done
}

build
sources=$(cd "$home" && go list -f '{{.Dir}}' github.com/twmb/franz-go/pkg/kgo) || die "no sources"
version "$module"
broker_up 0
part groups '^TestGroupETL$'
transactions range cooperative-sticky cooperative-sticky/static range/848 sticky/848 \
    sticky/848/static
part shares '^TestShareGroup'
part others '^Test' '^(TestGroupETL$|TestTxnEtl$|TestShareGroup)'
