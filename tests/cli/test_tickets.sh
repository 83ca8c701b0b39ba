#!/usr/bin/env bash
# bizlock acquire, renew and release: locks of scripts, by tickets.
source "$(dirname "$0")/common.sh"

# take [OPTION...] TYPE ID: acquires it; the ticket is in $ticket.
take() {
	expect 0 "$program" acquire "$@"
	expect_equal "$(wc -l <"$out")" 1
	ticket=$(cat "$out")
	[[ $ticket =~ ^[!-~]{40,703}$ ]] || fail "no ticket: $ticket"
}

renewed() {
	expect 0 "$program" renew "$@"
	ticket=$(cat "$out")
}

left_s() {
	sql "SELECT ROUND(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout) / 1000000)
		FROM biz_lock WHERE biz_type = '$1' AND biz_id = '$2'"
}

# lease TYPE ID FROM TO: what is left of it, in seconds.
expect_lease() {
	local left
	left=$(left_s "$1" "$2")
	((left >= $3 && left <= $4)) || fail "$left s are left of the lease of $1/$2, not $3 to $4"
}

# lease_ends TYPE ID: now, not later.
lease_ends() {
	sql "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) WHERE biz_type = '$1' AND biz_id = '$2'"
}

# ---- as a script has it ----------------------------------------------------------

test_a_lock_outlives_the_command_that_acquired_it() {
	local fence
	take job a --note 'the night'
	expect_no_err
	fence=$(fence_of job a)
	expect_lease job a 570 600
	expect 75 "$program" exec -n job a -- true
	expect 75 "$program" acquire -n job a
	expect_no_out
	expect_no_err
	renewed "$ticket" --lease 1h
	expect_no_err
	expect_lease job a 3570 3600
	expect_equal "$(fence_of job a)" "$fence"
	expect 75 "$program" exec -n job a -- true
	BIZLOCK_RELEASE_ON_CLOSE=off expect 0 "$program" release "$ticket"
	expect_no_out
	expect_no_err
	expect 0 "$program" exec -n job a -- true
	! held job a || fail "a row was left"
}

# Three commands of a pipeline, one after the other under the lock of the first.
test_a_pipeline_shares_a_lock_by_a_ticket_in_a_file() {
	cat >"$work/pipeline" <<'SCRIPT'
set -euo pipefail
"$1" acquire -w 0 job pipe >"$2/ticket"
fetch() {
	seq 3
}
pack() {
	sed 's/^/packed /'
	"$1" renew - <"$2/ticket" >"$2/next" && mv "$2/next" "$2/ticket"
}
load() {
	cat
	"$1" release - <"$2/ticket"
}
# each waits for the end of the one before: its standard input
fetch | pack "$@" | load "$@"
SCRIPT
	expect 0 bash "$work/pipeline" "$program" "$work"
	expect_equal "$(cat "$out")" $'packed 1\npacked 2\npacked 3'
	expect_no_err
	expect 0 "$program" acquire -n job pipe
}

test_the_sample_of_the_help() {
	expect 0 "$program" acquire --help
	grep -oE '^  ticket=.*' "$out" | sed 's/-w 1m/-w 0/' >"$work/script"
	"$program" renew --help | grep -oE '^  next=.*' >>"$work/script"
	echo 'bizlock release "$ticket"' >>"$work/script"
	expect_equal "$(wc -l <"$work/script")" 3
	PATH=$(dirname "$program"):$PATH expect 0 bash -eu "$work/script"
	expect_no_err
	PATH=$(dirname "$program"):$PATH expect 0 dash -eu "$work/script"
	hold job nightly
	PATH=$(dirname "$program"):$PATH expect 75 bash -eu "$work/script"
}

test_a_lease_that_is_asked_for_is_kept_by_renewals() {
	take --lease 20 job a
	expect_lease job a 15 20
	sql "UPDATE biz_lock SET timeout = timeout - INTERVAL 12 SECOND, gmt_modified = gmt_modified - INTERVAL 12 SECOND"
	renewed "$ticket"
	expect_lease job a 15 20
	renewed --lease 1h "$ticket"
	renewed "$ticket"
	expect_lease job a 3590 3600
	renewed --lease 2m "$ticket" # a shorter lease is granted, too
	expect_lease job a 115 120
}

test_bad_leases_and_options_that_exclude_each_other() {
	expect 64 "$program" acquire --lease 0.9s job a
	expect 64 "$program" acquire --lease 25h job a
	expect 64 "$program" renew --lease 0 x
	expect 64 "$program" acquire -s -x job a
	expect_err 'acquire: --shared or --exclusive, not both'
	expect 64 "$program" acquire --limit 2 -x job a
	expect 64 "$program" acquire -n -w 2 job a
	expect 64 "$program" acquire job
	expect 64 "$program" renew
	expect 64 "$program" release a b
	free job a || fail "acquired"
}

# ---- waiting ------------------------------------------------------------------------

test_it_waits_and_gives_up_as_exec_does() {
	hold job a
	expect 75 "$program" acquire -w 0 job a
	expect 124 "$program" acquire -w 0.3 job a
	expect_no_out
	expect_no_err
	expect 75 "$program" acquire -vn job a
	expect_err "job/a is held by exec@$holder"
	"$program" acquire job a >"$out" 2>"$err" &
	child=$!
	await eval '"$program" show job a | grep -q ^waiting'
	kill "$holder"
	exit_of "$child"
	expect_equal "$code" 0
	expect_out '^bizlock1:'
}

# A release wakes a waiter; nobody waits for the lease of ten minutes.
test_a_release_wakes_who_waits() {
	take job a
	"$program" exec job a -- true &
	child=$!
	await eval '"$program" show job a | grep -q ^waiting'
	expect 0 "$program" release "$ticket"
	exit_of "$child"
	expect_equal "$code" 0
}

test_shared_tickets() {
	local first second
	take -s job a
	first=$ticket
	take --limit 2 job a
	second=$ticket
	expect 75 "$program" acquire --limit 2 -n job a
	expect 75 "$program" acquire -n job a
	renewed "$first"
	expect 0 "$program" release "$ticket"
	expect 75 "$program" acquire -n job a
	expect 0 "$program" release "$second"
	expect 0 "$program" acquire -n job a
}

test_within_an_exec_of_the_same_lock_it_is_refused() {
	expect 81 "$program" exec job a -- "$program" acquire job a
	expect_err 'job/a is held by the exec that runs this one'
	expect_no_out
}

test_a_dead_holder_is_told_of() {
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		VALUES ('job', 'a', 'x@1.00@h', 1, UTC_TIMESTAMP(6) - INTERVAL 1 SECOND, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
	take job a
	expect_err 'job/a was taken over: its last holder never released it'
}

# ---- a ticket that is no good ----------------------------------------------------------

test_a_ticket_is_good_once() {
	local first command
	take job a
	first=$ticket
	renewed "$first"
	for command in renew release; do
		expect 80 "$program" "$command" "$first"
		expect_no_out
		expect_err '^bizlock: job/a: the ticket was used before, its lease is over, or the lock was broken$'
	done
	held job a || fail "a used ticket released it"
	expect 0 "$program" release "$ticket"
	for command in renew release; do
		expect 80 "$program" "$command" "$ticket"
	done
	free job a || fail "a used ticket acquired it"
}

test_of_two_renewals_at_once_one_succeeds() {
	local i codes=
	take job a
	for i in 1 2 3 4; do
		{
			set +e
			"$program" renew "$ticket" >"$work/renewed.$i" 2>/dev/null
			echo $? >"$work/code.$i"
		} &
	done
	wait
	codes=$(sort "$work"/code.? | tr '\n' ' ')
	expect_equal "$codes" '0 80 80 80 '
	expect_equal "$(cat "$work"/renewed.? | wc -l)" 1
}

test_after_its_lease() {
	local command
	for command in renew release; do
		take --lease 1 job "$command"
		await eval '(($(left_s job "$command") < 0))'
		expect 80 "$program" "$command" "$ticket"
		expect_no_out
		expect 0 "$program" acquire -n job "$command"
		expect 80 "$program" "$command" "$ticket"
		held job "$command" || fail "the next holder's lock is gone"
	done
}

test_a_lock_that_was_broken() {
	take job a
	expect 0 "$program" break job a --fence "$(fence_of job a)"
	expect 80 "$program" renew "$ticket"
	expect 80 "$program" release "$ticket"
}

test_another_database() {
	take job a
	sql_database=mysql sql "CREATE DATABASE ${database}_other"
	"$program" migrate -D "${database}_other" >/dev/null
	run "$program" release -D "${database}_other" "$ticket"
	sql_database=mysql sql "DROP DATABASE ${database}_other"
	expect_equal "$code" 80
	held job a || fail "released"
	expect 0 "$program" release "$ticket"
}

test_garbage_reaches_no_server() {
	local word long
	take job a
	long=$(printf 'x%.0s' {1..100000})
	for word in '' ' ' - -- x bizlock1: "$ticket " " $ticket" "${ticket%?}" "${ticket}x" "${ticket^^}" "$ticket$ticket" \
		"${ticket/:1:/:2:}" "$long" "$ticket$long" $'\e[2J' "$ticket"$'\nx' %s%n; do
		run env BIZLOCK_PORT=1 BIZLOCK_HOST=127.0.0.1 "$program" renew -- "$word" </dev/null
		[[ $code == 64 || ($word == *$'\n'* && $code == 69) ]] || fail "exit code $code: $word"
		expect_no_out
	done
	expect_err 'renew: this is not a ticket$'
	expect 0 "$program" release "$ticket"
}

test_a_ticket_comes_by_standard_input() {
	take job a
	expect 0 "$program" renew - <<<"$ticket"
	ticket=$(cat "$out")
	printf %s "$ticket" >"$work/ticket"
	expect 0 "$program" release - <"$work/ticket"
	expect 64 "$program" release - <<<''
	expect 64 "$program" release - </dev/null
	expect_err 'standard input has no ticket'
	expect 64 "$program" release - <&-
	expect 64 "$program" release - </dev/zero
}

# ---- a ticket that nobody gets ------------------------------------------------------------

test_a_ticket_that_cannot_be_printed_leaves_no_lock() {
	expect 74 bash -c '"$1" acquire job a >/dev/full' - "$program"
	expect_err 'job/a: the ticket could not be printed, so the lock is released'
	expect_err 'standard output: '
	free job a || fail "the lock stays"
	expect 74 bash -c '"$1" acquire job a >&-' - "$program"
	free job a || fail "the lock stays"
	expect 74 bash -c 'ulimit -f 0; trap "" XFSZ; "$1" acquire job a >"$2"' - "$program" "$work/ticket"
	free job a || fail "the lock stays"
	expect 74 bash -c 'ulimit -f 0; trap "" XFSZ; "$1" acquire -s job a >"$2"' - "$program" "$work/ticket"
	free job a || fail "the shared lock stays"
	expect 0 "$program" acquire -n job a
}

test_a_reader_that_has_gone_leaves_no_lock() {
	set +e
	(
		"$program" acquire job a 2>"$err"
		echo $? >"$work/code"
	) | true
	set -e
	expect_equal "$(cat "$work/code")" 141
	expect_err 'so the lock is released'
	free job a || fail "the lock stays"
}

sql_own() {
	"$(sql_client)" --defaults-file="$work/own.cnf" -NB "$database" -e "$1"
}

# at_gift WHO STATEMENT: the own server runs it before the lock is given to WHO.
at_gift() {
	sql_own "DELIMITER ;;
CREATE TRIGGER gift BEFORE UPDATE ON biz_lock FOR EACH ROW
	BEGIN IF NEW.owner LIKE '$1' THEN $2; END IF; END;;"
}

# slowly WHO [SECONDS]: that takes so long, or until the server is killed.
slowly() {
	at_gift "$1" "DO SLEEP(${2:-600})"
}

hangs() {
	[[ $(sql_own "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'") == 1 ]]
}

# Interrupted at each moment: while it waits for the lock, and while it exports it.
test_an_acquire_that_is_interrupted_leaves_no_lock() {
	hold job a
	"$program" acquire job a >"$out" 2>"$err" &
	child=$!
	await eval '"$program" show job a | grep -q ^waiting'
	kill -TERM "$child"
	exit_of "$child"
	expect_equal "$code" 143
	expect_no_out
	kill "$holder"
	await free job a
	own_server
	slowly 'export-%' 1
	"$program" acquire job a >"$out" 2>"$err" &
	child=$!
	await hangs
	kill -TERM "$child"
	exit_of "$child"
	expect_equal "$code" 143
	expect_no_out
	expect_equal "$(sql_own "SELECT COUNT(*) FROM biz_lock WHERE owner <> ''")" 0
}

test_an_acquire_that_fails_half_way_leaves_no_lock() {
	own_server
	at_gift 'export-%' "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today'"
	BIZLOCK_RELEASE_ON_CLOSE=off expect 76 "$program" acquire job a
	expect_no_out
	expect_err 'not today'
	expect_equal "$(sql_own "SELECT COUNT(*) FROM biz_lock WHERE owner <> ''")" 0
}

test_an_acquire_whose_server_dies_prints_nothing() {
	own_server
	slowly 'export-%'
	"$program" acquire job a >"$out" 2>"$err" &
	child=$!
	await hangs
	bash "$BIZLOCK_SERVER_SH" kill "$server"
	exit_of "$child"
	expect_equal "$code" 69
	expect_no_out
}

# The ticket that was given in is used up, and the next one is lost with the answer.
test_a_renewal_whose_answer_is_lost() {
	own_server
	take job a
	slowly 'export-%'
	BIZLOCK_IO_TIMEOUT_MS=1000 "$program" renew "$ticket" >"$out" 2>"$err" &
	child=$!
	await hangs
	bash "$BIZLOCK_SERVER_SH" kill "$server"
	exit_of "$child"
	expect_equal "$code" 69
	expect_no_out
	expect_err 'job/a: the ticket is used up; the lock is free in 10m 0s at most'
	bash "$BIZLOCK_SERVER_SH" restart "$server"
	expect 80 "$program" renew "$ticket"
	expect 75 "$program" acquire -n job a
}

# What the lock guards is half done, so the lock must not be free at once.
test_a_renewal_that_fails_half_way_leaves_the_lock_to_its_lease() {
	own_server
	take job a
	at_gift 'export-%' "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today'"
	expect 76 "$program" renew --lease 1h "$ticket"
	expect_no_out
	expect_err 'not today'
	expect_err 'job/a: the ticket is used up; the lock is free in 1h 0m at most'
	expect 75 "$program" acquire -n job a
}

test_a_renewal_that_may_not_have_happened() {
	own_server
	take job a
	slowly 'exec@%'
	BIZLOCK_IO_TIMEOUT_MS=1000 "$program" renew "$ticket" >"$out" 2>"$err" &
	child=$!
	await hangs
	bash "$BIZLOCK_SERVER_SH" kill "$server"
	exit_of "$child"
	expect_equal "$code" 69
	expect_no_out
	expect_err 'job/a: whether the ticket is used up is not known; if it is, the lock is free when its lease ends'
	bash "$BIZLOCK_SERVER_SH" restart "$server"
	sql_own 'DROP TRIGGER gift'
	renewed "$ticket" # it was not
}

test_without_a_server_the_ticket_stays_good() {
	own_server
	take job a
	bash "$BIZLOCK_SERVER_SH" stop "$server"
	for command in renew release; do
		expect 69 "$program" "$command" "$ticket"
		! grep 'used up' "$err" || fail "nothing was asked of the server"
	done
	expect 69 "$program" acquire -n job b
	bash "$BIZLOCK_SERVER_SH" restart "$server"
	renewed "$ticket"
}

# A script that is stopped must not wait for the network.
test_a_renewal_hears_signals_while_the_server_hangs() {
	local began
	own_server
	take job a
	slowly 'export-%'
	"$program" renew "$ticket" >"$out" 2>"$err" &
	child=$!
	await hangs
	bash "$BIZLOCK_SERVER_SH" freeze "$server"
	began=$SECONDS
	kill -TERM "$child"
	exit_of "$child"
	expect_equal "$code" 143
	((SECONDS < began + 9)) || fail "it took $((SECONDS - began)) s"
	expect_no_out
	expect_err 'the server does not answer'
	expect_err 'used up'
}

test_a_renewal_that_cannot_print_the_next_ticket() {
	take job a
	expect 74 bash -c '"$1" renew "$2" >/dev/full' - "$program" "$ticket"
	expect_err 'job/a: the next ticket could not be printed.*; the lock is free in 10m 0s at most'
	held job a || fail "its work may be half done"
	expect 80 "$program" renew "$ticket"
}

# ---- for people who look ---------------------------------------------------------------------

test_lists_show_who_made_the_ticket() {
	take job a --note 'the night'
	expect 0 "$program" list
	expect_out '^job +a +exclusive +\(ticket\) +[^ ]+ +[0-9]+ .* 9m 5[0-9]s the night$'
	expect 0 "$program" show job a
	expect_out '^state +held$'
	expect_out '^owner +export-[0-9a-f]{16}@[0-9]+\.[0-9a-f]+@'
	expect_out '^ticket +made by this process; whoever has the ticket has the lock$'
	expect_out '^note +the night$'
	expect 0 "$program" list --json
	expect_out '"owner": *"export-'
	expect 0 "$program" list --held
	expect_equal "$(wc -l <"$out")" 2
	"$program" release "$ticket"
	hold job b
	expect 0 "$program" show job b
	! grep ticket "$out" || fail "exec has no ticket"
}

run_tests
