#!/usr/bin/env bash
# kcat against a broker: kcat.sh BOOTSTRAP. Prints "name ok" or "name FAIL reason" lines.
set -uo pipefail
at=$1
stamp=$(date +%s%N)
failed=0

verdict() {
    if [ "$2" = "$3" ]; then
        echo "$1 ok"
    else
        failed=1
        echo "$1 FAIL got '${2:0:60}'"
    fi
}

verdict metadata "$(kcat -b "$at" -L | grep -c 'broker.* at ')" 1
for codec in none gzip snappy lz4 zstd; do
    topic="kcat-$codec-$stamp"
    seq 1 200 | kcat -b "$at" -t "$topic" -P -z "$codec" -p 0 2>/dev/null
    verdict "codec $codec" "$(kcat -b "$at" -t "$topic" -C -e -q -p 0 | md5sum)" "$(seq 1 200 | md5sum)"
done
topic="kcat-fields-$stamp"
printf 'k:v\n' | kcat -b "$at" -t "$topic" -P -K: -H name=value
verdict "keys and headers" "$(kcat -b "$at" -t "$topic" -C -e -q -f '%k %s %h')" "k v name=value"
printf 'k:\n' | kcat -b "$at" -t "$topic-null" -P -K: -Z
verdict "null value" "$(kcat -b "$at" -t "$topic-null" -C -e -q -f '%k %S')" "k -1"
seq 1 50 | kcat -b "$at" -t "$topic-idem" -P -p 0 -X enable.idempotence=true
verdict idempotence "$(kcat -b "$at" -t "$topic-idem" -C -e -q | tr '\n' ' ')" "$(seq 1 50 | tr '\n' ' ')"
verdict "offset by time" "$(kcat -b "$at" -Q -t "$topic-idem:0:1" | grep -o 'offset 0')" "offset 0"
got=$(timeout 30 kcat -b "$at" -G "g-$stamp" -X auto.offset.reset=earliest -c 50 -q "$topic-idem" 2>/dev/null | wc -l)
verdict "group reads all" "$got" 50
exit "$failed"
