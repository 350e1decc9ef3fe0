#!/usr/bin/env bash
# The tests inside the crate rdkafka. They have port 9092 and broker id 0 built in.
. "$(dirname "$0")/lib.sh"

crate=0.39.0
home=$cache/rust-rdkafka-$crate

build() {
    [ -e "$home/built" ] && return
    want cargo
    local source
    (cd "$root" && cargo fetch) || die "cargo fetch"
    source=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"rdkafka-$crate" | head -1)
    [ -d "$source" ] || die "there is no rdkafka $crate among cargo's sources"
    [ -e "$home/Cargo.toml" ] || cp -r "$source" "$home"
    (cd "$home" && CARGO_TARGET_DIR=$home/target cargo test --no-run) >"$cache/rust-rdkafka.log" \
        2>&1 || die "see $cache/rust-rdkafka.log"
    touch "$home/built"
}

build
version "$crate"
done_before "part all" && exit 0
broker_up 9092 num.partitions=3
(cd "$home" && CARGO_TARGET_DIR=$home/target KAFKA_HOST=$broker KAFKA_VERSION=4.4 \
    timeout 900 cargo test --no-fail-fast --tests -- --test-threads=2) >"$home/$peer.log" 2>&1
# Names repeat between files; the file is part of the name.
awk '
    $1 == "Running" { file = $2; if (file == "unittests") file = "src"; sub(/^tests\//, "", file);
        sub(/\.rs$/, "", file) }
    $1 == "test" && $3 == "..." { word = $NF == "ok" ? "pass" : $NF == "FAILED" ? "fail" : "skip";
        printf "%s::%s\t%s\n", file, $2, word }
    /panicked at/ { split($2, who, "'\''"); want = who[2]; getline; print "#" want "\t" $0 }
' "$home/$peer.log" >"$home/$peer.rows"
while IFS=$'\t' read -r name verdict; do
    text=$([ "$verdict" = fail ] &&
        grep -F "#${name#*::}"$'\t' "$home/$peer.rows" | head -1 | cut -f2)
    result "$name" "$verdict" 0 "$text"
done < <(grep -v '^#' "$home/$peer.rows" | grep -v '^src::')
printf 'part all\tpart\t0\t\n' >>"$result_file"
