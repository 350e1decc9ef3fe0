#!/usr/bin/env bash
# What the suites share: where things lie, a broker to run against, how a result is kept.
#
# A suite's script is called as SUITE.sh PEER, PEER being gracchus or kafka. Results go to
# $SUITES_RESULTS/SUITE.PEER.tsv, one line a test: name, pass|fail|skip, seconds, what was said.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${SUITES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gracchus/suites}
results=${SUITES_RESULTS:-$cache/results}
kafka_version=4.4.0
suite=$(basename "$0" .sh)
peer=${1:-}
mkdir -p "$cache" "$results"

die() { printf '%s: %s\n' "$suite" "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
want() { local tool; for tool; do have "$tool" || die "needs $tool"; done; }

[ "$suite" = run ] || [ "$suite" = page ] || [ "$suite" = broker ] ||
    case $peer in gracchus | kafka) ;; *) die "call it with gracchus or kafka" ;; esac
result_file=$results/$suite.$peer.tsv

# version TEXT: what was run; the first line of the results.
version() { [ -s "$result_file" ] || printf '#version\t%s\n' "$1" >"$result_file"; }

# result TEST VERDICT SECONDS [TEXT]
result() {
    local text=${4:-}
    text=$(printf '%s' "$text" | tr '\t\n\r' '   ' | cut -c1-300)
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$text" >>"$result_file"
    printf '%-10s %-8s %-50s %-4s %6s s  %.80s\n' "$suite" "$peer" "$1" "$2" "$3" "$text"
}

# done_before TEST: whether it has a result, so that a run that was cut off goes on.
done_before() { [ -e "$result_file" ] && cut -f1 "$result_file" | grep -qxF -- "$1"; }

# fetch_jars DIR GROUP:ARTIFACT:VERSION[:CLASSIFIER]...: jars and what they need, in DIR/libs.
fetch_jars() {
    local home=$1 part rows="" group artifact release classifier
    shift
    [ -d "$home/libs" ] && return
    want java mvn
    mkdir -p "$home"
    for part; do
        IFS=: read -r group artifact release classifier <<<"$part"
        rows+="<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId>"
        rows+="<version>$release</version>"
        rows+="${classifier:+<classifier>$classifier</classifier>}</dependency>"
    done
    cat >"$home/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>suites</groupId><artifactId>suites</artifactId><version>1</version>
<dependencies>$rows</dependencies></project>
POM
    mvn -q -B -f "$home/pom.xml" dependency:copy-dependencies \
        "-DoutputDirectory=$home/libs.new" >&2 || die "Maven did not fetch $*"
    mv "$home/libs.new" "$home/libs"
}

# Apache Kafka's jars, its tools as scripts, in $cache/kafka-VERSION.
kafka_home=$cache/kafka-$kafka_version
fetch_kafka() {
    [ -e "$kafka_home/fetched" ] && return
    local of=org.apache.kafka logging=org.apache.logging.log4j
    fetch_jars "$kafka_home" "$of:kafka_2.13:$kafka_version" "$of:kafka-tools:$kafka_version" \
        "$of:kafka-streams:$kafka_version" "$logging:log4j-core:2.25.1" \
        "$logging:log4j-slf4j-impl:2.25.1"
    mkdir -p "$kafka_home/bin"
    cat >"$kafka_home/log4j2.xml" <<'XML'
<Configuration><Appenders><Console name="out" target="SYSTEM_ERR"/></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
XML
    kafka_script kafka-topics org.apache.kafka.tools.TopicCommand
    kafka_script kafka-acls org.apache.kafka.tools.AclCommand
    touch "$kafka_home/fetched"
}

kafka_script() {
    printf '#!/bin/sh\nexec java "-Dlog4j2.configurationFile=%s" -cp "%s/*" %s "$@"\n' \
        "$kafka_home/log4j2.xml" "$kafka_home/libs" "$2" >"$kafka_home/bin/$1.sh"
    chmod +x "$kafka_home/bin/$1.sh"
}

kafka_java() {
    java "-Dlog4j2.configurationFile=$kafka_home/log4j2.xml" -cp "$kafka_home/libs/*" "$@"
}

# What nearly all suites assume of a broker. A suite adds to it by arguments of broker_up.
common_settings=(
    node.id=0
    num.partitions=4
    auto.create.topics.enable=true
    offsets.topic.replication.factor=1
    transaction.state.log.replication.factor=1
    transaction.state.log.min.isr=1
    share.coordinator.state.topic.replication.factor=1
    share.coordinator.state.topic.min.isr=1
    group.initial.rebalance.delay.ms=0
    group.coordinator.rebalance.protocols=classic,consumer,share,streams
    group.share.record.lock.duration.ms=1000
    group.share.min.record.lock.duration.ms=1000
    log.cleaner.backoff.ms=200
    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    allow.everyone.if.no.acl.found=true
)

is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
free_port() {
    local port
    for _ in $(seq 100); do
        port=$((20000 + RANDOM % 12000))
        is_free "$port" && { echo "$port"; return; }
    done
    die "no free port"
}

broker_pid="" broker_dir=""

# broker_up PORT SETTING...: starts the peer; PORT 0 is any. Sets $broker to its address.
broker_up() {
    local port=$1 controller setting
    shift
    [ "$port" = 0 ] && port=$(free_port)
    is_free "$port" || die "port $port is in use"
    controller=$(free_port)
    broker=127.0.0.1:$port
    broker_dir=$(mktemp -d "${TMPDIR:-/tmp}/suites-$suite-XXXXXX")
    local file=$broker_dir/server.properties
    {
        printf '%s\n' process.roles=broker,controller controller.listener.names=CONTROLLER \
            "listeners=PLAINTEXT://$broker,CONTROLLER://127.0.0.1:$controller" \
            "advertised.listeners=PLAINTEXT://$broker" "log.dirs=$broker_dir/data" \
            "controller.quorum.bootstrap.servers=127.0.0.1:$controller"
        # Later lines win in both brokers.
        for setting in "${common_settings[@]}" "$@"; do printf '%s\n' "$setting"; done
    } >"$file"
    "start_$peer" "$file"
    trap broker_down EXIT
    trap 'exit 1' INT TERM
    for _ in $(seq 900); do
        is_free "$port" || break
        kill -0 "$broker_pid" 2>/dev/null || break
        sleep 0.2
    done
    is_free "$port" && { tail -20 "$broker_dir/out.log" >&2; die "$peer does not serve"; }
    sleep 1
}

start_gracchus() {
    local binary=${GRACCHUS_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/gracchus}
    [ -x "$binary" ] || die "there is no $binary: build it or set GRACCHUS_BIN"
    "$binary" "$1" --override http.listen=127.0.0.1:"$(free_port)" \
        >"$broker_dir/out.log" 2>&1 </dev/null &
    broker_pid=$!
}

start_kafka() {
    fetch_kafka
    kafka_java kafka.tools.StorageTool format --standalone -c "$1" \
        -t "$(kafka_java kafka.tools.StorageTool random-uuid 2>/dev/null | tail -1)" \
        >"$broker_dir/format.log" 2>&1 || { cat "$broker_dir/format.log" >&2; die "format"; }
    KAFKA_JAVA_OPTS="" kafka_java -Xms"${KAFKA_HEAP:-1G}" -Xmx"${KAFKA_HEAP:-1G}" kafka.Kafka \
        "$1" >"$broker_dir/out.log" 2>&1 </dev/null &
    broker_pid=$!
}

# Stops the broker; its log stays in the folder of the results when the suite failed.
broker_down() {
    [ -n "$broker_pid" ] || return 0
    kill "$broker_pid" 2>/dev/null
    for _ in $(seq 100); do kill -0 "$broker_pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$broker_pid" 2>/dev/null
    wait "$broker_pid" 2>/dev/null
    cp "$broker_dir/out.log" "$results/$suite.$peer.broker.log" 2>/dev/null
    rm -rf "$broker_dir"
    broker_pid=""
}
