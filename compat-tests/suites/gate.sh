#!/usr/bin/env bash
# The part of librdkafka's test runner that runs with every test run: what is quick and passes on
# Apache Kafka and on Gracchus. Ends with a line as cargo test's, and with 1 if something failed.
#
#   gate.sh gracchus|kafka DIR   DIR, outside the tree, keeps what was built
SUITES_CACHE=${2:?a directory for what is built}
. "$(dirname "$0")/lib.sh"
. "$here/runner.sh"

# The long ones come first, so that all end at about the same time.
tests="0033 0093 0088 0122 0050 0114 0123 0075 0018 0084 0015 0038 0017 0086 0019 0030 0011
0041 0067 0083 0001 0002 0003 0005 0007 0008 0012 0013 0014 0016 0020 0021 0022 0029 0031 0034
0035 0036 0039 0040 0042 0044 0048 0054 0056 0057 0059 0060 0063 0064 0065 0068 0070 0073 0082 0085
0090 0099 0112 0125 0127 0130 0132 0140"

# Nothing here wants OpenSSL, SASL or OpenID, so that no further library is needed.
runner_build --disable-optimization --disable-ssl --disable-gssapi --disable-curl --disable-lz4-ext
rm -f "$result_file"
version "$runner_version"
began=$SECONDS
# shellcheck disable=SC2086
SUITE_JOBS=${SUITE_JOBS:-4} group "" $tests
failed=$(grep -c $'\tfail\t' "$result_file")
passed=$(grep -c $'\tpass\t' "$result_file")
skipped=$(grep -c $'\tskip\t' "$result_file")
for number in $(sed -n 's/\tfail\t.*//p' "$result_file"); do
    printf '\n== %s, the end of what it said\n' "$number"
    tail -n 40 "$cache/logs/$suite.$peer.$number.log"
done
printf 'test result: %s. %d passed; %d failed; %d ignored; finished in %d s\n' \
    "$([ "$failed" = 0 ] && echo ok || echo FAILED)" "$passed" "$failed" "$skipped" \
    $((SECONDS - began))
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
