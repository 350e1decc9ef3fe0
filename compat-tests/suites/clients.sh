#!/usr/bin/env bash
# The programs of compat-tests/clients, one a client, against one broker.
. "$(dirname "$0")/lib.sh"

programs=$root/compat-tests/clients
home=$cache/clients
mkdir -p "$home"

# client NAME VERSION COMMAND...: keeps its lines "ability ok" and "ability FAIL why".
client() {
    local name="$1 $2" line log=$home/$1.$peer.log
    shift 2
    done_before "part $name" && return
    # The address comes last in every program.
    timeout 300 "$@" "$broker" >"$log" 2>"$log.err" </dev/null || true
    [ -s "$log" ] || result "$name: start" fail 0 "$(tail -n 1 "$log.err")"
    while read -r line; do
        case $line in
            *" ok") result "$name: ${line% ok}" pass 0 ;;
            *" FAIL "*) result "$name: ${line%% FAIL *}" fail 0 "${line#* FAIL }" ;;
        esac
    done <"$log"
    printf 'part %s\tpart\t0\t\n' "$name" >>"$result_file"
}

absent() { printf 'clients: %s is left out: no %s here\n' "$1" "$2" >&2; }

# module NAME: the version that go.mod asks for.
module() { awk -v name="$1" '$1 == name { print substr($2, 2) }' "$programs/go/go.mod"; }

go_clients() {
    have go || { absent "franz-go, Sarama, kafka-go" go; return; }
    (cd "$programs/go" && go build -o "$home/go/" ./...) || { absent Go "modules"; return; }
    client franz-go "$(module github.com/twmb/franz-go)" "$home/go/franz"
    client Sarama "$(module github.com/IBM/sarama)" "$home/go/sarama"
    client kafka-go "$(module github.com/segmentio/kafka-go)" "$home/go/kafkago"
}

python_clients() {
    have python3 || { absent "the Python clients" python3; return; }
    local wanted=$programs/python/requirements.txt name
    cmp -s "$wanted" "$home/python/requirements.txt" || {
        python3 -m venv "$home/python" && "$home/python/bin/pip" install -q -r "$wanted" &&
            cp "$wanted" "$home/python/requirements.txt" || { absent Python packages; return; }
    }
    export PYTHONDONTWRITEBYTECODE=1
    for name in confluent-kafka kafka-python aiokafka; do
        client "$name" "$(sed -n "s/^$name==//p" "$wanted")" \
            "$home/python/bin/python" "$programs/python/main.py" "$name"
    done
}

node_clients() {
    have npm || { absent KafkaJS npm; return; }
    mkdir -p "$home/node"
    cp "$programs"/node/{package.json,package-lock.json,main.js} "$home/node/"
    (cd "$home/node" && npm ci --silent --no-audit --no-fund) || {
        absent KafkaJS packages
        return
    }
    local release
    release=$(sed -n 's/.*"kafkajs": "\([0-9.]*\)".*/\1/p' "$programs/node/package.json")
    client KafkaJS "$release" node "$home/node/main.js"
}

fetch_kafka
version "$kafka_version"
broker_up 0
client kafka-clients "$kafka_version" java "-Dlog4j2.configurationFile=$kafka_home/log4j2.xml" \
    -cp "$kafka_home/libs/*" "$programs/java/Main.java"
go_clients
python_clients
node_clients
if have kcat; then
    client kcat "$(kcat -V 2>&1 | sed -n 's/.*Version \([0-9.]*\).*/\1/p')" "$programs/kcat.sh"
else
    absent kcat kcat
fi
