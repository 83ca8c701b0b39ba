#!/usr/bin/env bash
# readme.sh: runs the commands of README.md and then of docs/, the blocks marked sh, as one
# script in a copy of the tree, without `bash tests/run.sh`: the tests would run within what tests
# them. A command that fails ends it. Needs a server in BIZLOCK_TEST_*
# (begin_server of tests/support/setup.sh), and says where that is in an option file, as the
# README asks for.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
texts=("$root/README.md" "$root"/docs/*.md)
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-readme.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree"
tar -C "$root" --exclude=.git --exclude='./build*' -cf - . | tar -C "$work/tree" -xf -

{
	echo 'set -euxo pipefail'
	awk '/^```/ { inside = ($0 == "```sh"); next }
		inside && !/^bash tests\/run\.sh( |$)/' "${texts[@]}"
} >"$work/commands.sh"
(($(wc -l <"$work/commands.sh") > 1)) || {
	echo "readme: README.md holds no command" >&2
	exit 1
}

(umask 077 && cat >"$work/.my.cnf") <<END
[client]
${BIZLOCK_TEST_HOST:+host=$BIZLOCK_TEST_HOST}
${BIZLOCK_TEST_PORT:+port=$BIZLOCK_TEST_PORT}
${BIZLOCK_TEST_SOCKET:+socket=$BIZLOCK_TEST_SOCKET}
${BIZLOCK_TEST_USER:+user=$BIZLOCK_TEST_USER}
${BIZLOCK_TEST_PASSWORD:+password=$BIZLOCK_TEST_PASSWORD}
[bizlock]
database=shop
END
cd "$work/tree"
HOME=$work bash "$work/commands.sh"
