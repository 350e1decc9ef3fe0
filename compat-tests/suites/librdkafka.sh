#!/usr/bin/env bash
# librdkafka's own test runner, all tests that want a broker. The others test the library or its
# mock. runner.sh says what the environment may set.
. "$(dirname "$0")/lib.sh"
. "$here/runner.sh"

tests="0001 0002 0003 0005 0008 0011 0012 0013 0017 0036 0038 0048 0055 0070 0082 0086 0110 0114
0125 0014 0015 0022 0029 0031 0034 0041 0052 0054 0059 0061 0065 0067 0093 0123 0127 0137 0018 0019
0026 0030 0033 0040 0045 0050 0051 0056 0060 0084 0089 0091 0099 0102 0113 0118 0122 0130 0132 0140
0090 0098 0103 0129 0007 0021 0028 0035 0042 0044 0047 0057 0063 0069 0081 0107 0109 0111 0112 0039
0064 0073 0083 0085 0092 0077 0097 0115 0119 0126 0135 0142 0139 0150 0016 0020 0049 0053 0068 0075
0076 0088 0094 0101 0153"
# With a delay of 0 the first member gets a generation of its own, which these do not expect.
delayed="0089 0102 0113 0118"

[ -e "$tree/built" ] || [ -e /usr/include/rapidjson/document.h ] || die "needs rapidjson-dev"
runner_build
fetch_kafka
version "$runner_version"
rest=$(for number in $tests; do [[ " $delayed " = *" $number "* ]] || echo "$number"; done)
# shellcheck disable=SC2086
group "" $rest
# shellcheck disable=SC2086
group group.initial.rebalance.delay.ms=3000 $delayed
# What the runner keeps for brokers that make no topics by themselves.
scenario=noautocreate
group auto.create.topics.enable=false 0045 0107 0111
