#!/usr/bin/env bash
# bizlock watch: what it shows, and that it ends whatever keeps it.
source "$(dirname "$0")/common.sh"

# A row as a dead holder would leave it.
stale_row() {
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		VALUES ('$1', '$2', 'exec@77.00112233aabbccdd@db-7', 1, UTC_TIMESTAMP(6) - INTERVAL ${3:-5} MINUTE,
		'gone', UTC_TIMESTAMP(6) - INTERVAL 9 MINUTE, UTC_TIMESTAMP(6))"
}

test_watch_is_refreshed_and_leaves_the_terminal_as_it_was() {
	terminal "stty -a >$work/before; echo first; $program watch -n 100ms; echo code \$?; stty -a >$work/after; read x"
	await_screen '  0 locks, 0 waiting'
	! screen_shows '^first' || fail "not on a screen of its own"
	hold job a
	await_screen "^job +a +exclusive +exec +.* $holder "
	"$program" exec job a -- true &
	await_screen '^job +a +exclusive +1 +exec'
	await_screen '  1 locks, 1 waiting'
	kill "$holder"
	await_screen '  0 locks'
	type_keys q
	await_screen '^code 0$'
	screen_shows '^first' || fail "the screen is not restored"
	await test -s "$work/after"
	cmp "$work/before" "$work/after"
}

# screen_is LINE...: the screen begins with these lines (regular expressions), and no others.
screen_is() {
	local lines line
	mapfile -t lines < <(screen)
	while ((${#lines[@]})) && [[ -z ${lines[-1]} ]]; do
		unset 'lines[-1]'
	done
	((${#lines[@]} == $#)) || return 1
	for line in "${lines[@]}"; do
		[[ $line =~ ^$1$ ]] || return 1
		shift
	done
}

await_screen_is() {
	local end=$((SECONDS + PATIENCE_S))
	until screen_is "$@"; do
		((SECONDS < end)) || fail "not the screen: $*
$(screen | sed 's/^/    |/')"
		sleep 0.02
	done
}

test_watch_fits_any_terminal() {
	local i rows=() head='[0-9:]+  6 locks'
	for i in {1..6}; do
		stale_row job "宽字宽字宽字宽字宽字é$i"
	done
	terminal "LC_ALL=C.UTF-8 $program watch -n 100ms" 20 4
	await_screen_is "$head, 0" 'TYPE ID' 'job  宽字宽字宽字宽' '5 not shown'
	resize_terminal 25 5
	await_screen_is "$head, 0 wait" 'TYPE ID' 'job  宽字宽字宽字宽字宽字' 'job .*' '4 not shown'
	resize_terminal 27 8
	for i in {1..6}; do
		rows+=("job  宽字宽字宽字宽字宽字é$i")
	done
	await_screen_is "$head, 0 waitin" 'TYPE ID' "${rows[@]}"
	resize_terminal 40 3
	await_screen_is "$head, 0 waiting  .*" 'TYPE ID .*' '6 not shown'
	resize_terminal 40 1
	await_screen_is "$head, 0 waiting  .*"
	sql "DELETE FROM biz_lock"
	resize_terminal 20 4
	await_screen_is '[0-9:]+  0 locks, 0'
	type_keys q
}

test_watch_ends_by_ctrl_c_and_lives_through_an_outage() {
	own_server
	terminal "$program watch -n 100ms; echo code \$?; stty -a | grep -o ' echo '; read x"
	await_screen '0 locks'
	bash "$BIZLOCK_SERVER_SH" kill "$server"
	await_screen '^[0-9:]+  each:'
	bash "$BIZLOCK_SERVER_SH" restart "$server"
	await_screen '0 locks'
	type_keys C-c
	await_screen '^code 0$'
	await_screen '^ echo'
}

test_watch_needs_a_terminal() {
	expect 64 "$program" watch
	expect_err 'needs a terminal'
}

# watch_by terminal|terminal_again [COMMAND]: watches there, behind COMMAND; its process is $watcher.
watch_by() {
	rm -f "$work/pid"
	"$1" "${2:-} sh -c 'echo \$\$ >$work/pid; exec $program watch -n 100ms'; echo code \$?; read x"
	await_screen ' locks, '
	watcher=$(<"$work/pid")
}

test_watch_ends_by_keys_and_signals() {
	watch_by terminal
	type_keys q
	await_screen '^code 0$'
	watch_by terminal_again
	type_keys C-c
	await_screen '^code 0$'
	watch_by terminal_again
	kill -TERM "$watcher"
	await_screen '^code 143$'
	watch_by terminal_again
	kill -HUP "$watcher"
	await_screen '^code 129$'
}

test_watch_ends_with_its_terminal() {
	watch_by terminal
	close_terminal
	await is_gone "$watcher"
	watch_by terminal "trap '' HUP;"
	close_terminal
	await is_gone "$watcher"
}

# Any key but q has it look.
test_watch_is_ended_while_its_server_hangs() {
	own_server
	export BIZLOCK_IO_TIMEOUT_MS=600000
	watch_by terminal
	bash "$BIZLOCK_SERVER_SH" freeze "$server"
	type_keys x
	type_keys C-c
	await_screen '^code 0$'
	bash "$BIZLOCK_SERVER_SH" thaw "$server"
	watch_by terminal_again
	bash "$BIZLOCK_SERVER_SH" freeze "$server"
	type_keys x
	kill -TERM "$watcher"
	await_screen '^code 143$'
	bash "$BIZLOCK_SERVER_SH" thaw "$server"
}

test_ctrl_s_does_not_stop_watch() {
	watch_by terminal
	type_keys C-s
	hold job a
	await_screen '^job +a '
	kill -TERM "$watcher"
	await_screen '^code 143$'
}

test_watch_is_killed_while_it_is_stopped() {
	terminal "PATH=$(dirname "$program"):\$PATH PS1='ready> ' bash --noprofile --norc -i"
	await_screen '^ready>$'
	type_keys -l 'bizlock watch'
	type_keys Enter
	await_screen ' locks, '
	type_keys C-z
	await_screen '^ready>$'
	type_keys -l "jobs -p >$work/pid; kill %1"
	type_keys Enter
	await test -s "$work/pid"
	await is_gone "$(<"$work/pid")"
}

run_tests
