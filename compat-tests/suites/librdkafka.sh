#!/usr/bin/env bash
# librdkafka's own test runner, built from the sources inside crates.io's rdkafka-sys.
#
#   SUITE_JOBS=3   tests that run at a time
#   SUITE_ONLY='0012 0017'   only these
. "$(dirname "$0")/lib.sh"

# Those that want a broker. The others are tests of the library or of its mock.
tests="0001 0002 0003 0005 0008 0011 0012 0013 0017 0036 0038 0048 0055 0070 0082 0086 0110 0114
0125 0014 0015 0022 0029 0031 0034 0041 0052 0054 0059 0061 0065 0067 0093 0123 0127 0137 0018 0019
0026 0030 0033 0040 0045 0050 0051 0056 0060 0084 0089 0091 0099 0102 0113 0118 0122 0130 0132 0140
0090 0098 0103 0129 0007 0021 0028 0035 0042 0044 0047 0057 0063 0069 0081 0107 0109 0111 0112 0039
0064 0073 0083 0085 0092 0077 0097 0115 0119 0126 0135 0142 0139 0150 0016 0020 0049 0053 0068 0075
0076 0088 0094 0101 0153"
crate=rdkafka-sys-4.10.0+2.12.1
tree=$cache/librdkafka

build() {
    [ -x "$tree/tests/test-runner" ] && return
    want cargo make gcc g++
    local source
    (cd "$root" && cargo fetch) || die "cargo fetch"
    source=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate"/librdkafka | head -1)
    [ -d "$source" ] || die "there is no $crate among cargo's sources"
    [ -e /usr/include/rapidjson/document.h ] || die "needs rapidjson-dev"
    rm -rf "$tree"
    cp -r "$source" "$tree"
    (cd "$tree" && ./configure && make -j2 libs && make -j2 -C tests build) \
        >"$cache/librdkafka.build.log" 2>&1 || die "see $cache/librdkafka.build.log"
}

# one NUMBER: runs it and writes its result.
one() {
    local number=$1 log=$cache/logs/librdkafka.$peer.$1.log began=$SECONDS row verdict text status
    mkdir -p "$cache/logs"
    (cd "$tree/tests" && LD_LIBRARY_PATH=../src:../src-cpp RDKAFKA_TEST_CONF=$broker_dir/test.conf \
        TEST_KAFKA_VERSION=4.2.0 KAFKA_PATH=$kafka_home BROKERS=$broker TESTS=$number \
        timeout -k 5 900 ./test-runner -L -p1 >"$log" 2>&1)
    status=$?
    # A number may have several rows, as for its part that needs no broker.
    row=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -aE "^\|.* $number[_-]")
    case $row in
        *FAILED*) verdict=fail ;;
        *PASSED*) verdict=pass ;;
        *SKIPPED*) verdict=skip ;;
        *) verdict=fail ;;
    esac
    [ "$verdict" = pass ] && [ "$status" != 0 ] && verdict=fail
    text=$(reason "$log" "$verdict" "$row")
    [ "$status" = 124 ] && text="no end after 900 s; $text"
    result "$number" "$verdict" $((SECONDS - began)) "$text"
}

# The first complaint of a test, or why it was skipped.
reason() {
    case $2 in
        pass) ;;
        skip) printf '%s' "$3" | head -1 |
            sed 's/.*SKIPPED *|[ 0-9.]*s | *//; s/ *|$//' ;;
        *) sed 's/\x1b\[[0-9;]*m//g' "$1" | grep -a '^### Test .* failed at ' -A1 |
            sed -n 2p ;;
    esac
}

# again NUMBERS...: those that failed once more, alone, for several measure time.
again() {
    local number
    for number; do
        grep -q "^$number"$'\tfail\t' "$result_file" || continue
        sed -i "/^$number\t/d" "$result_file"
        one "$number"
    done
}

# group SETTINGS NUMBERS...: a broker with these settings, and the tests on it.
group() {
    local settings=$1 number jobs=${SUITE_JOBS:-3} todo=()
    shift
    for number; do
        [[ -z ${SUITE_ONLY:-} || " $SUITE_ONLY " = *" $number "* ]] || continue
        done_before "$number" || todo+=("$number")
    done
    [ ${#todo[@]} = 0 ] && return
    # shellcheck disable=SC2086
    broker_up 0 $settings
    printf '%s\n' "metadata.broker.list=$broker" test.topic.random=true \
        test.timeout.multiplier="${SUITE_PATIENCE:-2}" >"$broker_dir/test.conf"
    for number in "${todo[@]}"; do
        while [ "$(jobs -rp | grep -cvx "$broker_pid")" -ge "$jobs" ]; do
            wait -n $(jobs -rp | grep -vx "$broker_pid")
        done
        one "$number" &
    done
    wait $(jobs -rp | grep -vx "$broker_pid")
    again "${todo[@]}"
    broker_down
}

build
fetch_kafka
version 2.12.1
# With a delay of 0 the first member gets a generation of its own, which these do not expect.
delayed="0089 0102 0113 0118"
rest=$(for number in $tests; do [[ " $delayed " = *" $number "* ]] || echo "$number"; done)
# shellcheck disable=SC2086
group "" $rest
# shellcheck disable=SC2086
group group.initial.rebalance.delay.ms=3000 $delayed
