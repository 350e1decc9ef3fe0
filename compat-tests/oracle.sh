#!/usr/bin/env bash
# Runs a command beside a fresh Apache Kafka, whose address it finds in KAFKA_ORACLE.
#
#   compat-tests/oracle.sh COMMAND...
#   compat-tests/oracle.sh --jars       only fetches it, and says where the jars are
#
# The jars come by Maven, once, with the user's settings, into ORACLE_HOME
# (~/.cache/gracchus/kafka-VERSION). Kafka runs as one node in a temporary directory, formatted by
# its own tool, and is stopped when the command ends. ORACLE_PORT (29092) and the port above it
# must be free; ORACLE_HEAP is 1G. The jars are also in KAFKA_JARS, its directory in KAFKA_DATA.
# Needs mvn and Java 17 or later.
set -euo pipefail
cd "$(dirname "$0")"

readonly VERSION=4.4.0
readonly LOG4J=2.25.1
readonly HOME_DIR=${ORACLE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/gracchus/kafka-$VERSION}
readonly PORT=${ORACLE_PORT:-29092}
readonly HEAP=${ORACLE_HEAP:-1G}
readonly READY_WITHIN_S=90

say() { printf 'oracle: %s\n' "$*" >&2; }

dependency() {
    printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId>' "$1" "$2"
    printf '<version>%s</version></dependency>\n' "$3"
}

fetch() {
    [ -e "$HOME_DIR/complete" ] && return
    for tool in mvn java; do
        command -v "$tool" >/dev/null || { say "$tool is not installed"; exit 1; }
    done
    say "fetching Apache Kafka $VERSION"
    mkdir -p "$HOME_DIR"
    {
        echo '<project><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>oracle</groupId><artifactId>oracle</artifactId><version>1</version>'
        echo '<dependencies>'
        dependency org.apache.kafka kafka_2.13 "$VERSION"
        dependency org.apache.kafka kafka-tools "$VERSION"
        dependency org.apache.logging.log4j log4j-core "$LOG4J"
        dependency org.apache.logging.log4j log4j-slf4j-impl "$LOG4J"
        echo '</dependencies></project>'
    } >"$HOME_DIR/pom.xml"
    mvn -q -B -f "$HOME_DIR/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$HOME_DIR/lib" >&2
    touch "$HOME_DIR/complete"
}

kafka() { java "-Dlog4j2.configurationFile=$work/log4j2.xml" -cp "$HOME_DIR/lib/*" "$@"; }

settings() {
    cat <<-PROPERTIES
	process.roles=broker,controller
	listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$((PORT + 1))
	controller.listener.names=CONTROLLER
	controller.quorum.bootstrap.servers=127.0.0.1:$((PORT + 1))
	log.dirs=$work/data
	PROPERTIES
    cat recorded/server.properties
}

start() {
    cat >"$work/log4j2.xml" <<-'XML'
	<Configuration><Appenders><Console name="out"><PatternLayout pattern="%d %p %c{1} %m%n"/></Console>
	</Appenders><Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
	XML
    settings >"$work/server.properties"
    local cluster
    cluster=$(kafka kafka.tools.StorageTool random-uuid 2>/dev/null | tail -1)
    kafka kafka.tools.StorageTool format --standalone -t "$cluster" -c "$work/server.properties" \
        >"$work/format.log" 2>&1 || { cat "$work/format.log" >&2; exit 1; }
    java "-Xms$HEAP" "-Xmx$HEAP" "-Dlog4j2.configurationFile=$work/log4j2.xml" \
        -cp "$HOME_DIR/lib/*" kafka.Kafka "$work/server.properties" >"$work/kafka.log" 2>&1 &
    pid=$!
    local _
    for _ in $(seq $((READY_WITHIN_S * 10))); do
        # The port opens when the broker has caught up and serves.
        (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && return
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    say "Kafka does not serve; the end of its log:"
    tail -20 "$work/kafka.log" >&2
    exit 1
}

stop() {
    if [ -n "${pid:-}" ]; then
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    rm -rf "$work"
}

[ $# -gt 0 ] || { sed -n '2,12s/^# \{0,1\}//p' oracle.sh; exit 2; }
fetch
[ "$1" != --jars ] || { printf '%s\n' "$HOME_DIR/lib"; exit 0; }
pid=
work=$(mktemp -d "${TMPDIR:-/tmp}/gracchus-oracle-XXXXXX")
trap stop EXIT
trap 'exit 130' INT TERM
start
export KAFKA_ORACLE=127.0.0.1:$PORT KAFKA_JARS=$HOME_DIR/lib KAFKA_DATA=$work/data
cd ..
"$@"
