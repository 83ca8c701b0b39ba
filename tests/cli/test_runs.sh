#!/usr/bin/env bash
# What is recorded of runs, and shown by bizlock runs and overdue; --retry-failed and --max-hold.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/stubborn.sh"

# ---- cron ----------------------------------------------------------------------------------

# cron HOST COMMAND...: as cron runs it on that machine, with next to no environment.
cron() {
	env -i PATH=/usr/bin:/bin LC_ALL=C HOME=/ BIZLOCK_DEFAULTS_FILE="$BIZLOCK_DEFAULTS_FILE" \
		BIZLOCK_DATABASE="$BIZLOCK_DATABASE" ASAN_OPTIONS="${ASAN_OPTIONS:-}" \
		unshare --uts sh -c 'hostname "$0" && exec "$@"' "$@"
}

needs_host_names() {
	unshare --uts true 2>/dev/null || {
		echo "[SKIP] ${FUNCNAME[1]}: no host names for a test (unshare --uts)"
		exit 0
	}
}

nightly() {
	cron "$1" "$program" exec -n --at-most-once-per 20h "${@:2}"
}

# runs_show TYPE ID PATTERN: the line of its run.
runs_show() {
	expect 0 cron app-9 "$program" runs "$1" "$2"
	expect_out "^$1 +$2 +$3"
}

# pid_of ID: of the exec that ran it last.
pid_of() {
	sql "SELECT SUBSTRING_INDEX(SUBSTRING_INDEX(owner, '@', -2), '.', 1) FROM biz_run WHERE biz_id = '$1'"
}

run_says() {
	[[ $("$program" runs job "$1") =~ $2 ]]
}

test_a_nightly_job_on_two_machines() {
	needs_host_names
	expect 0 nightly app-1 job nightly -- true
	expect 75 nightly app-2 job nightly -- echo twice
	expect_no_out
	runs_show job nightly 'done +0 .* ago +[0-9]+ms .* ago +1 +0 +0 app-1 '
	expect 0 cron app-9 "$program" overdue --within 25h job nightly
	expect_no_out
	expect_no_err
}

test_a_job_that_failed_is_not_tried_again_within_the_period() {
	needs_host_names
	expect 3 nightly app-1 job nightly -- sh -c 'exit 3'
	expect 75 nightly app-2 job nightly -- true
	runs_show job nightly 'failed +3 .* never +1 +1 +1 app-1 '
	expect 1 cron app-9 "$program" overdue --within 25h job nightly
	expect_equal "$(wc -l <"$out")" 1
	expect_out '^job/nightly is overdue: no run was ever done, let alone within 1d 1h; the last run began [0-9.]+m?s ago on app-1 and failed with exit code 3$'
	expect_no_err
}

test_a_job_that_failed_is_tried_again_if_that_is_asked_for() {
	needs_host_names
	expect 3 nightly app-1 --retry-failed job nightly -- sh -c 'exit 3'
	free job nightly || fail "still held"
	runs_show job nightly 'failed +3 '
	expect 143 nightly app-1 --retry-failed job nightly -- sh -c 'kill -TERM $$'
	runs_show job nightly 'failed +SIGTERM .* never +2 +2 +2 app-1 '
	expect 0 nightly app-2 --retry-failed job nightly -- true
	runs_show job nightly 'done +0 .* ago +3 +2 +0 app-2 '
	expect 75 nightly app-1 --retry-failed job nightly -- echo twice
	expect_no_out
	expect 0 cron app-9 "$program" overdue --within 25h job nightly
}

test_a_job_that_cannot_be_started_does_not_use_the_period_up() {
	needs_host_names
	expect 127 nightly app-1 job nightly -- "$work/is-not-there"
	runs_show job nightly 'failed +127 .* app-1 '
	expect 0 nightly app-2 job nightly -- true
	runs_show job nightly 'done +0 .* 2 +1 +0 app-2 '
}

test_a_job_that_is_killed_has_died_once_its_lease_is_over() {
	needs_host_names
	nightly app-1 --lease 2s job nightly -- sleep 1000 &
	await run_says nightly running
	kill -KILL "$(pid_of nightly)"
	await run_says nightly died
	runs_show job nightly 'died +[0-9.]+s ago +never +1 +1 +1 app-1 '
	# The period is used up: it may have done its work.
	expect 75 nightly app-2 job nightly -- true
	expect 1 cron app-9 "$program" overdue --within 25h job nightly
	expect_out 'the last run began [0-9.]+s ago on app-1 and died$'
}

# The lock is kept for a day, but the lease is renewed all the time.
test_a_long_job_does_not_seem_dead() {
	"$program" exec --lease 1s --at-most-once-per 1d job long -- sh -c "sleep 3; touch $work/over" &
	await run_says long running
	until [[ -e $work/over ]]; do
		run_says long died && fail "it lives"
		sleep 0.05
	done
	exit_of $!
	run_says long 'done' || fail "it is done"
}

test_overdue_goes_by_the_servers_clock_and_the_end_of_the_run() {
	"$program" exec --record job a -- true
	sql "UPDATE biz_run SET began_at = began_at - INTERVAL 9 HOUR, ended_at = ended_at - INTERVAL 2 HOUR,
		succeeded_at = ended_at"
	expect 0 "$program" overdue --within 2.1h job a
	expect 1 "$program" overdue --within 1.9h job a
	expect_out '^job/a is overdue: a run was last done 2h 0m ago, not within 1h 54m; the last run began 9h 0m ago on .* and was done$'
	"$program" exec --record job a -- sleep 1000 &
	await run_says a running
	expect 1 "$program" overdue --within 1h job a
	expect_out 'and is still running$'
	expect 0 "$program" overdue --within 3h job a
	kill $!
	exit_of $!
	expect 0 "$program" overdue --within 3h job a
	expect 1 "$program" overdue --within 1h job a
	expect_out 'was ended by SIGTERM$'
	expect 1 "$program" overdue --within 1h job b
	expect_out '^job/b is overdue: no run is recorded$'
}

test_overdue_has_the_codes_of_other_commands() {
	expect 64 "$program" overdue job a
	expect_err '--within'
	expect 64 "$program" overdue --within 0 job a
	expect 64 "$program" overdue --within 1h job
	expect 69 "$program" overdue -h 127.0.0.1 -P 1 --within 1h job a
	expect_no_out
	expect 78 "$program" --table-prefix none_ overdue --within 1h job a
}

# ---- exec ------------------------------------------------------------------------------------

test_only_what_asks_for_it_is_recorded() {
	expect 0 "$program" exec job a -- true
	expect 0 "$program" exec -s --at-most-once-per 1h job shared -- true
	expect_no_err
	expect 0 "$program" exec -v -s --at-most-once-per 1h job shared -- true
	expect_err 'the run is not recorded: .*shared'
	expect 64 "$program" exec -s --record job a -- true
	expect_err 'exclusive'
	expect 64 "$program" exec --retry-failed job a -- true
	expect_err '--at-most-once-per'
	expect_equal "$(sql 'SELECT COUNT(*) FROM biz_run')" 0
	expect 0 "$program" exec --record job a -- true
	expect_equal "$(sql 'SELECT COUNT(*) FROM biz_run')" 1
}

test_a_run_that_loses_its_lock_is_lost() {
	"$program" exec --record --lease 2s job a -- sleep 1000 2>"$err" &
	await run_says a running
	expect 0 "$program" break --yes --fence "$(fence_of job a)" job a
	exit_of $!
	expect_equal "$code" 80
	run_says a 'lost' || fail "it is lost"
	# It ends before anybody can tell it.
	expect 80 "$program" exec --record job a -- "$(sql_client)" --defaults-file="$work/client.cnf" \
		"$database" -e "DELETE FROM biz_lock WHERE biz_id = 'a'"
	run_says a 'lost +0 .* 2 +2 +2 ' || fail "it is lost"
}

test_a_signal_to_exec_is_recorded() {
	"$program" exec --record job a -- sleep 1000 &
	await run_says a running
	kill $!
	exit_of $!
	expect_equal "$code" 143
	run_says a 'failed +SIGTERM' || fail "not recorded"
}

test_who_waits_gets_the_lock_as_soon_as_the_run_has_failed() {
	"$program" exec --at-most-once-per 1h --retry-failed job a -- \
		sh -c "until [ -e $work/fail ]; do sleep 0.05; done; exit 1" &
	await run_says a running
	"$program" exec -v -w 60 --at-most-once-per 1h --retry-failed job a -- echo next >"$out" 2>"$err" &
	child=$!
	await file_says "$err" 'held by exec@'
	touch "$work/fail"
	exit_of $child
	expect_equal "$code" 0
	expect_out '^next$'
	run_says a 'done +0 .* 2 +1 +0 ' || fail "two runs"
}

# ---- --max-hold ---------------------------------------------------------------------------------

test_a_command_that_is_in_time_is_left_alone() {
	expect 7 "$program" exec --max-hold 1m job a -- sh -c 'exit 7'
	expect_no_err
}

test_a_command_that_takes_too_long_is_ended() {
	expect 82 "$program" exec --record --max-hold 0.3 job a -- sleep 1000
	expect_err '^bizlock: job/a: --max-hold is over; the command has 10 s to end$'
	expect_err '^bizlock: job/a: the command was ended, because --max-hold was over'
	run_says a 'failed +82 ' || fail "not recorded"
	expect 82 "$program" exec --record --max-hold 0.3 job a -- \
		bash -c 'trap "exit 0" TERM; while :; do sleep 0.05; done'
	run_says a 'failed +82 ' || fail "a command that ends well at SIGTERM has failed, too"
	expect 82 "$program" exec --at-most-once-per 1h --retry-failed --max-hold 0.3 job a -- sleep 1000
	free job a || fail "still held"
	expect 82 "$program" exec --at-most-once-per 1h --max-hold 0.3 job a -- sleep 1000
	expect 75 "$program" exec -n --at-most-once-per 1h job a -- true
}

# And its lock, of a lease shorter than that, is renewed until nobody is at work any more.
test_a_command_that_ignores_sigterm_holds_the_lock_until_it_is_killed() {
	local began
	LEASE_MS=2000
	start_stubborn --max-hold 1s
	"$program" exec job a -- true &
	local next=$!
	await file_says "$err" '--max-hold is over'
	began=$(now_us)
	exit_of "$wrapper"
	expect_equal "$code" 82
	is_gone "$child" || fail "the command lives"
	await is_gone "$grandchild"
	(($(last_sign_of_life) > began + 8000000)) || fail "it was killed at once"
	exit_of "$next"
	expect_equal "$code" 0
	! grep -q 'lock is lost\|could not be renewed' "$err" || fail "the lock was lost"
}

test_what_the_command_leaves_behind_is_killed_too() {
	expect 82 "$program" exec --max-hold 0.5 job a -- bash -c "trap 'exit 0' TERM
		(trap '' TERM; while :; do sleep 0.05; done) & echo \$! >$work/left
		while :; do sleep 0.05; done"
	is_gone "$(cat "$work/left")" || fail "it is still at work"
}

# The shell dies at once, and its child cleans up.
test_what_the_command_has_started_has_the_time_too() {
	expect 82 "$program" exec --max-hold 0.5 job a -- sh -c "bash -c 'trap \"sleep 1; echo clean; exit 0\" TERM
		while :; do sleep 0.05; done'; true"
	expect_out clean
}

# Somebody has broken the lock and has it now: that hold is not broken, and the work was not safe.
test_a_lock_that_somebody_else_has_is_lost_to_a_command_that_fails() {
	expect 80 "$program" exec --at-most-once-per 1h --retry-failed job a -- sh -c "
		'$program' break --fence \$BIZLOCK_FENCE job a >/dev/null; '$program' acquire job a >$work/ticket; exit 3"
	expect 0 "$program" release "$(cat "$work/ticket")"
}

# ---- a lock that is lost ------------------------------------------------------------------------

test_a_lock_that_is_lost_meanwhile_is_lost() {
	LEASE_MS=2000
	start_stubborn --max-hold 1s
	await file_says "$err" '--max-hold is over'
	sql "DELETE FROM biz_lock WHERE biz_id = 'a'"
	exit_of "$wrapper"
	expect_equal "$code" 80
	is_gone "$child" || fail "the command lives"
	expect_err 'the lock is lost; the command is killed'
}

# ---- what cannot be recorded ----------------------------------------------------------------------

expect_not_recorded() {
	expect 7 "$@" exec --record job a -- sh -c 'exit 7'
	expect_no_err
	expect 7 "$@" exec -v --record job a -- sh -c 'exit 7'
	expect_err "$not_recorded"
	expect 0 "$@" exec --at-most-once-per 1ms job a -- true
	expect_no_err
}

test_without_the_table_everything_goes_on() {
	expect 0 "$program" --table-prefix x_ migrate
	sql 'DROP TABLE x_biz_run'
	not_recorded='the run is not recorded: .*x_biz_run' expect_not_recorded "$program" --table-prefix x_
	expect 78 "$program" --table-prefix x_ runs
	expect_err 'bizlock migrate'
	expect 0 "$program" --table-prefix x_ doctor
	expect_out '^warn +tables .*x_biz_run: missing'
	expect 0 "$program" --table-prefix x_ migrate
	expect 0 "$program" --table-prefix x_ runs
}

test_without_a_privilege_everything_goes_on() {
	local host table
	for host in % localhost; do
		sql "CREATE USER '$database'@'$host' IDENTIFIED BY 'c0rrect-horse'"
		for table in biz_lock biz_row_lock biz_lock_schema; do
			sql "GRANT SELECT, INSERT, UPDATE, DELETE ON $database.$table TO '$database'@'$host'"
		done
	done
	export BIZLOCK_USER=$database BIZLOCK_PASSWORD=c0rrect-horse
	not_recorded='the run is not recorded: .*denied' expect_not_recorded "$program"
	expect 76 "$program" runs
	expect_err denied
	expect 0 "$program" migrate
	sql "DROP USER '$database'@'%', '$database'@'localhost'"
}

# Somebody has locked the row of job/a, and does not let go of it.
lock_run() {
	expect 0 "$program" exec --record job a -- true
	{
		echo "BEGIN; SELECT 1 FROM biz_run FOR UPDATE; SELECT 'locked';"
		exec sleep 1000
	} | "$(sql_client)" --defaults-file="$work/client.cnf" -N -n "$database" >"$work/locked" &
	await file_says "$work/locked" locked
}

test_a_run_that_cannot_be_written_keeps_nobody_waiting_for_long() {
	local began
	lock_run
	began=$(now_us)
	expect 7 "$program" exec --record job a -- sh -c 'exit 7'
	expect_no_err
	free job a || fail "still held"
	(($(now_us) < began + 10000000)) || fail "it took $((($(now_us) - began) / 1000)) ms"
}

beginning_is_written() {
	[[ $(sql "SELECT COUNT(*) FROM information_schema.processlist WHERE DB = '$database'
		AND INFO LIKE 'INSERT INTO%biz_run%'") == 1 ]]
}

begins_or_is_gone() {
	beginning_is_written || is_gone "$wrapper"
}

# The signal comes while the beginning is written: the command must not start. The server ends the
# statement after a second, so a busy machine needs several tries to be in time.
test_a_signal_before_the_command_has_begun() {
	local try in_time=false
	lock_run
	for ((try = 0; try < 20; try++)); do
		"$program" exec --record job a -- echo ran >"$out" 2>"$err" &
		wrapper=$!
		await begins_or_is_gone
		kill "$wrapper" 2>/dev/null || :
		! beginning_is_written || in_time=true
		exit_of "$wrapper"
		free job a || fail "still held"
		! $in_time || break
	done
	$in_time || fail "this machine is too busy"
	expect_equal "$code" 143
	expect_no_out
}

test_a_server_that_hangs_at_the_end_of_a_run_is_left() {
	own_server
	"$program" exec --record job a -- bash -c "touch $work/ready; until [[ -e $work/go ]]; do sleep 0.05; done; exit 7" \
		2>"$err" &
	wrapper=$!
	await test -e "$work/ready"
	bash "$BIZLOCK_SERVER_SH" freeze "$server"
	touch "$work/go"
	local began=$SECONDS
	exit_of "$wrapper"
	((SECONDS < began + 15)) || fail "it took $((SECONDS - began)) s"
	expect_equal "$code" 7
	expect_err 'job/a: the server does not answer; the lock stays until its lease ends'
}

connections() {
	"$(sql_client)" --defaults-file="$work/own.cnf" -N -B -e "SHOW GLOBAL STATUS LIKE 'Connections'" | cut -f2
}

# opened_by OPTION...: how many connections an exec makes.
opened_by() {
	local before
	before=$(connections)
	"$program" exec "$@" job a -- true
	echo $(($(connections) - before))
}

test_a_record_takes_no_connection_of_its_own() {
	own_server
	expect_equal "$(opened_by --record)" "$(opened_by)"
}

# ---- runs -------------------------------------------------------------------------------------------

test_runs_are_selected_and_empty_lists_are_lists() {
	expect 0 "$program" runs
	expect_no_out
	expect 0 "$program" runs --json
	expect_equal "$(python3 -c 'import json, sys; print(json.load(sys.stdin))' <"$out")" "{'runs': []}"
	"$program" exec --record job a -- true
	"$program" exec --record job b -- true
	"$program" exec --record other a -- true
	expect 0 "$program" runs
	expect_equal "$(tail -n +2 "$out" | awk '{ print $1 $2 }' | paste -sd ' ')" 'joba othera jobb'
	expect 0 "$program" runs job
	expect_equal "$(tail -n +2 "$out" | awk '{ print $1 $2 }' | paste -sd ' ')" 'joba jobb'
	expect 0 "$program" runs job b
	expect_equal "$(tail -n +2 "$out" | awk '{ print $1 $2 }' | paste -sd ' ')" jobb
	expect 0 "$program" runs nobody
	expect_no_out
	expect 64 "$program" runs job b c
}

test_json_has_all_of_a_run() {
	"$program" exec --record job a -- sh -c 'exit 3' || true
	"$program" exec --record job b -- sh -c 'kill -KILL $$' || true
	"$program" exec --record job c -- true
	expect 0 "$program" runs --json
	python3 - "$out" <<-'EOF2' || fail "not what was run"
		import datetime, json, socket, sys
		a, b, c = json.load(open(sys.argv[1]))["runs"]
		assert (a["outcome"], a["exit_code"], a["exit_signal"]) == ("failed", 3, None)
		assert (b["outcome"], b["exit_code"], b["exit_signal"]) == ("failed", None, 9)
		assert (c["outcome"], c["exit_code"], c["exit_signal"]) == ("done", 0, None)
		assert a["succeeded_at"] is None and c["succeeded_at"] == c["ended_at"]
		assert (a["runs"], a["failures"], a["failures_in_row"]) == (1, 1, 1)
		assert (c["runs"], c["failures"], c["failures_in_row"]) == (1, 0, 0)
		at = [datetime.datetime.strptime(c[k], "%Y-%m-%dT%H:%M:%S.%fZ") for k in ("began_at", "ended_at")]
		assert abs((at[1] - at[0]).total_seconds() * 1000 - c["took_ms"]) <= 2
		assert abs((datetime.datetime.utcnow() - at[1]).total_seconds()) < 600
		assert c["owner"].startswith("exec@%d." % c["pid"]) and c["owner"].endswith("@" + c["host"])
		assert c["fence"] > 0
	EOF2
}

test_text_of_strangers_is_safe() {
	"$program" exec --record $'j\e[31m' 'naïve' -- true
	LC_ALL=C expect 0 "$program" runs
	expect_out '^j\\x1b\[31m +na\\xc3\\xafve '
	! LC_ALL=C grep -q '[^ -~]' "$out" || fail "not ASCII"
	expect 1 "$program" overdue --within 1h $'j\e[31m' b
	expect_out '^j\\x1b\[31m/b is overdue'
	expect 0 "$program" runs --json
	expect_equal "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1], encoding="utf-8"))["runs"][0]["biz_id"] == "naïve")' "$out")" True
}

run_tests
