#!/usr/bin/env bash
# Programs of Apache Kafka's own system tests: compatibility, verifiable producer and consumer,
# the copier in transactions.
. "$(dirname "$0")/lib.sh"

log=$cache/logs/kafka-tools.$peer
mkdir -p "$log"

# tool TEST PATTERN COUNT CLASS ARGS...: passes when it ends well and COUNT lines have PATTERN.
tool() {
    local name=$1 pattern=$2 count=$3 began=$SECONDS status found verdict=pass text=""
    shift 3
    done_before "$name" && return
    timeout 120 java "-Dlog4j2.configurationFile=$kafka_home/log4j2.xml" \
        -cp "$kafka_home/libs/*" "$@" >"$log/$name.out" 2>&1 </dev/null
    status=$?
    found=$(grep -cE "$pattern" "$log/$name.out")
    if [ "$status" != 0 ] || [ "$found" -lt "$count" ]; then
        verdict=fail
        text="status $status, $found of $count lines: "
        text+=$(grep -E 'xception' "$log/$name.out" | head -1)
    fi
    result "$name" "$verdict" $((SECONDS - began)) "$text"
}

# compatibility NAME ACLS: every feature that a new client may find.
compatibility() {
    tool "$1" '^SUCCESS' 1 org.apache.kafka.tools.ClientCompatibilityTest \
        --bootstrap-server "$broker" --topic "compat-$1" --num-cluster-nodes 1 \
        --offsets-for-times-supported True --cluster-id-supported True \
        --expect-record-too-large-exception False --create-topics-supported True \
        --describe-acls-supported "$2" --describe-configs-supported True \
        --idempotent-producer-supported True
}

# consume NAME ARGS...: 20,000 records in one group.
consume() {
    local name=$1
    shift
    # It ends well whatever happened; 20,000 records come as some 40 events.
    tool "$name" '"name":"records_consumed"' 20 org.apache.kafka.tools.VerifiableConsumer \
        --bootstrap-server "$broker" --topic verifiable --group-id "$name" \
        --max-messages 20000 --reset-policy earliest "$@"
}

fetch_kafka
version "$kafka_version"
# The first group of a broker waits until this topic is made, and the program only ten seconds.
broker_up 0 offsets.topic.num.partitions=4
compatibility compatibility True
# The program wants to make this topic itself.
kafka_java org.apache.kafka.tools.TopicCommand --bootstrap-server "$broker" --delete \
    --topic newtopic --if-exists >/dev/null 2>&1
compatibility compatibility-without-acls False
# What the others read; written again where a broken-off run goes on.
sed -i '/^verifiable-producer\t/d' "$result_file"
tool verifiable-producer '"name":"producer_send_success"' 20000 \
    org.apache.kafka.tools.VerifiableProducer --bootstrap-server "$broker" --topic verifiable \
    --max-messages 20000 --acks -1
consume verifiable-consumer
consume verifiable-consumer-autocommit --enable-autocommit
consume verifiable-consumer-static --group-instance-id one
consume verifiable-consumer-848 --group-protocol consumer
tool transactional-copier '"remaining":0|shutdown_complete' 1 \
    org.apache.kafka.tools.TransactionalMessageCopier --broker-list "$broker" \
    --input-topic verifiable --input-partition 0 --output-topic copied --max-messages 1000 \
    --consumer-group copier --transaction-size 100 --transactional-id copier \
    --enable-random-aborts
for what in list "describe-producers --topic verifiable --partition 0" "find-hanging --broker-id 0"
do
    # shellcheck disable=SC2086
    tool "transactions-${what%% *}" . 0 org.apache.kafka.tools.TransactionsCommand \
        --bootstrap-server "$broker" $what
done
