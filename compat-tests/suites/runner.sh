# librdkafka's own test runner: how it is built, and how its tests are run by number. Sourced by
# librdkafka.sh (all of them) and gate.sh (those of every test run).
#
#   SUITE_JOBS=3   tests that run at a time
#   SUITE_ONLY='0012 0017'   only these

runner_version=2.12.1
scenario=default
tree=$cache/librdkafka-$runner_version

# runner_build ARGS...: builds $tree from the sources inside crates.io's rdkafka-sys.
runner_build() {
    [ -e "$tree/built" ] && return
    want cargo make gcc g++
    local crate=rdkafka-sys-4.10.0+$runner_version source
    source=$(runner_source "$crate") || {
        (cd "$root" && cargo fetch) || die "cargo fetch"
        source=$(runner_source "$crate") || die "there is no $crate among cargo's sources"
    }
    rm -rf "$tree"
    mkdir -p "$(dirname "$tree")"
    cp -r "$source" "$tree"
    # Called by make, it would hand its flags on.
    unset MAKEFLAGS MFLAGS MAKELEVEL
    # Warnings about sources of others say nothing here.
    (cd "$tree" && CFLAGS=-w CXXFLAGS=-w ./configure "$@" && make -j2 libs &&
        make -j2 -C tests build) >"$tree.log" 2>&1 || {
        tail -5 "$tree.log" >&2
        die "see $tree.log"
    }
    touch "$tree/built"
}

runner_source() {
    local found
    for found in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1"/librdkafka; do
        [ -d "$found" ] && { printf '%s\n' "$found"; return 0; }
    done
    return 1
}

# named NUMBER: the name of a test in the results.
named() { printf '%s' "$1"; [ "$scenario" = default ] || printf ' %s' "$scenario"; }

# one NUMBER: runs it and writes its result.
one() {
    local number=$1 log began=$SECONDS row verdict text status
    log=$cache/logs/$suite.$peer.$(named "$number" | tr ' ' .).log
    mkdir -p "$cache/logs"
    (cd "$tree/tests" && LD_LIBRARY_PATH=../src:../src-cpp RDKAFKA_TEST_CONF=$broker_dir/test.conf \
        TEST_KAFKA_VERSION=4.2.0 TEST_SCENARIO=$scenario KAFKA_PATH=$kafka_home BROKERS=$broker \
        TESTS=$number timeout -k 5 900 ./test-runner -L -p1 >"$log" 2>&1)
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
    result "$(named "$number")" "$verdict" $((SECONDS - began)) "$text"
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
    local number name
    for number; do
        name=$(named "$number")
        grep -q "^$name"$'\tfail\t' "$result_file" || continue
        sed -i "/^$name\t/d" "$result_file"
        one "$number"
    done
}

# group SETTINGS NUMBERS...: a broker with these settings, and the tests on it.
group() {
    local settings=$1 number jobs=${SUITE_JOBS:-3} todo=()
    shift
    for number; do
        [[ -z ${SUITE_ONLY:-} || " $SUITE_ONLY " = *" $number "* ]] || continue
        done_before "$(named "$number")" || todo+=("$number")
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
