#!/usr/bin/env bash
# The shared library has the probes that docs/operations.md lists, and no other.
set -euo pipefail
source "$(dirname "$0")/common.sh"

echo '#include <sys/sdt.h>' | "$CC" -E - >/dev/null 2>&1 || {
	echo "[SKIP] probes: no <sys/sdt.h>"
	exit 77
}
readelf -n "$libdir/libbizlock.so" | awk '
	/Provider:/ { provider = $2 }
	/Name:/ { name = $2 }
	/Arguments:/ { print provider ":" name, NF - 1 }' | sort -u >"$work/there"
sed -nE 's/^\| `(bizlock:[a-z]+)`.*/\1 4/p' "$root/docs/operations.md" | sort -u >"$work/listed"
[[ -s $work/listed ]] || die "docs/operations.md lists no probes"
diff "$work/listed" "$work/there" || die "docs/operations.md lists other probes, or arguments"
