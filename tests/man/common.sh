# Sourced by the tests of the manual pages. Sets `root`, `pages` (src/man) and
# `work`, a temporary folder. They object to page: why, and go on to the end.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
pages=$root/src/man
name=$(basename "$0" .sh)
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-man.XXXXXX")
trap 'rm -rf "$work"' EXIT
objections=0

object() {
	echo "$*"
	objections=$((objections + 1))
}

verdict() {
	((objections == 0)) || echo "$objections objections"
	exit $((objections > 0))
}

# A list that came out empty would find nothing missing.
some() {
	[[ -n $1 ]] || {
		echo "$name: found no $2" >&2
		exit 1
	}
}

# The lines of one section of a page.
section() {
	awk -v wanted="$2" '/^\.Sh / { inside = substr($0, 5) == wanted; next } inside' "$1"
}

# Symbols of bizlock_tx.h have the client library at their ends.
functions=$(sed -nE 's/^\t(bizlock_[a-z0-9_]+);$/\1/p' "$root/src/pkg/bizlock.map" | sed -E 's/_(mariadb|mysql)$//' | sort -u)
some "$functions" "function in src/pkg/bizlock.map"
