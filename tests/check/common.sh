# Sourced by the gates, which run in the top folder and print what they object
# to as file:line: why.

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
objections=0

object() {
	echo "$*"
	objections=$((objections + 1))
}

verdict() {
	((objections == 0)) || echo "$objections objections"
	exit $((objections > 0))
}

# A tool is missing: 77 means "skipped" to the harness.
skip() {
	echo "$*"
	exit 77
}

# Of C, and of C++.
c_files() {
	find "$@" -name '*.[ch]' -o -name '*.[ch]pp' | sort
}
