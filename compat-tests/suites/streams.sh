#!/usr/bin/env bash
# Programs of Kafka Streams' own system tests: a driver writes records, an application with joins,
# windows and tables works on them, the driver checks what came out.
. "$(dirname "$0")/lib.sh"

# The newest release whose tests are published.
release=4.3.1
home=$cache/streams-$release
log=$cache/logs/streams.$peer
state=""
classes=org.apache.kafka.streams.tests
mkdir -p "$log"

build() {
    local app=org.apache.kafka:kafka-streams:$release logging=org.apache.logging.log4j
    fetch_jars "$home" "$app" "$app:test" "org.apache.kafka:kafka-clients:$release:test" \
        "$logging:log4j-core:2.25.1" "$logging:log4j-slf4j-impl:2.25.1" \
        org.junit.jupiter:junit-jupiter-api:5.13.1 org.hamcrest:hamcrest:3.0
    cat >"$home/log4j2.xml" <<XML
<Configuration><Appenders><Console name="out" target="SYSTEM_OUT"/></Appenders><Loggers>
<Root level="WARN"><AppenderRef ref="out"/></Root>
<Logger name="$classes" level="INFO"/></Loggers></Configuration>
XML
}

streams_java() {
    exec java -Xmx512m "-Dlog4j2.configurationFile=$home/log4j2.xml" -cp "$home/libs/*" "$@"
}

# topics NAME...: what an application reads; what it writes is made by itself.
topics() {
    local topic
    for topic; do
        "$kafka_home/bin/kafka-topics.sh" --bootstrap-server "$broker" --create --topic "$topic" \
            >"$log/topics.out" 2>&1 || die "see $log/topics.out"
    done
}

# properties GUARANTEE NAME: the settings of one instance; prints the file.
properties() {
    local file=$state/$2.properties
    printf '%s\n' "bootstrap.servers=$broker" "state.dir=$state/$2" "processing.guarantee=$1" \
        num.stream.threads=2 >"$file"
    printf '%s\n' "$file"
}

apps=()

# app NAME CLASS ARGS...: starts an instance of an application.
app() {
    local name=$1
    shift
    (streams_java "$@") >"$log/$test.$name.out" 2>&1 </dev/null &
    apps+=($!)
}

# check PATTERN SECONDS CLASS ARGS...: the driver; passes when it says PATTERN in time.
check() {
    local pattern=$1 limit=$2 began=$SECONDS verdict=fail text pid
    shift 2
    (streams_java "$@") >"$log/$test.driver.out" 2>&1 </dev/null &
    pid=$!
    ${meanwhile:-true}
    while kill -0 "$pid" 2>/dev/null && [ $((SECONDS - began)) -lt "$limit" ]; do
        # Nothing comes of an application that got no producer id in a minute.
        grep -qsE 'awaiting InitProducerId|trying to initialize transactions' "$log/$test".*.out && break
        sleep 1
    done
    kill "$pid" 2>/dev/null
    grep -qE "$pattern" "$log/$test.driver.out" && verdict=pass
    apps+=("$pid")
    end_apps
    text=$([ "$verdict" = pass ] || complaint)
    result "$test" "$verdict" $((SECONDS - began)) "$text"
}

end_apps() {
    local pid
    for pid in "${apps[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${apps[@]}"; do
        for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
        kill -9 "$pid" 2>/dev/null
    done
    apps=()
}

# What an application complained of first, or the last word of the driver.
complaint() {
    grep -hE 'Exception' "$log/$test".*.out | head -1 || tail -1 "$log/$test.driver.out"
}

# crash GUARANTEE: an instance is added, the first is killed, a third takes its place.
crash() {
    sleep 15
    app second $classes.StreamsSmokeTest "$(properties "$1" second)" process
    sleep 20
    kill -9 "${apps[0]}"
    sleep 10
    app third $classes.StreamsSmokeTest "$(properties "$1" third)" process
}

# begin TEST: whether it is to be run; starts a broker of its own, for names repeat.
begin() {
    test=$1
    done_before "$test" && return 1
    rm -f "$log/$test".*
    # The programs expect five partitions of every topic.
    broker_up 0 num.partitions=5
    state=$broker_dir/streams
    mkdir -p "$state"
}

smoke() {
    begin "smoke-$1" || return
    topics data fk min max cnt sum
    app first $classes.StreamsSmokeTest "$(properties "$1" first)" process
    # After a crash at least once may count twice.
    local said='^SUCCESS'
    [ "$1" = at_least_once ] && said+='|^PROCESSED-MORE-THAN-GENERATED'
    meanwhile="crash $1" check "$said" 600 \
        $classes.StreamsSmokeTest "$(properties "$1" driver)" run
    broker_down
}

relational() {
    begin "relational-$1" || return
    topics in-article in-comment
    app first $classes.RelationalSmokeTest application "$broker" 1 "$1" classic "$state/first"
    check 'Smoke test complete: passed' 900 \
        $classes.RelationalSmokeTest driver "$broker"
    broker_down
}

compatibility() {
    begin "compatibility-$1" || return
    topics brokerCompatibilitySourceTopic
    check '^close Kafka Streams' 180 \
        $classes.BrokerCompatibilityTest "$(properties "$1" first)" "$1"
    broker_down
}

build
fetch_kafka
version "$release"
for guarantee in at_least_once exactly_once_v2; do
    compatibility "$guarantee"
    relational "$guarantee"
    smoke "$guarantee"
done
