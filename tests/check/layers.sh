#!/usr/bin/env bash
# base < core < store < client < api: includes point down only, and SQL's headers
# stay in store. What is pure in core can be tested without a server; it ends
# with the first include that points up. cli has the installed headers alone, as
# any program has: what it needs, others need.
set -euo pipefail
source "$(dirname "$0")/common.sh"

declare -A rank=([base]=1 [core]=2 [store]=3 [client]=4 [api]=5 [cli]=6)

judge() {
	local file=$1 line=$2 name=$3 own theirs
	own=$(cut -d/ -f2 <<<"$file")
	theirs=${name%%/*}
	case $name in
	bizlock.h | bizlock_ops.h | bizlock_tx.h) return ;;
	*/*) ;;
	*) object "$file:$line: \"$name\": write it as \"layer/file.h\"" && return ;;
	esac
	if [[ -z ${rank[$theirs]:-} ]]; then
		object "$file:$line: \"$name\" is in no layer"
	elif ((rank[$theirs] > rank[$own])); then
		object "$file:$line: \"$name\" points upward from $own"
	elif [[ $own == cli && $theirs != cli ]]; then
		object "$file:$line: \"$name\" is the library's own; cli has <bizlock.h>"
	fi
}

for file in $(c_files src); do
	layer=$(cut -d/ -f2 <<<"$file")
	[[ -n ${rank[$layer]:-} ]] || object "$file:1: is in no layer"
	while IFS=: read -r line name; do
		judge "$file" "$line" "$name"
	done < <(sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/;T;=;p' "$file" | paste -d: - -)
	[[ $layer != store ]] || continue
	while IFS=: read -r line _; do
		object "$file:$line: only store speaks to the connector"
	done < <(grep -nE '#[ \t]*include[ \t]*<(mysql|mysqld_error|errmsg|mariadb)' "$file" || true)
done
verdict
