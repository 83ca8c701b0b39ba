#!/usr/bin/env bash
# Library, command and examples build against musl, without a warning, and pass the unit tests there.
set -euo pipefail
source "$(dirname "$0")/common.sh"

command -v musl-gcc >/dev/null || {
	echo "musl-gcc is not installed"
	exit 77
}
logged bash "$root/tests/elsewhere/build.sh" "$work/musl" "$prefix" musl-gcc ''
tail -n 1 "$work/log"
readelf -d "$work/musl/build/libbizlock.so" | grep -q 'NEEDED.*\[libc.so\]' || die "that is not musl"
