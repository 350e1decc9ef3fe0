#!/usr/bin/env bash
# The tests inside the crate rdkafka. They have port 9092 and broker id 0 built in.
. "$(dirname "$0")/lib.sh"

crate=0.39.0
home=$cache/rust-rdkafka-$crate

# tests LOG LIMIT ARGS...
tests() {
    local log=$1 limit=$2
    shift 2
    # Debug information would take longer to write than the code.
    (cd "$home" && CARGO_TARGET_DIR=$home/target CARGO_PROFILE_DEV_DEBUG=0 \
        CARGO_PROFILE_TEST_DEBUG=0 KAFKA_HOST=${broker:-} KAFKA_VERSION=4.4 \
        timeout "$limit" cargo test "$@") >"$log" 2>&1
}

build() {
    [ -e "$home/built" ] && return
    want cargo
    local source
    (cd "$root" && cargo fetch) || die "cargo fetch"
    source=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"rdkafka-$crate" | head -1)
    [ -d "$source" ] || die "there is no rdkafka $crate among cargo's sources"
    [ -e "$home/Cargo.toml" ] || cp -r "$source" "$home"
    tests "$cache/rust-rdkafka.log" 3600 --tests --no-run || die "see $cache/rust-rdkafka.log"
    touch "$home/built"
}

build
version "$crate"
done_before "part all" && exit 0
broker_up 9092 num.partitions=3
: >"$home/$peer.log"
for file in "$home"/tests/*.rs; do
    # Without transactions two tests wait for ever.
    tests "$home/$peer.part.log" 150 --no-fail-fast --test "$(basename "$file" .rs)" -- \
        --test-threads=3
    cat "$home/$peer.part.log" >>"$home/$peer.log"
done
# Names repeat between files; the file is part of the name.
awk '
    $1 == "Running" { file = $2; sub(/^tests\//, "", file); sub(/\.rs$/, "", file) }
    $1 == "test" && $3 == "..." { word = $NF == "ok" ? "pass" : $NF == "FAILED" ? "fail" : "skip";
        printf "%s::%s\t%s\n", file, $2, word; ended[file, $2] = 1 }
    $1 == "test" && / has been running for over / { slow[++n] = file SUBSEP $2 }
    /panicked at/ { split($2, who, "'\''"); want = who[2]; getline; print "#" want "\t" $0 }
    /^---- .* stdout ----/ { want = $2 }
    /^Error: / { print "#" want "\t" $0 }
    END {
        for (i = 1; i <= n; i++) if (!(slow[i] in ended)) {
            split(slow[i], part, SUBSEP)
            printf "#%s\tno end after 150 s\n%s::%s\tfail\n", part[2], part[1], part[2]
        }
    }' "$home/$peer.log" >"$home/$peer.rows"
while IFS=$'\t' read -r name verdict; do
    text=$([ "$verdict" = fail ] &&
        grep -F "#${name#*::}"$'\t' "$home/$peer.rows" | head -1 | cut -f2)
    # Once more alone: some expect what was asked to have happened when the answer is there.
    [ "$verdict" = fail ] && [ "${text#no end}" = "$text" ] &&
        tests "$home/$peer.again.log" 60 --test "${name%%::*}" -- --exact "${name#*::}" \
            </dev/null && verdict=pass text=""
    result "$name" "$verdict" 0 "$text"
done < <(grep -v '^#' "$home/$peer.rows")
printf 'part all\tpart\t0\t\n' >>"$result_file"
