#!/usr/bin/env bash
# bizlock exec when the wrapper or its guard is killed or stopped: nobody is at work without
# the lock, and nobody is left over.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/stubborn.sh"

free_or_over() {
	[[ $(sql "SELECT COUNT(*) FROM biz_lock WHERE biz_type = '$1' AND biz_id = '$2'
		AND timeout > UTC_TIMESTAMP(6)") == 0 ]]
}

test_all_die_with_a_wrapper_that_is_killed() {
	start_stubborn
	kill -KILL "$wrapper"
	await_silence
	held job a || fail "a dead holder's lock stays until its lease ends"
	await free_or_over job a
}

# The period is over by the clock alone: the job may have done its work before it died.
test_a_period_is_kept_from_jobs_that_were_killed() {
	hold job once --lease 1s --at-most-once-per 1h
	kill -KILL "$holder"
	await is_gone "$holder"
	expect 124 "$program" exec --wait 2s job once -- echo ran
	expect_no_out
}

# Set-user-ID programs lose PR_SET_PDEATHSIG, so the guard must do without it.
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

# Finds the guard of $wrapper, when $child is known.
find_guard() {
	guard=$(ps -o pid= --ppid "$wrapper" | grep -vw "$child" | tr -d ' ')
	[[ $guard =~ ^[0-9]+$ ]] || fail "no guard"
}

test_the_command_dies_with_its_parent_even_without_the_guard() {
	start_stubborn
	find_guard
	kill -KILL "$guard"
	kill -KILL "$wrapper"
	await is_gone "$child"
	kill -KILL "$grandchild"
	await free_or_over job a
}

# As "pkill -9 bizlock" does it, but under a name that no other process of this machine has.
test_nothing_is_at_work_when_all_of_that_name_are_killed() {
	local how
	ln -s "$program" "$work/bizl$$"
	program=$work/bizl$$
	for how in "--exact bizl$$" "--full $program"; do
		start_stubborn
		find_guard
		pkill -KILL $how
		await is_gone "$wrapper"
		await_silence
		await is_gone "$guard"
		await free_or_over job a
	done
}

# With any command line, even a short one.
test_the_guard_does_not_bear_the_name() {
	local line
	"$program" exec job bizlock --note bizlock -- "$(command -v sleep)" 1000 &
	wrapper=$!
	await held job bizlock
	await pgrep -P "$wrapper" -x sleep >/dev/null
	child=$(pgrep -P "$wrapper" -x sleep)
	find_guard
	line=$(tr '\0' ' ' <"/proc/$guard/cmdline")
	expect_equal "$(cat "/proc/$guard/comm")" exec-guard
	expect_equal "${line%%  *}" "exec-guard of $wrapper"
	[[ $line != *bizlock* && $line != *sleep* ]] || fail "it is called $line"
	tr '\0' ' ' <"/proc/$wrapper/cmdline" >"$out"
	expect_out ' exec job bizlock --note bizlock -- '
	kill "$wrapper"
	exit_of "$wrapper"
	expect_equal "$code" 143
}

test_a_guard_that_is_stopped_does_not_keep_the_lock() {
	"$program" exec job a -- sleep 1000 &
	wrapper=$!
	await pgrep -P "$wrapper" -x sleep >/dev/null
	child=$(pgrep -P "$wrapper" -x sleep)
	find_guard
	kill -STOP "$guard"
	kill -TERM "$wrapper"
	exit_of "$wrapper"
	expect_equal "$code" 143
	is_gone "$guard" || fail "the guard is left"
	free job a || fail "still held"
}

# The stopped wrapper cannot renew. After a takeover, nobody may still be at work without the lock.
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

# The renewer is about as fast as the wrapper's own thread. Here it is faster, because strace holds
# that thread up.
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
