#!/usr/bin/env bash
# bizlock exec that is killed, on a host where the next one can see that it is gone.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/stubborn.sh"

# A directory that the runs of one test share.
share_dir() {
	export BIZLOCK_RUNTIME_DIR=$work/run.$BASHPID
}

next_exec() {
	"$program" exec -n job a -- echo ran >"$out" 2>"$err"
}

test_the_next_exec_runs_as_soon_as_all_is_over() {
	share_dir
	LEASE_MS=600000
	start_stubborn
	expect 75 next_exec
	kill -KILL "$wrapper"
	await_silence
	await next_exec
	expect_out '^ran$'
}

test_what_survives_wrapper_and_guard_keeps_the_lock() {
	share_dir
	LEASE_MS=600000
	start_stubborn
	await pgrep -P "$wrapper" -x exec-guard >/dev/null
	guard=$(pgrep -P "$wrapper" -x exec-guard)
	kill -KILL "$guard"
	kill -KILL "$wrapper"
	await is_gone "$wrapper"
	await is_gone "$child"
	expect 75 next_exec
	kill -KILL "$grandchild"
	await next_exec
}

test_a_run_that_ends_leaves_no_file() {
	share_dir
	expect 0 "$program" exec job a -- sh -c 'ls "$BIZLOCK_RUNTIME_DIR" | grep -c .'
	expect_out '^1$'
	expect_equal "$(ls "$BIZLOCK_RUNTIME_DIR")" ""
}

run_tests
