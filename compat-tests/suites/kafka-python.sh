#!/usr/bin/env bash
# kafka-python's integration tests, from its source package.
. "$(dirname "$0")/lib.sh"

release=3.0.12
home=$cache/kafka-python-$release

build() {
    [ -e "$home/built" ] && return
    want python3
    mkdir -p "$home"
    {
        python3 -m venv "$home/venv" &&
            "$home/venv/bin/pip" download -q --no-deps --no-binary :all: --no-build-isolation \
                -d "$home" "kafka-python==$release" ||
            "$home/venv/bin/pip" download -q --no-deps --no-binary :all: -d "$home" \
                "kafka-python==$release"
        tar -C "$home" -xzf "$home"/kafka?python-"$release".tar.gz
        "$home/venv/bin/pip" install -q "kafka-python==$release" pytest pytest-timeout pytest-mock \
            pytest-asyncio lz4 zstandard python-snappy crc32c xxhash
    } >"$home/build.log" 2>&1
    local tests
    tests=$(echo "$home"/kafka?python-"$release"/test)
    [ -d "$tests/integration" ] || die "see $home/build.log"
    # Two files that the package leaves out; an outside broker needs no more of them.
    touch "$tests/__init__.py"
    cat >"$tests/service.py" <<'PY'
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    close = stop = open


class SpawnedService:
    pass
PY
    touch "$home/built"
}

build
version "$release"
done_before "part all" && exit 0
broker_up 0 group.min.session.timeout.ms=1000 group.initial.rebalance.delay.ms=3000
cd "$home"/kafka?python-"$release" || exit 1
# A file of this name from an earlier run would hide that this one wrote none.
rm -f "$home/$peer.xml"
KAFKA_URI=kafka://$broker KAFKA_VERSION=4.3.0 KAFKA_ROOT=$home timeout 900 \
    "$home/venv/bin/python" -m pytest -q --timeout 60 --timeout-method=signal \
    --deselect test/integration/test_sasl_integration.py \
    --ignore test/integration/test_sasl_integration.py -k 'not ssl and not sasl' \
    --junitxml "$home/$peer.xml" test/integration >"$home/$peer.log" 2>&1
[ -s "$home/$peer.xml" ] || die "see $home/$peer.log"
while IFS=$'\t' read -r name verdict seconds text; do
    result "$name" "$verdict" "$seconds" "$text"
done < <("$home/venv/bin/python" - "$home/$peer.xml" <<'PY'
import sys
import xml.etree.ElementTree as tree

for case in tree.parse(sys.argv[1]).iter("testcase"):
    bad = [case.find(kind) for kind in ("failure", "error")]
    bad = [one for one in bad if one is not None]
    skipped = case.find("skipped")
    word = "fail" if bad else "skip" if skipped is not None else "pass"
    text = bad[0].get("message") if bad else skipped.get("message") if word == "skip" else ""
    name = case.get("classname").split(".")[-1] + "::" + case.get("name")
    print(name, word, int(float(case.get("time"))), " ".join((text or "").split()), sep="\t")
PY
)
printf 'part all\tpart\t0\t\n' >>"$result_file"
