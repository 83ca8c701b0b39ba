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
	rm -f "$work"/s.* # another test's
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

# Finds the guard of $wrapper, and the command, its child.
find_guard() {
	await pgrep -P "$wrapper" -x exec-guard >/dev/null
	guard=$(pgrep -P "$wrapper" -x exec-guard)
	await pgrep -P "$guard" >/dev/null
	child=$(pgrep -P "$guard")
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
	find_guard
	await eval '[[ $(cat "/proc/$child/comm") == sleep ]]'
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
	expect 0 "$program" exec job a -- bash -c 'echo $PPID'
	is_gone "$(cat "$out")" || fail "the guard is left"
}

# The command is its child.
test_a_guard_that_is_killed_takes_all_with_it() {
	start_stubborn
	find_guard
	kill -KILL "$guard"
	exit_of "$wrapper"
	expect_equal "$code" 137
	expect_err 'the guard was killed, and with it the command'
	is_gone "$child" && is_gone "$grandchild" || fail "somebody is at work"
	free job a || fail "still held"
}

# What whoever ran us has started before is our child, but not the command's.
test_a_guard_that_is_killed_takes_nobody_else() {
	local helper
	sh -c "sleep 1000 & echo \$! >$work/helper; exec '$program' exec job a -- sleep 1000" 2>"$err" &
	wrapper=$!
	find_guard
	helper=$(cat "$work/helper")
	kill -KILL "$guard"
	exit_of "$wrapper"
	! is_gone "$helper" || fail "the helper is gone"
	kill "$helper"
}

# As su, runuser, setsid and daemons do.
start_stubborn_elsewhere() {
	rm -f "$work"/s.* # another test's
	"$program" exec --lease ${LEASE_MS}ms job a -- \
		bash -c "setsid $work/stubborn $work/s & setsid -w sleep 1000" 2>"$err" &
	wrapper=$!
	await test -s "$work/s.time2"
	await test -s "$work/s.time"
	child=$(cat "$work/s.child")
	grandchild=$(cat "$work/s.grandchild")
}

test_who_has_left_the_group_dies_with_a_lost_lock() {
	start_stubborn_elsewhere
	sql "DELETE FROM biz_lock WHERE biz_type = 'job' AND biz_id = 'a'"
	exit_of "$wrapper"
	expect_equal "$code" 80
	is_gone "$child" && is_gone "$grandchild" || fail "somebody is at work"
}

test_who_has_left_the_group_dies_with_the_wrapper() {
	start_stubborn_elsewhere
	kill -KILL "$wrapper"
	await_silence
}

# The parent has ended, so only whoever adopts tells whose child this is.
test_a_daemon_of_the_command_dies_with_a_lost_lock() {
	rm -f "$work"/s.* # another test's
	"$program" exec --lease ${LEASE_MS}ms job a -- \
		bash -c "(setsid $work/stubborn $work/s &); sleep 1000" 2>"$err" &
	wrapper=$!
	await test -s "$work/s.grandchild"
	child=$(cat "$work/s.child")
	grandchild=$(cat "$work/s.grandchild")
	sql "DELETE FROM biz_lock WHERE biz_type = 'job' AND biz_id = 'a'"
	exit_of "$wrapper"
	is_gone "$child" && is_gone "$grandchild" || fail "somebody is at work"
}

test_another_user_dies_with_a_lost_lock() {
	((EUID == 0)) || {
		echo "[SKIP] ${FUNCNAME[0]}: not here: only root can change the user"
		return
	}
	local how
	chmod 755 "$work"
	for how in "su -s /bin/bash nobody -c" "runuser -s /bin/bash nobody -c"; do
		mkdir -p "$work/free" && chmod 777 "$work/free"
		"$program" exec --lease ${LEASE_MS}ms job a -- $how "$work/stubborn $work/free/s" 2>"$err" &
		wrapper=$!
		await test -s "$work/free/s.grandchild"
		child=$(cat "$work/free/s.child")
		grandchild=$(cat "$work/free/s.grandchild")
		sql "DELETE FROM biz_lock WHERE biz_type = 'job' AND biz_id = 'a'"
		exit_of "$wrapper"
		expect_equal "$code" 80
		is_gone "$child" && is_gone "$grandchild" || fail "somebody is at work: $how"
		rm -rf "$work/free"
	done
}

# In a container exec may be the first process, and adopts all that have lost their parents.
test_as_the_first_process_it_leaves_no_zombies() {
	unshare --pid --fork --mount-proc true 2>/dev/null || {
		echo "[SKIP] ${FUNCNAME[0]}: not here: no container can be made"
		return
	}
	expect 0 unshare --pid --fork --mount-proc "$program" exec job a -- bash -c '
		(sleep 0.01 &)
		end=$((SECONDS + 20))
		until [[ $(ps -eo stat,comm | grep -c " sleep$") == 0 ]]; do
			((SECONDS < end)) || exit 9
			sleep 0.05 & wait
		done'
}

run_tests
