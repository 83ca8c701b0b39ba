#!/usr/bin/env bash
# readme.sh: runs the commands of README.md, the blocks marked sh, as one script
# in a copy of the tree. A command that fails ends it. Needs a server in
# BIZLOCK_TEST_* (begin_server of tests/support/setup.sh).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
[[ -e $root/README.md ]] || {
	echo "readme: README.md is missing" >&2
	exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-readme.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree"
tar -C "$root" --exclude=.git --exclude='./build*' -cf - . | tar -C "$work/tree" -xf -

{
	echo 'set -euxo pipefail'
	awk '/^```/ { inside = ($0 == "```sh"); next } inside' "$root/README.md"
} >"$work/commands.sh"
(($(wc -l <"$work/commands.sh") > 1)) || {
	echo "readme: README.md holds no command" >&2
	exit 1
}
cd "$work/tree"
HOME=$work bash "$work/commands.sh"
