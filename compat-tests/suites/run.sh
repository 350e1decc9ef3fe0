#!/usr/bin/env bash
# Runs the suites, one after another, on Gracchus and on Apache Kafka; then writes the pages.
#
#   compat-tests/suites/run.sh [SUITE...]     all, or these
#   PEERS=gracchus                            only one of the two brokers
#   SUITES_RESULTS=DIR                        results; outside the tree unless it is given
#
# What has a result is not run again: a run that was cut off goes on. Remove a result file, or lines
# of it, to repeat.
. "$(dirname "$0")/lib.sh"

all="clients kafka-tools franz rust-rdkafka kafka-python streams librdkafka"
# shellcheck disable=SC2048
for one in ${*:-$all}; do
    [ -x "$here/$one.sh" ] || die "there is no suite $one; there are: $all"
    for where in ${PEERS:-gracchus kafka}; do
        "$here/$one.sh" "$where" || printf '%s on %s did not end well\n' "$one" "$where" >&2
    done
done
exec "$here/page.sh"
