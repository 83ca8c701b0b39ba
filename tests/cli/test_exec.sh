#!/usr/bin/env bash
# bizlock exec, while nothing goes wrong with the lock.
source "$(dirname "$0")/common.sh"

locked() {
	"$program" exec "$@"
}

test_the_command_runs_under_the_lock_and_frees_it() {
	expect 0 locked job a -- mariadb_count job a
	expect_out '^1$'
	free job a || fail "still held"
}

# Run by the command above, to see what a child sees.
mariadb_count() { :; }
count_script() {
	cat >"$work/mariadb_count" <<-EOF
		#!/bin/sh
		exec "$(sql_client)" --defaults-file="$work/client.cnf" -NB \
			$database -e "SELECT COUNT(*) FROM biz_lock WHERE biz_type='\$1' AND biz_id='\$2'"
	EOF
	chmod +x "$work/mariadb_count"
	PATH=$work:$PATH
}
count_script

test_its_exit_code_is_the_commands() {
	for code_wanted in 0 1 7 75 255; do
		expect "$code_wanted" locked job a -- sh -c "exit $code_wanted"
	done
	expect 143 locked job a -- sh -c 'kill -TERM $$'
	expect 137 locked job a -- sh -c 'kill -KILL $$'
	expect 127 locked job a -- "$work/is-not-there"
	expect_err 'is-not-there: No such file'
	expect 126 locked job a -- /etc/passwd
	expect_err 'Permission denied'
	free job a || fail "still held"
}

test_the_child_knows_its_lock() {
	BIZLOCK_TYPE=old BIZLOCK_FENCE=0 expect 0 locked job 'a b' -- env
	expect_out '^BIZLOCK_TYPE=job$'
	expect_out '^BIZLOCK_ID=a b$'
	expect_out '^BIZLOCK_FENCE=[1-9][0-9]*$'
	expect_out "^BIZLOCK_OWNER=exec@[0-9]+\.[0-9a-f]+@"
	expect_equal "$(grep -c '^BIZLOCK_TYPE=' "$out")" 1
}

# With musl a thread of a program has 128 KiB.
test_a_small_stack_is_enough() {
	ulimit -s 64
	expect 0 locked job a -- true
	expect 0 locked --shared --note 'small' job a -- true
	expect 0 "$program" doctor
}

test_fences_grow() {
	local first
	first=$(locked job a -- sh -c 'echo $BIZLOCK_FENCE')
	expect 0 locked job a -- sh -c "[ \$BIZLOCK_FENCE -gt $first ]"
}

test_what_flows_in_flows_out() {
	expect_equal "$(echo hello | locked job a -- tr a-z A-Z)" HELLO
	head -c 3000000 /dev/urandom >"$work/data"
	locked job a -- cat <"$work/data" | cmp - "$work/data"
	expect 0 locked job a -- sh -c 'echo to stderr >&2'
	expect_err '^to stderr$'
	expect_no_out
}

test_no_file_of_ours_is_left_to_the_child() {
	local here there
	here=$(bash -c 'ls /proc/self/fd' 9</dev/null)
	there=$(locked job a -- ls /proc/self/fd 9</dev/null)
	expect_equal "$there" "$here"
	there=$(locked job a -- sh -c 'ls -l "/proc/$(ps -o ppid= $PPID | tr -d " ")/fd"' | grep -c socket)
	((there > 0)) || fail "the wrapper has no connection: this proves nothing"
	locked job a -- sh -c 'ls -l /proc/self/fd' >"$out"
	! grep -q socket "$out" || fail "a connection is left to the child"
}

# without_close_range COMMAND...: the kernel refuses close_range(), file 900 is open, and the limit is
# lower than that.
without_close_range() {
	python3 -c 'if True:
		import ctypes, os, resource, struct, sys
		LOAD, IS, RETURN, SECCOMP, NO_NEW_PRIVILEGES = 0x20, 0x15, 0x06, 22, 38
		code = [(LOAD, 0, 0, 0), (IS, 0, 1, 436), (RETURN, 0, 0, 0x50026), (RETURN, 0, 0, 0x7FFF0000)]
		lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
		program = ctypes.create_string_buffer(struct.pack("HP", len(code), ctypes.addressof(lines)))
		libc = ctypes.CDLL(None)
		if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, 2, program):
			sys.exit("no filter")
		os.dup2(0, 900)
		resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000))
		os.execvp(sys.argv[1], sys.argv[1:])' "$@" </dev/null
}

test_files_are_closed_one_by_one_where_the_kernel_cannot_close_many() {
	expect 0 without_close_range "$program" exec job a -- \
		sh -c 'ls -l "/proc/$PPID/fd" >"$1"; ls -l /proc/self/fd' - "$work/guard"
	expect_out ' 900 -> '
	! grep socket "$out" || fail "a connection is left to the child"
	! grep -E 'socket| 900 -> ' "$work/guard" || fail "they are left to the guard"
}

test_closed_files_stay_closed() {
	expect 0 locked job a -- sh -c '! [ -e /proc/self/fd/0 ]' <&-
}

test_signal_dispositions_are_those_of_the_caller() {
	local here there
	here=$(grep -E 'Sig(Blk|Ign)' /proc/self/status)
	there=$(locked job a -- grep -E 'Sig(Blk|Ign)' /proc/self/status)
	expect_equal "$there" "$here"
	here=$(trap '' HUP PIPE && grep -E 'Sig(Blk|Ign)' /proc/self/status)
	there=$(trap '' HUP PIPE && locked job a -- grep -E 'Sig(Blk|Ign)' /proc/self/status)
	expect_equal "$there" "$here"
}

test_a_takeover_is_told() {
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		VALUES ('job', 'a', 'exec@77.00112233aabbccdd@db-7', 1, UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE, '',
		UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
	expect 0 locked job a -- sh -c 'echo "took over: $BIZLOCK_TOOK_OVER"'
	expect_out '^took over: 1$'
	expect_err '^bizlock: job/a was taken over: its last holder never released it$'
	BIZLOCK_TOOK_OVER=1 expect 0 locked job a -- sh -c 'echo "took over: $BIZLOCK_TOOK_OVER"'
	expect_out '^took over: 0$'
	expect_no_err
}

test_busy_is_said_by_the_exit_code() {
	hold job a --note "night run"
	expect 75 locked --wait 0 job a -- true
	expect_no_err
	expect 9 locked --wait 0 -E 9 job a -- true
	expect 0 locked --wait 0 --conflict-exit-code=0 job a -- true
	expect 75 locked -n job a -- true
	expect 75 locked --nonblock --wait 0 job a -- true
	expect 64 locked -n --wait 1 job a -- true
	expect_err '--nonblock or --wait, not both'
	expect 124 locked --timeout 0.1 job a -- true
	expect 124 locked --wait 0.1 job a -- true
	expect 9 locked --wait 100ms -E 9 job a -- true
	expect 75 locked -v --wait 0 job a -- true
	expect_err "held by exec@$holder\."
	kill "$holder"
}

test_a_waiter_is_next() {
	hold job a
	"$program" exec -v job a -- echo mine >"$out" 2>"$err" &
	await file_says "$err" 'held by exec@'
	kill "$holder"
	exit_of $!
	expect_equal "$code" 0
	expect_out '^mine$'
	expect_err 'acquired after .*, fence [0-9]+$'
}

test_waiting_ends_by_a_signal() {
	hold job a
	for name in TERM HUP; do
		: >"$err"
		"$program" exec -v job a -- true 2>"$err" &
		await file_says "$err" 'held by exec@'
		kill "-$name" $!
		exit_of $!
		expect_equal "$code" $((128 + $(kill -l $name)))
	done
	kill "$holder"
}

test_signals_are_passed_on() {
	"$program" exec job a -- bash -c 'trap "echo got" USR1 TERM; echo ready; while :; do sleep 0.05; done' \
		>"$out" &
	local pid=$!
	await file_says "$out" ready
	kill -USR1 $pid
	await file_says "$out" got
	kill -TERM $pid
	await eval '[[ $(grep -c got "$out") == 2 ]]'
	kill -HUP $pid
	exit_of $pid
	expect_equal "$code" 129
	free job a || fail "still held"
}

# As an init system does that ends a service. A second one would mean "at once" to some commands.
test_a_signal_to_all_is_not_sent_twice() {
	"$program" exec job a -- bash -c 'trap "echo got" USR1; trap "exit 3" TERM
		echo $$ $PPID; while :; do sleep 0.05; done' >"$out" &
	local pid=$! command guard
	await file_says "$out" '^[0-9]+ [0-9]+$'
	read -r command guard <"$out"
	kill -USR1 "$pid" "$guard" "$command"
	kill -TERM "$pid" # arrives after what is passed on of the others
	exit_of "$pid"
	expect_equal "$code" 3
	expect_equal "$(grep -c got "$out")" 1
}

test_the_lease_is_renewed() {
	hold job a --lease 6s
	sleep 7
	expect 75 locked --wait 0 job a -- true
	held job a || fail "no longer held"
	kill "$holder"
}

test_options_reach_the_row() {
	hold job a --lease 90s --note 'why not'
	expect_equal "$(sql "SELECT note, TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), timeout) BETWEEN 60 AND 90
		FROM biz_lock WHERE biz_type = 'job' AND biz_id = 'a'")" "why not	1"
	kill "$holder"
	await free job a
}

test_at_most_once_per_period() {
	expect 0 locked --wait 0 --at-most-once-per 1h job once -- echo ran
	expect_out ran
	expect 75 locked --wait 0 --at-most-once-per 1h job once -- echo ran
	expect_no_out
	expect 75 locked -v --wait 0 job once -- true
	expect_err 'is at rest for another'
	expect 0 locked --wait 0 --at-most-once-per 300ms job brief -- true
	expect 0 locked --at-most-once-per 300ms job brief -- true
}

# One machine without the program must not keep the job from all others.
test_what_could_not_be_started_uses_up_no_period() {
	once="--wait 0 --at-most-once-per 1h job once"
	expect 127 locked $once -- "$work/is-not-there"
	expect 126 locked $once -- /etc/passwd
	for call in clone pipe2; do
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 expect 71 strace -qq -o "$work/trace" \
			-e signal=none -e trace=$call -e "inject=$call:error=EAGAIN:when=1" \
			"$program" exec $once -- echo ran
		expect_no_out
		expect_err 'no (process|pipe) can be'
		free job once || fail "still held"
	done
	expect 127 locked $once -- sh -c 'echo ran; exit 127'
	expect_out ran
	expect 75 locked $once -- echo ran
}

test_a_waiter_follows_at_once_what_could_not_be_started() {
	hold job once
	"$program" exec -v --at-most-once-per 1h job once -- "$work/is-not-there" 2>"$err" &
	local first=$!
	await file_says "$err" 'held by exec@'
	"$program" exec -v job once -- echo mine >"$out" 2>"$work/err2" &
	local second=$!
	await file_says "$work/err2" 'held by exec@'
	kill "$holder"
	exit_of $first
	expect_equal "$code" 127
	exit_of $second
	expect_equal "$code" 0
	expect_out '^mine$'
}

test_the_same_lock_within_itself_is_refused() {
	expect 81 locked job a -- "$program" exec job a -- true
	expect_err 'job/a is held by the exec that runs this one'
	expect 81 locked job a -- "$program" exec job b -- "$program" exec --wait 0 job a -- true
	expect 0 locked job a -- "$program" exec job b -- true
	# Not the hold of the wrapper around us: that has released it.
	expect 0 env BIZLOCK_OUTER="exec@1.0000000000000000@elsewhere" "$program" exec job a -- true
}

# exec_in_exec CODE "OPTIONS OF THE OUTER" "OPTIONS OF THE INNER"
exec_in_exec() {
	expect "$1" locked $2 job a -- "$program" exec $3 job a -- true
}

test_sharers_within_sharers_do_not_wait_for_themselves() {
	exec_in_exec 0 --shared --shared
	exec_in_exec 0 "--limit 2" "--limit 2"
	exec_in_exec 81 "--limit 1" "--limit 1"
	expect 81 locked --limit 2 job a -- "$program" exec --limit 2 job a -- \
		"$program" exec --limit 2 job a -- true
	exec_in_exec 81 --shared ""
	exec_in_exec 81 "" --shared
}

# It stands before a newcomer, and waits for the exec around that.
test_a_sharer_within_a_sharer_does_not_wait_behind_who_waits_for_it() {
	expect 81 locked --shared job a -- bash -c "
		env -u BIZLOCK_OUTER '$program' exec -w 60s job a -- true 2>/dev/null &
		until '$program' show job a | grep -q '^waiting'; do sleep 0.05; done
		'$program' exec --shared job a -- true
		code=\$?
		kill \$!
		exit \$code"
	expect_err 'and somebody waits to have it alone: waiting for it would never end'
}

test_keys_that_look_like_options() {
	expect 0 locked --wait 0 -- -x --id -- sh -c 'echo $BIZLOCK_TYPE $BIZLOCK_ID'
	expect_out '^-x --id$'
}

test_misuse() {
	expect 64 locked job a
	expect_err 'no command'
	expect 64 locked job a --
	expect 64 locked job a ls -la
	expect_err '"--" is missing before the command$'
	expect 64 locked -w 0 job a ls
	expect_err '"--" is missing before the command$'
	expect 64 locked job a -w 0
	expect_err 'no command'
	expect 0 locked job a --help
	expect 64 locked job -- true
	expect_err 'exec needs BIZ_TYPE BIZ_ID'
	expect 64 locked job a b -- true
	expect 64 locked --wait soon job a -- true
	expect_err '"soon" is not a duration'
	expect 64 locked --wait 99999999999999999999 job a -- true
	expect 64 locked --lease 10ms job a -- true
	expect_err '10ms is out of range, 1.0s to 1d 0h'
	expect 64 locked --at-most-once-per 213503982335d job a -- true
	expect 64 locked -E 256 job a -- true
	expect 64 locked -E x job a -- true
	expect 64 locked --watt 5 job a -- true
	expect_err 'did you mean --wait\?'
	expect 64 locked "$(printf 'x%.0s' {1..65})" a -- true
	expect_err 'biz_type'
}

test_a_server_that_is_not_there() {
	expect 69 locked -w 0 -h 127.0.0.1 -P 1 job a -- echo ran
	expect_no_out
	expect_err 'conn'
	expect 78 locked --defaults-file="$work/none.cnf" job a -- true
	BIZLOCK_DATABASE=bizlock_no_such_database expect 78 locked job a -- true
	BIZLOCK_DATABASE=mysql expect 78 locked job a -- true
}

# Whoever waits for a server, or starts a job again, must be able to tell that it would not help.
test_who_is_not_let_in_has_to_change_something() {
	BIZLOCK_PASSWORD=wrong-word expect 78 locked job a -- true
	expect_err 'Access denied'
	BIZLOCK_USER=nobody-of-this-name expect 78 locked job a -- true
	BIZLOCK_PASSWORD=wrong-word expect 78 "$program" list
}

test_the_command_gets_no_password() {
	BIZLOCK_PASSWORD=${BIZLOCK_TEST_PASSWORD:-} expect 0 locked job a -- env
	expect_out '^BIZLOCK_DATABASE='
	! grep '^BIZLOCK_PASSWORD' "$out" || fail "it has it"
}

test_the_password_is_not_seen() {
	hold job a
	tr '\0' ' ' <"/proc/$holder/cmdline" >"$out"
	! grep -qF "${BIZLOCK_TEST_PASSWORD:-none at all}" "$out" || fail "in the process list"
	kill "$holder"
}

# Nobody holds the lock, and no machine would run the job: that must not look as if another did.
test_behind_a_locked_table_it_does_not_say_busy() {
	sql "LOCK TABLES biz_lock READ; DO SLEEP(60)" >"$work/lock.out" 2>&1 &
	local locker=$!
	await eval '[[ $(sql "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE '"'DO SLEEP%'"'") -gt 0 ]]'
	expect 76 "$program" exec -w 0 job a -- true
	expect_err 'biz_lock.* is locked by another session'
	sql "KILL $(sql "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'DO SLEEP%'")"
	wait "$locker" || true
	expect 0 "$program" exec -w 10 job a -- true
}

run_tests
