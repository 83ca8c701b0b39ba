#!/usr/bin/env bash
# bizlock exec when the lock, the wrapper or the server goes: nobody is at work without the
# lock, and nobody is left over.
source "$(dirname "$0")/common.sh"

LEASE_MS=5000

# Writes the time (us) while it lives, and heeds no SIGTERM. $1: a file; its name with .child
# holds its number, .grandchild that of a process of its group that writes too.
cat >"$work/stubborn" <<'EOF2'
#!/bin/bash
trap "" TERM HUP INT
echo $$ >"$1.child"
write() {
	while :; do
		echo "${EPOCHREALTIME/[.,]/}" >>"$1" # a file made anew would be empty for a moment
		sleep 0.02
	done
}
write "$1.time2" &
echo $! >"$1.grandchild"
write "$1.time"
EOF2
chmod +x "$work/stubborn"

# start_stubborn [OPTION...]: the wrapper is $wrapper.
start_stubborn() {
	rm -f "$work"/s.*
	"$program" exec --lease ${LEASE_MS}ms "$@" job a -- "$work/stubborn" "$work/s" 2>"$err" &
	wrapper=$!
	await test -s "$work/s.time2"
	await test -s "$work/s.time"
	child=$(cat "$work/s.child")
	grandchild=$(cat "$work/s.grandchild")
}

last_sign_of_life() {
	cat "$work/s.time" "$work/s.time2" | sort -n | tail -n 1
}

await_silence() {
	await is_gone "$child"
	await is_gone "$grandchild"
}

test_a_broken_lock_ends_a_command_that_ignores_sigterm() {
	start_stubborn
	sql "DELETE FROM biz_lock WHERE biz_type = 'job' AND biz_id = 'a'"
	exit_of "$wrapper"
	expect_equal "$code" 80
	is_gone "$child" || fail "the command lives"
	await is_gone "$grandchild"
	expect_err 'job/a: the lock is lost'
	expect_err 'was not safely held to the end \(fence [0-9]+\)'
}

test_a_command_that_ends_at_sigterm_has_time_to() {
	own_server
	"$program" exec --lease 6s job a -- bash -c \
		'trap "echo cleaned up; exit 0" TERM; echo ready; while :; do sleep 0.05; done' >"$out" 2>"$err" &
	wrapper=$!
	await file_says "$out" ready
	bash "$BIZLOCK_SERVER_SH" kill "$server"
	exit_of "$wrapper"
	expect_equal "$code" 80
	expect_out 'cleaned up'
	expect_err 'could not be renewed; the command has [0-9]+ ms to end'
}

# server_goes HOW: it stops answering; within the lease, the command is dead.
server_goes() {
	local gone
	own_server
	BIZLOCK_IO_TIMEOUT_MS=1000 start_stubborn
	bash "$BIZLOCK_SERVER_SH" "$1" "$server"
	gone=$(now_us)
	exit_of "$wrapper"
	expect_equal "$code" 80
	await_silence
	(($(last_sign_of_life) < gone + LEASE_MS * 1000)) || fail "it worked on without the lock"
	expect_err 'could not be renewed'
}

test_a_server_that_hangs() {
	server_goes freeze
}

test_a_server_that_dies() {
	server_goes kill
}

# What was told to end has its time, and no more, though the lease could be renewed again.
test_a_server_that_comes_back_too_late() {
	own_server
	LEASE_MS=6000
	BIZLOCK_IO_TIMEOUT_MS=1000 start_stubborn
	bash "$BIZLOCK_SERVER_SH" freeze "$server"
	await file_says "$err" 'could not be renewed'
	bash "$BIZLOCK_SERVER_SH" thaw "$server"
	exit_of "$wrapper"
	expect_equal "$code" 80
	await_silence
}

test_a_server_that_hangs_for_a_moment_is_lived_through() {
	own_server
	"$program" exec --lease 9s job a -- sleep 3 2>"$err" &
	wrapper=$!
	await eval '[[ $("$program" exec -w0 job a -- true; echo $?) == 75 ]]'
	bash "$BIZLOCK_SERVER_SH" freeze "$server"
	sleep 1
	bash "$BIZLOCK_SERVER_SH" thaw "$server"
	exit_of "$wrapper"
	expect_equal "$code" 0
	expect_no_err
}

test_all_die_with_a_wrapper_that_is_killed() {
	start_stubborn
	kill -KILL "$wrapper"
	await_silence
	held job a || fail "a dead holder's lock stays until its lease ends"
	await free_or_over job a
}

free_or_over() {
	[[ $(sql "SELECT COUNT(*) FROM biz_lock WHERE biz_type = '$1' AND biz_id = '$2'
		AND timeout > UTC_TIMESTAMP(6)") == 0 ]]
}

# PR_SET_PDEATHSIG is forgotten by set-user-ID programs; the guard forgets nothing.
test_the_guard_kills_what_does_not_ask_for_its_parents_death() {
	"$program" exec --lease ${LEASE_MS}ms job a -- setpriv --pdeathsig clear \
		"$work/stubborn" "$work/s" &
	wrapper=$!
	await test -s "$work/s.grandchild"
	child=$(cat "$work/s.child")
	grandchild=$(cat "$work/s.grandchild")
	kill -KILL "$wrapper"
	await_silence
	await free_or_over job a
}

test_the_command_dies_with_its_parent_even_without_the_guard() {
	local pid
	start_stubborn
	for pid in $(ps -o pid= --ppid "$wrapper"); do
		((pid == child)) || kill -KILL "$pid"
	done
	kill -KILL "$wrapper"
	await is_gone "$child"
	kill -KILL "$grandchild"
	await free_or_over job a
}

# It can not renew. Whoever takes over finds nobody at work.
test_a_wrapper_that_is_stopped() {
	local began
	start_stubborn
	kill -STOP "$wrapper"
	began=$("$program" exec job a -- bash -c 'echo ${EPOCHREALTIME/[.,]/}')
	(($(last_sign_of_life) < began)) || fail "two were at work"
	await_silence
	kill -CONT "$wrapper"
	exit_of "$wrapper"
	expect_equal "$code" 80
}

# Its renewer is as quick as it is; here quicker, for strace holds the wrapper's own thread up.
test_a_wrapper_continued_between_the_kill_and_the_end_of_the_lease() {
	local tracer
	ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -qq -o "$work/trace" -e signal=none \
		-e trace=waitid -e inject=waitid:delay_enter=300000 \
		"$program" exec --lease 9s job a -- sleep 1000 2>"$err" &
	tracer=$!
	await held job a
	await pgrep -P "$tracer" >/dev/null
	wrapper=$(pgrep -P "$tracer")
	await pgrep -P "$wrapper" -x sleep >/dev/null
	child=$(pgrep -P "$wrapper" -x sleep)
	kill -STOP "$wrapper"
	await is_gone "$child"
	kill -CONT "$wrapper"
	exit_of "$tracer"
	expect_equal "$code" 80
	expect_err 'was not safely held to the end'
}

test_a_wrapper_that_is_stopped_for_a_moment_goes_on() {
	"$program" exec --lease ${LEASE_MS}ms job a -- sleep 2 &
	wrapper=$!
	await held job a
	kill -STOP "$wrapper"
	sleep 0.3
	kill -CONT "$wrapper"
	exit_of "$wrapper"
	expect_equal "$code" 0
}

# The wrapper does not wait for what the command leaves in the background.
test_the_lock_is_free_when_the_command_has_ended() {
	expect 0 "$program" exec job a -- bash -c 'sleep 1000 >/dev/null 2>&1 & echo $!'
	free job a || fail "still held"
	local left
	left=$(cat "$out")
	! is_gone "$left" || fail "killed, though the lock was never lost"
	kill "$left"
}

test_the_guard_is_gone_too() {
	expect 0 "$program" exec job a -- bash -c 'ps -o pid= --ppid $PPID'
	for pid in $(cat "$out"); do
		is_gone "$pid" || fail "process $pid is left"
	done
}

test_a_command_that_never_begins() {
	hold job a
	"$program" exec job a -- touch "$work/ran" &
	wrapper=$!
	await eval '[[ $(ps -o pid= --ppid $wrapper | wc -l) == 1 ]]'
	guard=$(ps -o pid= --ppid "$wrapper")
	kill -KILL "$wrapper"
	await is_gone "${guard// /}"
	kill "$holder"
	await free job a
	[[ ! -e $work/ran ]] || fail "it ran"
}

run_tests
