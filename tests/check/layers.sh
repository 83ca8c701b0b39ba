#!/usr/bin/env bash
# Includes point down only, through the layers and through the rooms of store and client; SQL's
# headers stay in store. The pure code of core can be tested without a server, as long as it includes
# nothing from above. cli has the installed headers alone, as any program has: what it needs,
# others need. One include points up: client/state.h has the rooms' structs in it by value, and
# every room knows it.
set -euo pipefail
source "$(dirname "$0")/common.sh"

# The rooms from below. Those of one line do not know each other.
floors="base
core
store/sql
store/session
store/hosts store/bell
store/row
store/shared store/tx
store/batch store/watch store/table
store/doctor
client/state
client/conn
client/hold
client/watch
client/contest
client/giveback
client/request
client/admin
client
api
cli"
declare -A rank=()
n=0
while read -r line; do
	n=$((n + 1))
	for room in $line; do rank[$room]=$n; done
done <<<"$floors"

# find_room FILE: sets `room` to that of a file below src. That of state.h has what every room may use.
find_room() {
	case $1 in
	client/state.h | client/call.c | client/sources.[ch]) room=client/state ;;
	cli/*) room=cli ;;
	*/*/*) room=${1%/*} ;;
	*) room=${1%%/*} ;;
	esac
}

judge() {
	local file=$1 line=$2 name=$3 own theirs room
	case $name in
	bizlock.h | bizlock_async.h | bizlock_ops.h | bizlock_tx.h) return ;;
	*/*) ;;
	*) object "$file:$line: \"$name\": write it as \"layer/file.h\"" && return ;;
	esac
	find_room "$name"
	theirs=$room
	find_room "${file#src/}"
	own=$room
	if [[ -z ${rank[$theirs]:-} ]]; then
		object "$file:$line: \"$name\" is in no layer"
	elif [[ $theirs != "$own" ]] && ((rank[$theirs] >= rank[$own])) &&
		[[ $file != src/client/state.h ]]; then
		object "$file:$line: \"$name\" does not point downward from $own"
	elif [[ $own == cli && $theirs != cli ]]; then
		object "$file:$line: \"$name\" is the library's own; cli has <bizlock.h>"
	fi
}

for file in $(c_files src); do
	find_room "${file#src/}"
	[[ -n ${rank[$room]:-} ]] || object "$file:1: is in no layer"
done
((objections == 0)) || verdict
while IFS=: read -r file line name; do
	name=${name#*\"}
	judge "$file" "$line" "${name%%\"*}"
done < <(c_files src | xargs grep -nE '^[ \t]*#[ \t]*include[ \t]*"')
while IFS=: read -r file line _; do
	[[ $file == src/store/* ]] || object "$file:$line: only store speaks to the connector"
done < <(c_files src | xargs grep -nE '#[ \t]*include[ \t]*<(mysql|mysqld_error|errmsg|mariadb)' || true)
verdict
