#!/usr/bin/env bash
# The password: asked for, and never seen.
source "$(dirname "$0")/common.sh"

# An option file without the password.
export BIZLOCK_DEFAULTS_FILE=$work/open.cnf
password=${BIZLOCK_TEST_PASSWORD:-}

begin() {
	[[ -n $password ]] || {
		echo "[SKIP] ${FUNCNAME[1]}: BIZLOCK_TEST_PASSWORD is empty"
		exit 0
	}
	grep -v '^password' "$work/client.cnf" >"$work/open.cnf"
	chmod 600 "$work/open.cnf"
	export BIZLOCK_DEFAULTS_FILE=$work/open.cnf
}

test_it_is_asked_for_without_echo() {
	begin
	terminal "$program list -p; echo code \$?; stty -a | grep -o ' echo '; read x"
	await_screen '^Password:$'
	type_keys -l "$password"
	type_keys Enter
	await_screen '^code 0$'
	await_screen '^ echo'
	! screen_shows "$password" || fail "it was shown"
}

test_a_wrong_one_is_refused_and_not_repeated() {
	begin
	terminal "$program -p list; echo code \$?; read x"
	await_screen '^Password:$'
	type_keys -l wrong-word
	type_keys Enter
	await_screen '^code 78$'
	await_screen 'Access denied'
	! screen_shows wrong-word || fail "it was shown"
}

test_ctrl_c_mends_the_terminal() {
	begin
	terminal "bash -c 'trap : INT; $program -p list; echo code \$?; stty -a | grep -o \" echo \"; read x'"
	await_screen '^Password:$'
	type_keys C-c
	await_screen 'code 130$'
	await_screen '^ echo'
}

test_without_a_terminal_it_says_so() {
	begin
	expect 71 setsid -w "$program" -p list
	expect_err 'the password could not be asked for'
	expect_no_out
}

test_standard_input_is_not_the_terminal() {
	begin
	terminal "echo data | $program exec -p job a -- cat; echo code \$?; read x"
	await_screen '^Password:$'
	type_keys -l "$password"
	type_keys Enter
	await_screen '^data$'
	await_screen '^code 0$'
}

run_tests
