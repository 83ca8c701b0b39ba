#!/usr/bin/env bash
# bizlock reap, and bizlock-reaper.
source "$(dirname "$0")/common.sh"

reaper=$(dirname "$program")/bizlock-reaper

# stale_rows COUNT MINUTES: rows whose leases ended that many minutes ago.
stale_rows() {
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100)
		SELECT 'stale', CONCAT(a.i, '.', b.i), 'x@1.00@h', 1, UTC_TIMESTAMP(6) - INTERVAL $2 MINUTE, '',
		UTC_TIMESTAMP(6) - INTERVAL 9 DAY, UTC_TIMESTAMP(6) FROM n AS a, n AS b LIMIT $1"
}

rows() {
	sql 'SELECT COUNT(*) FROM biz_lock'
}

test_it_purges_what_is_old_and_nothing_else() {
	stale_rows 120 61
	hold job a
	expect 0 "$program" exec --at-most-once-per 1h cron nightly -- true
	expect 0 "$program" reap --dry-run
	expect_out '^would purge 120 of [0-9]+ rows in .*: 120 leases, 0 rests, 0 row locks; passed over 0$'
	expect_equal "$(rows)" 122
	expect 0 "$program" reap
	expect_out '^purged 120 of [0-9]+ rows in .*: 120 leases, 0 rests'
	expect_no_err
	expect_equal "$(rows)" 2
	held job a || fail "purged what was held"
}

test_older_than_and_max() {
	stale_rows 30 10
	expect 0 "$program" reap
	expect_out '^purged 0 '
	expect 0 "$program" reap --older-than 5m --batch 7 --max 10
	expect_out '^purged 10 '
	expect 0 "$program" reap --older-than=9m
	expect_equal "$(rows)" 0
}

test_the_other_name_is_the_same() {
	stale_rows 5 100
	expect 0 "$reaper" --quiet
	expect_no_out
	expect_no_err
	expect_equal "$(rows)" 0
	expect 0 "$reaper" --help
	expect_out '^Usage: bizlock reap'
	expect 64 "$reaper" --quite
	expect_err 'did you mean --quiet\?'
}

test_json() {
	stale_rows 5 100
	expect 0 "$program" reap --json
	expect_equal "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["leases"], d["dry_run"], d["complete"])' <"$out")" \
		"5 False True"
}

test_a_second_reaper_steps_aside() {
	stale_rows 5 100
	hold bizlock reaper
	expect 0 "$program" reap
	expect_no_out
	expect_err 'another reaper is at work: held by exec@'
	expect 0 "$program" reap --quiet
	expect_no_err
	expect_equal "$(rows)" 6
}

# It pauses for longer than the test looks at it, so the bar is there when the test looks.
test_progress_is_shown_on_a_terminal() {
	stale_rows 3000 100
	sql 'ANALYZE TABLE biz_lock' >/dev/null
	terminal "$program reap --batch 100 --pause 10m & echo \$! >$work/pid; wait \$!; echo code \$?; read x"
	await_screen '^\[#+ *\] +[0-9]+%  [0-9]+ purged$'
	kill -TERM "$(cat "$work/pid")"
	await_screen '^code 143$'
	screen_shows '^purged 100 of ' || fail "no result"
	! screen_shows '%' || fail "the bar is still there"
}

test_its_end_takes_the_bar_away() {
	stale_rows 1000 100
	sql 'ANALYZE TABLE biz_lock' >/dev/null
	terminal "$program reap --batch 50 --pause 60ms; echo code \$?; read x"
	await_screen '^code 0$'
	screen_shows '^purged 1000 of ' || fail "no result"
	! screen_shows '%' || fail "the bar is still there"
}

test_no_bar_where_it_would_be_noise() {
	stale_rows 1000 100
	expect 0 "$program" reap --batch 100 --pause 20ms
	expect_no_err
	stale_rows 1000 100
	terminal "$program reap --quiet --batch 50 --pause 20ms; echo code \$?; read x"
	await_screen '^code 0$'
	expect_equal "$(screen | grep -cv '^$')" 1
}

test_a_signal_ends_it_between_two_batches() {
	stale_rows 5000 100
	"$program" reap --batch 10 --pause 100ms >"$out" 2>"$err" &
	await eval '(($(rows) < 4990))'
	kill -TERM $!
	exit_of $!
	expect_equal "$code" 143
	expect_out '^purged [0-9]+ of .*; not to the end$'
	(($(rows) > 1000)) || fail "it went on"
	free bizlock reaper || fail "its lock is still held"
}

test_a_signal_ends_a_pause() {
	stale_rows 3000 100
	"$program" reap --batch 10 --pause 10m >"$out" 2>"$err" &
	await eval '(($(rows) < 3000))'
	kill -TERM $!
	exit_of $!
	expect_equal "$code" 143
	expect_out '^purged 10 of .*; not to the end$'
	expect_no_err
	free bizlock reaper || fail "its lock is still held"
}

test_misuse() {
	expect 64 "$program" reap --older-than forever
	expect 64 "$program" reap --batch 10001
	expect 64 "$program" reap everything
	expect 69 "$program" reap -h 127.0.0.1 -P 1
	BIZLOCK_DATABASE=mysql expect 78 "$program" reap
}

run_tests
