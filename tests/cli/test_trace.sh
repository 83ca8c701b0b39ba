#!/usr/bin/env bash
# bizlock --trace: what is done, and why, on standard error.
source "$(dirname "$0")/common.sh"

at='^bizlock: [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6} '

test_the_way_of_an_exec() {
	expect 0 "$program" --trace exec job k -- echo done
	expect_equal "$(cat "$out")" 'done'
	expect_err "${at}connection [0-9]+ to .* opened$"
	expect_err "${at}job/k exec: goes for the row"
	expect_err "${at}job/k exec: acquired, fence [0-9]+,"
	expect_err "${at}job/k exec: release of the last level, fence [0-9]+: done"
	! grep -vE "$at" "$err" || fail "a line without its time"
}

test_it_may_stand_behind_the_command() {
	expect 0 "$program" exec --trace job k -- true
	expect_err "${at}job/k exec: acquired"
}

test_it_says_who_is_in_the_way() {
	hold job k
	expect 75 "$program" --trace exec -w 0 job k -- true
	expect_err "${at}job/k exec: row: held by exec@.*; doorbell: the holder's; gives up"
	expect_err "${at}job/k exec: not acquired: held by exec@"
}

test_keys_do_no_harm_to_the_terminal() {
	expect 0 "$program" --trace exec job $'a\e[2Jb\xe2\x80\xae' -- true
	expect_err "${at}job/a\?\[2Jb\\\\xe2\\\\x80\\\\xae exec: acquired"
}

test_without_it_nothing_is_said() {
	expect 0 "$program" exec job k -- true
	expect_no_err
}

test_other_commands_have_it_too() {
	expect 0 "$program" list --trace
	expect_err "${at}connection [0-9]+ to .* opened$"
}

run_tests
