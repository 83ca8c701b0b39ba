#!/usr/bin/env bash
# Numbered workers, on any number of machines: each gets a small number that no other one has, and
# when one dies, the next one gets its number. With the number each can have a port, a directory, or
# a part of the work of its own.
#
#     examples/workers.sh TYPE ID WORKERS COMMAND [ARGUMENT...]
#
# keeps one worker going: COMMAND, with BIZLOCK_SLOT from 1 to WORKERS. Start it as often as you
# like, wherever you like: those that find no number wait for one.
set -euo pipefail

(($# >= 4)) || {
	sed -n 's/^# \{0,1\}//; 2,9p' "$0" >&2
	exit 64
}
type=$1 id=$2 workers=$3
shift 3
while true; do
	bizlock exec --limit "$workers" --note "worker on $(hostname)" "$type" "$id" -- "$@" && code=0 || code=$?
	echo "worker ended by $code; the next one" >&2
	sleep 1
done
