#!/usr/bin/env bash
# bizlock exec when the lock or the server goes: nobody is at work without the lock, and
# nobody is left over.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/stubborn.sh"

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

# A command that was told to end gets its time and no more, even if the lease could be renewed
# again.
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

# Without a limit it would take three network timeouts, of 10 s each.
ends_soon() {
	local began=$SECONDS
	exit_of "$1"
	((SECONDS < began + 15)) || fail "it took $((SECONDS - began)) s"
}

test_a_server_that_hangs_at_the_end_is_left() {
	own_server
	"$program" exec job a -- bash -c "touch $work/ready; until [[ -e $work/go ]]; do sleep 0.05; done; exit 7" \
		2>"$err" &
	wrapper=$!
	await test -e "$work/ready"
	bash "$BIZLOCK_SERVER_SH" freeze "$server"
	touch "$work/go"
	ends_soon "$wrapper"
	expect_equal "$code" 7
	expect_err 'job/a: the server does not answer; the lock stays until its lease ends'
}

# The user of the command cannot connect any more, and the lock is renewed by what is there.
test_a_server_that_lets_nobody_in_costs_no_lock() {
	local host
	for host in % localhost; do
		sql "CREATE USER '$database'@'$host' IDENTIFIED BY 'c0rrect-horse'"
		sql "GRANT SELECT, INSERT, UPDATE, DELETE ON $database.* TO '$database'@'$host'"
	done
	BIZLOCK_USER=$database BIZLOCK_PASSWORD=c0rrect-horse \
		"$program" exec --lease 6s job a -- bash -c 'echo ready; sleep 14' >"$out" 2>"$err" &
	wrapper=$!
	await file_says "$out" ready
	sql "ALTER USER '$database'@'%' ACCOUNT LOCK"
	sql "ALTER USER '$database'@'localhost' ACCOUNT LOCK"
	exit_of "$wrapper"
	sql "DROP USER '$database'@'%', '$database'@'localhost'"
	expect_equal "$code" 0
	expect_no_err
}

test_a_server_that_restarts_is_waited_for() {
	own_server
	bash "$BIZLOCK_SERVER_SH" stop "$server"
	"$program" exec -w 60 job a -- echo done >"$out" 2>"$err" &
	wrapper=$!
	sleep 0.5
	kill -0 "$wrapper" || fail "it did not wait"
	bash "$BIZLOCK_SERVER_SH" restart "$server"
	exit_of "$wrapper"
	expect_equal "$code" 0
	expect_out done
}

test_a_server_that_does_not_come_back_ends_the_wait() {
	own_server
	bash "$BIZLOCK_SERVER_SH" stop "$server"
	expect 69 "$program" exec -w 0.3 job a -- echo done
	expect_err 'waiting for the server$'
	expect 69 "$program" exec -w 0 job a -- echo done
	! grep 'waiting for the server' "$err" || fail "it waited"
}

# "forever" is the default.
test_a_server_is_waited_for_as_long_as_the_lock() {
	own_server
	bash "$BIZLOCK_SERVER_SH" stop "$server"
	"$program" exec job a -- echo done >"$out" 2>"$err" &
	wrapper=$!
	await file_says "$err" 'waiting for the server$'
	bash "$BIZLOCK_SERVER_SH" restart "$server"
	exit_of "$wrapper"
	expect_equal "$code" 0
	expect_out done
}

# As a container's is, whose server is started after it.
test_a_name_that_is_not_known_yet_is_waited_for() {
	local began
	began=$(now_us)
	expect 69 "$program" exec -h no-such-host.invalid -w 1500ms job a -- true
	(($(now_us) - began > 1400000)) || fail "it did not wait"
}

test_a_server_that_is_full_is_waited_for() {
	local i
	own_server
	sql() {
		"$(sql_client)" --defaults-file="$work/own.cnf" -N -B mysql -e "$1"
	}
	sql "CREATE USER few@'%' IDENTIFIED BY 'few'; GRANT ALL ON $database.* TO few@'%';
		CREATE USER few@localhost IDENTIFIED BY 'few'; GRANT ALL ON $database.* TO few@localhost;
		SET GLOBAL max_connections = 10"
	for i in {1..10}; do # one more is kept for root
		"$(sql_client)" --defaults-file="$work/own.cnf" mysql -e 'DO SLEEP(1000)' >"$work/fill.$i" 2>&1 &
	done
	export BIZLOCK_USER=few BIZLOCK_PASSWORD=few
	await eval '"$program" list >"$out" 2>"$err"; grep -q "(1040)" "$err"'
	"$program" exec job a -- echo done >"$out" 2>"$err" &
	wrapper=$!
	await file_says "$err" '\(1040\); waiting for the server$'
	sql "SET GLOBAL max_connections = 100"
	exit_of "$wrapper"
	expect_equal "$code" 0
	expect_out done
}

# A key of its own: the row that another test may have left would be taken by an UPDATE.
test_the_servers_last_words_are_told() {
	local pid
	"$program" exec --lease 4s job words -- sleep 60 2>"$err" &
	pid=$!
	await held job words # an acquisition that takes long updates its row, too
	sql "CREATE TRIGGER refuse BEFORE UPDATE ON biz_lock FOR EACH ROW
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no room for this'"
	code=0
	wait "$pid" || code=$?
	sql "DROP TRIGGER refuse"
	expect_equal "$code" 80
	expect_err 'no room for this \(1644\)'
	expect_err 'could not be renewed'
}

run_tests
