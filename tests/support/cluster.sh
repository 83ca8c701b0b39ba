#!/usr/bin/env bash
# A private cluster of three servers in a folder, for tests that break it: Galera where MariaDB is,
# a group (group replication) where MySQL is. Its servers are those of server.sh.
#
#   cluster.sh kind                     what can be started here: galera, group; fails if nothing can
#   cluster.sh start DIR [--several] [--apart] [--owner PID]
#                                       returns when all three are members. DIR must be new. The
#                                       servers and DIR go when PID ends, which is the caller
#                                       otherwise. --several: a group in which each is a primary.
#                                       --apart: cluster_net.sh
#   cluster.sh nodes DIR                a line for each: number, host, port, socket
#   cluster.sh env DIR N                as server.sh env
#   cluster.sh state DIR                a line for each: number, what it says of itself, its role
#                                       in a group, how many members it knows
#   cluster.sh kill|freeze|thaw DIR N   as server.sh
#   cluster.sh cut|join DIR N           the others do not hear of it, clients do | as before. --apart
#   cluster.sh fill|empty DIR N         its disk is full | as before. --apart
#   cluster.sh rejoin DIR N             starts it if it does not run, and lets it join again if it
#                                       was expelled; returns when it is a member
#   cluster.sh primary DIR N            of a group with one primary: from now on it is N
#   cluster.sh wait DIR N               returns when all three are members, and can commit; N was away
#   cluster.sh stop DIR                 kills the servers and removes DIR
#
# A member is ONLINE (group) or Synced (Galera). How soon the others go on without a node that was
# killed or frozen: Galera has its defaults, evs.suspect_timeout PT5S above all. A group suspects the
# node after 5 s, and looks every 15 s for suspicions to act on; no setting changes this. What could
# come on top, group_replication_member_expel_timeout, is 0 here, and 5 s by default.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/dialects.sh"
source "$here/cluster_net.sh"
source "$here/cluster_kinds.sh"

PATH="$here:$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/libexec" # here: wsrep_sst_nothing
PATIENCE_S=120
declare -A SETTLED_S=([galera]=0 [group]=6)
NODES="1 2 3"
ask=("$(sql_client)" --no-defaults --user=root "$(without_tls)" --batch --skip-column-names)

die() {
	echo "cluster.sh: $*" >&2
	exit 1
}

server() {
	within "$2" bash "$here/server.sh" "$1" "$dir/$2" "${@:3}"
}

# sql N STATEMENT: a server that is frozen does not answer. Where a node is, is asked once: its
# state is looked at several times a second.
sql() (
	[[ -e $dir/env.$1 ]] || {
		server env "$1" >"$dir/env.$1.$BASHPID"
		mv "$dir/env.$1.$BASHPID" "$dir/env.$1"
	}
	source "$dir/env.$1"
	MYSQL_PWD=$BIZLOCK_TEST_PASSWORD timeout "${3:-5}" "${ask[@]}" --socket="$BIZLOCK_TEST_SOCKET" -e "$2"
)

# all COMMAND...: for each node at the same time, with its number behind.
all() {
	local n pids=() pid code=0
	for n in $NODES; do
		"$@" "$n" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || code=1
	done
	return "$code"
}

eventually() {
	local end=$((SECONDS + PATIENCE_S))
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.3
	done
}

# ---- both --------------------------------------------------------------------

find_kind() {
	if [[ $(server_program) == mysqld ]]; then
		echo group
	else
		galera_library >/dev/null || die "Galera is not installed"
		echo galera
	fi
}

is_running() {
	local pid
	pid=$(cat "$dir/$1/pid" 2>/dev/null) && [[ -e /proc/$pid/exe ]] &&
		tr '\0' '\n' <"/proc/$pid/cmdline" | grep -xqF -- "--datadir=$dir/$1/data"
}

all_are_members() {
	local n
	for n in $NODES; do
		[[ $("${kind}_member_of" "$n") == 3 ]] || return 1
	done
}

# A node that was away believes in the cluster that it knew, until it hears of another.
is_member_again() {
	local n size
	size=$("${kind}_member_of" "$1")
	for n in ${NODES/$1/}; do
		[[ -z $size || $("${kind}_member_of" "$n") != "$size" ]] || return 0
	done
	"${kind}_rejoin" "$1"
	return 1
}

# Of a node that was cut off for a moment the others say that it is a member, and can commit nothing
# until they have agreed on it.
all_are_well() {
	local n
	all_are_members || return 1
	for n in $NODES; do
		"${kind}_commits" "$n" 2>>"$dir/sql.log" || return 1
	done
}

# A group may remove a member that it has heard of again: what was decided before comes later.
stay_well() {
	local end=$((SECONDS + SETTLED_S[$kind]))
	while all_are_well; do
		((SECONDS < end)) || return 0
		sleep 0.5
	done
	return 1
}

# A member that came back soon may be unreachable to one of the others, and to that one alone, for
# ever: it joins anew.
settle() {
	[[ $kind == galera ]] || PATIENCE_S=40 eventually stay_well ||
		sql "$1" "STOP GROUP_REPLICATION; START GROUP_REPLICATION" "$PATIENCE_S"
	await_all stay_well
}

# await_all all_are_well|stay_well
await_all() {
	eventually "$1" || {
		state >&2
		die "not all of them are members, or they cannot commit"
	}
}

# Outlives the owner by a moment.
start_guard() {
	setsid bash -c 'tail --pid="$1" -s 0.2 -f /dev/null; exec bash "$0" stop "$2"' \
		"$here/cluster.sh" "$1" "$dir" </dev/null >/dev/null 2>&1 &
	echo $! >"$dir/guard"
	disown
}

# in_a_group COMMAND...: all that it starts but servers can be ended together. It might start a
# server when those that run have been killed.
in_a_group() {
	local code=0
	set -m
	"$@" &
	set +m
	touch "$dir/group.$!"
	wait $! || code=$?
	rm -f "$dir/group.$!"
	return "$code"
}

end_groups() {
	local file
	for file in "$dir"/group.*; do
		[[ ! -e $file ]] || kill -KILL -- "-${file##*.}" || true
	done
}

start() {
	local owner=$PPID
	while (($#)); do
		case $1 in
		--several) touch "$dir/several" ;;
		--apart) touch "$dir/apart" ;;
		--owner) owner=$2 && shift ;;
		*) die "unknown option: $1" ;;
		esac
		shift
	done
	start_guard "$owner"
	! is_apart || set_apart
	draw_ports
	export BIZLOCK_TEST_NEW_DATA=${BIZLOCK_TEST_NEW_DATA:-$dir/new}
	echo "$kind" >"$dir/kind"
	"${kind}_start"
	sql 1 "CREATE DATABASE beats; CREATE TABLE beats.beats (node INT PRIMARY KEY)" "$PATIENCE_S"
	await_all all_are_well
	nodes >"$dir/nodes"
}

nodes() (
	for n in $NODES; do
		eval "$(server env "$n")"
		echo "$n $(outer_host "$n") $BIZLOCK_TEST_PORT $BIZLOCK_TEST_SOCKET"
	done
)

state() {
	local n text
	for n in $NODES; do
		text=$("${kind}_state" "$n") || text="does not answer"
		echo "$n $text"
	done
}

rejoin() {
	eventually is_member_again "$1" || {
		state >&2
		die "node $1 is no member"
	}
}

stop() {
	local guard
	guard=$(cat "$dir/guard")
	[[ $guard == "$$" ]] || kill -- "-$guard" 2>/dev/null || true
	end_groups
	all server kill || true
	end_apart
	rm -rf "$dir"
}

[[ ${1:-} != kind ]] || {
	find_kind
	exit
}
[[ $# -ge 2 ]] || die "usage: cluster.sh kind, or cluster.sh COMMAND DIR ..., see its first lines"
command=$1
[[ $2 == /* ]] && dir=$2 || dir=$PWD/$2
shift 2
[[ $command == start ]] && kind=$(find_kind) || kind=$(cat "$dir/kind")

case $command in
start)
	[[ ! -e $dir ]] || die "$dir is there already"
	mkdir -p "$dir"
	in_a_group start "$@"
	;;
nodes) nodes ;;
state) state ;;
env | kill | freeze | thaw) server "$command" "$1" ;;
cut | join) "node_$command" "$1" ;;
fill | empty) "disk_$command" "$1" ;;
rejoin) in_a_group rejoin "$1" ;;
primary) "${kind}_primary" "$1" ;;
wait) settle "$1" ;;
stop) stop ;;
*) die "unknown command: $command" ;;
esac
