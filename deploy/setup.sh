#!/usr/bin/env bash
# Sees to what a build needs from the system, then runs the command given to it.
#
#   deploy/setup.sh [--for build|test] [COMMAND...]
#
# Missing packages are installed with apt when this runs as root or can use sudo; elsewhere the
# line to run is printed. Where everything is there, this takes a few milliseconds.
# GRACCHUS_BUNDLED_ROCKSDB=1 ignores the system's RocksDB and has cargo compile its own.
set -euo pipefail

readonly RUST_NEEDED=1.95.0

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The first of the files named that exists.
first_of() {
    local file
    for file in "$@"; do
        [ -e "$file" ] && { printf '%s\n' "$file"; return 0; }
    done
    return 1
}

# Debian's name for this machine, as in /usr/lib/x86_64-linux-gnu; nothing elsewhere.
multiarch() {
    dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch 2>/dev/null || true
}

# The directory in which the linker finds lib$1.so.
lib_dir() {
    local arch file
    arch=$(multiarch)
    file=$(first_of ${arch:+"/usr/lib/$arch/lib$1.so"} "/usr/lib64/lib$1.so" \
        "/usr/lib/lib$1.so" "/usr/local/lib/lib$1.so") ||
        file=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
            awk -v name="lib$1.so" '$1 == name { print $NF; exit }') || true
    [ -n "$file" ] && dirname "$file"
}

# libclang with the headers that come with it: bindgen reads RocksDB's C header through both.
have_libclang() {
    local lib headers
    lib=$(first_of ${LIBCLANG_PATH:+"$LIBCLANG_PATH"/libclang*.so*} /usr/lib/llvm-*/lib/libclang*.so* \
        /usr/lib/*/libclang*.so* /usr/lib64/libclang*.so* /usr/lib64/llvm*/lib/libclang*.so* \
        /usr/lib/libclang*.so*) || return 1
    headers=$(first_of /usr/lib/llvm-*/lib/clang/*/include/stddef.h /usr/lib/clang/*/include/stddef.h \
        /usr/lib64/clang/*/include/stddef.h) || return 1
    [ -n "$lib" ] && [ -n "$headers" ]
}

have_header() { first_of "/usr/include/$1" "/usr/local/include/$1" >/dev/null; }

wants_system_rocksdb() { [ "${GRACCHUS_BUNDLED_ROCKSDB:-0}" != 1 ]; }

# What is missing, as Debian packages; one a line.
missing_packages() {
    have g++ && have make || echo build-essential
    have pkg-config || echo pkg-config
    have_libclang || echo libclang-dev
    if wants_system_rocksdb && [ -z "${ROCKSDB_LIB_DIR:-}" ]; then
        lib_dir rocksdb >/dev/null || echo librocksdb-dev
        lib_dir snappy >/dev/null || echo libsnappy-dev
    fi
    if [ "$purpose" = test ]; then
        have cmake || echo cmake
        # librdkafka's test runner is built with the codecs of the system.
        have_header zlib.h || echo zlib1g-dev
        have_header zstd.h || echo libzstd-dev
        # The gates count instructions and system calls.
        have valgrind || echo valgrind
        have strace || echo strace
    fi
}

# apt-get, with sudo where that is needed.
apt() {
    local sudo=()
    # Without a terminal nobody can type a password.
    if [ "$(id -u)" != 0 ]; then
        if [ -t 0 ]; then sudo=(sudo); else sudo=(sudo -n); fi
    fi
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >&2
}

may_install() { [ "$(id -u)" = 0 ] || have sudo; }

install_missing() {
    local packages
    mapfile -t packages < <(missing_packages)
    [ "${#packages[@]}" -gt 0 ] || return 0
    say "missing: ${packages[*]}"
    if ! have apt-get; then
        say "this is no Debian or Ubuntu; install what these packages hold in your own way"
        say "(Fedora: dnf install gcc-c++ make pkgconf clang-devel rocksdb-devel snappy-devel cmake)"
        return 0
    fi
    local line="apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
    if ! may_install; then
        say "as root, run: $line"
        return 0
    fi
    say "running: $line"
    if apt update && apt install -y --no-install-recommends "${packages[@]}"; then
        return 0
    fi
    # A distribution may lack RocksDB alone; the others are worth a second try.
    local rest=()
    local package
    for package in "${packages[@]}"; do
        case $package in librocksdb-dev | libsnappy-dev) ;; *) rest+=("$package") ;; esac
    done
    if [ "${#rest[@]}" -lt "${#packages[@]}" ] && [ "${#rest[@]}" -gt 0 ]; then
        apt install -y --no-install-recommends "${rest[@]}" && return 0
    fi
    say "could not install all of them; as root, try: $line"
}

check_compilers() {
    have g++ || fail "no C++ compiler: g++ is needed"
    have_libclang || fail "no libclang, or none with its headers: it is needed to read RocksDB's"
    [ "$purpose" != test ] || have cmake || fail "no cmake: the tests with librdkafka need it"
}

find_rocksdb() {
    # One from the environment was chosen on purpose.
    [ -z "${ROCKSDB_LIB_DIR:-}" ] || return 0
    local rocksdb snappy
    if wants_system_rocksdb && rocksdb=$(lib_dir rocksdb); then
        export ROCKSDB_LIB_DIR=$rocksdb
        snappy=$(lib_dir snappy) && export SNAPPY_LIB_DIR=$snappy
        return 0
    fi
    say "no RocksDB of the system is used: cargo compiles its own, once."
    say "That takes half an hour on two cores and a gigabyte of memory for each."
}

check_rust() {
    have cargo || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    if ! have cargo; then
        say "no cargo found. Get Rust $RUST_NEEDED or later with rustup:"
        say "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
        exit 1
    fi
    local found
    found=$(rustc --version | awk '{ print $2 }')
    if [ "$(printf '%s\n' "$RUST_NEEDED" "${found%%-*}" | sort -V | head -n 1)" != "$RUST_NEEDED" ]; then
        have rustup || fail "Rust $RUST_NEEDED or later is needed, this is $found"
        say "Rust is $found and $RUST_NEEDED is needed: adding it beside, the default stays"
        rustup toolchain list | grep -q "^$RUST_NEEDED" ||
            rustup toolchain install "$RUST_NEEDED" --profile minimal -c rustfmt -c clippy >&2
        export RUSTUP_TOOLCHAIN=$RUST_NEEDED
    fi
}

purpose=build
if [ "${1:-}" = --for ]; then
    purpose=${2:?build or test}
    shift 2
fi
[ "$(uname -s)" = Linux ] || say "Gracchus is made for Linux; on $(uname -s) it may not build"
install_missing
check_compilers
find_rocksdb
check_rust
[ "$#" = 0 ] || exec "$@"
