#!/usr/bin/env bash
# bizlock exec in a terminal: Ctrl-C, Ctrl-Z, and which process may read from it.
source "$(dirname "$0")/common.sh"

# An interactive shell, with job control.
shell() {
	cat >"$work/bashrc" <<-EOF
		PS1='ready> '
		PATH=$(dirname "$program"):\$PATH
	EOF
	terminal "bash --noprofile --rcfile $work/bashrc -i"
	await_screen '^ready>$'
}

type_line() {
	type_keys -l "$1"
	type_keys Enter
}

test_the_command_reads_from_the_terminal() {
	shell
	type_line 'bizlock exec job a -- bash -c "read -p name? x; echo hello \$x"'
	await_screen '^name\?'
	type_line world
	await_screen '^hello world$'
	await_screen '^ready>$'
	type_line 'echo still $((1 + 1))'
	await_screen '^still 2$'
}

# No shell with job control takes the terminal for the script.
test_a_script_reads_from_the_terminal_behind_it() {
	cat >"$work/script" <<-'EOF2'
		bizlock exec job a -- true
		read -r -p 'more? ' x
		echo "got $x"
	EOF2
	shell
	type_line "bash $work/script"
	await_screen '^more\?'
	type_line yes
	await_screen '^got yes$'
	await_screen '^ready>$'
}

test_ctrl_c_ends_the_command() {
	shell
	type_line 'bizlock exec job a -- sleep 1000; echo code $?'
	await held job a
	await_screen 'exec job a'
	await eval '[[ -n $(pgrep -f "^sleep 1000$" -s $(session)) ]]'
	type_keys C-c
	await_screen '^(code 130|ready>)$'
	await free job a
	type_line 'echo it was $?'
	await_screen '^it was 130$'
}

# The session of the shell in the terminal.
session() {
	tmux -S "$socket" list-panes -F '#{pane_pid}'
}

test_ctrl_c_while_waiting_gives_up() {
	hold job a
	shell
	type_line 'bizlock exec -v job a -- true'
	await_screen 'held by exec@'
	type_keys C-c
	await_screen '^ready>$'
	type_line 'echo it was $?'
	await_screen '^it was 130$'
	kill "$holder"
}

# ctrl_c_at INTERPRETER SCRIPT: types Ctrl-C while the script runs the command; if it went on, it
# would make a file. What it printed would not tell: "^C" stands before that, on the same line.
ctrl_c_at() {
	local script
	rm -f "$work/went-on" "$work/script.pid"
	echo "$2" >"$work/script"
	shell
	type_line "$1 $work/script"
	await held job a
	await test -s "$work/script.pid"
	script=$(cat "$work/script.pid")
	await eval '[[ -n $(pgrep -f "^sleep 1000$" -s $(session)) ]]'
	type_keys C-c
	await is_gone "$script"
	await free job a
	[[ ! -e $work/went-on ]] || fail "it went on"
	type_line 'echo still $((1 + 1))'
	await_screen '^still 2$'
}

# bash ends a script that got SIGINT, when the command that it waits for died of SIGINT.
test_ctrl_c_ends_the_script_around_it() {
	ctrl_c_at bash "echo \$\$ >$work/script.pid
		bizlock exec job a -- sleep 1000
		touch $work/went-on"
}

# Others end at once.
test_ctrl_c_ends_a_script_of_sh() {
	ctrl_c_at sh "echo \$\$ >$work/script.pid
		bizlock exec job a -- sleep 1000
		touch $work/went-on"
}

test_ctrl_c_ends_a_script_of_python() {
	ctrl_c_at python3 "import os, subprocess
open('$work/script.pid', 'w').write(str(os.getpid()))
subprocess.call(['bizlock', 'exec', 'job', 'a', '--', 'sleep', '1000'])
open('$work/went-on', 'w')"
}

# rsync and many others end by an exit code.
test_ctrl_c_ends_the_script_around_a_command_that_catches_it() {
	cat >"$work/catches" <<-'EOF2'
		trap 'exit 20' INT
		sleep 1000 &
		wait
	EOF2
	ctrl_c_at sh "echo \$\$ >$work/script.pid
		bizlock exec job a -- bash $work/catches
		touch $work/went-on"
}

test_ctrl_c_ends_the_script_around_execs_within_execs() {
	ctrl_c_at bash "echo \$\$ >$work/script.pid
		bizlock exec job b -- bizlock exec job a -- sleep 1000
		touch $work/went-on"
}

test_ctrl_z_stops_all_and_fg_goes_on() {
	shell
	type_line 'bizlock exec job a -- bash -c "read -p one? x; read -p two? y; echo \$x\$y"'
	await_screen '^one\?'
	type_line first
	await_screen '^two\?'
	type_keys C-z
	await_screen 'Stopped'
	await_screen '^ready>$'
	type_line 'echo in between'
	await_screen '^in between$'
	held job a || fail "it gave the lock up"
	type_line fg
	await_screen 'bizlock exec job a.*$'
	type_line second
	await_screen '^firstsecond$'
	await free job a
}

# Nobody renews while the wrapper is stopped.
test_who_is_continued_after_the_lease_has_been_killed() {
	shell
	type_line 'bizlock exec --lease 1s job a -- sleep 1000'
	await held job a
	await eval '[[ -n $(pgrep -f "^sleep 1000$" -s $(session)) ]]'
	type_keys C-z
	await_screen 'Stopped'
	await eval '[[ -z $(pgrep -f "^sleep 1000$" -s $(session)) ]]'
	type_line 'fg; echo code $?'
	await_screen '^code 80$'
}

test_in_the_background_it_runs_until_it_reads() {
	shell
	type_line 'bizlock exec job a -- bash -c "echo began; read x; echo got \$x" &'
	await_screen 'began$'
	type_line ''
	await_screen 'Stopped'
	type_line fg
	type_line words
	await_screen '^got words$'
}

# state_of PID: a letter; T: stopped.
state_of() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null)
	stat=${stat##*) }
	echo "${stat:0:1}"
}

# switches PID: how often it has stopped running.
switches() {
	awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$1/status"
}

# The command asks for the terminal, does not have it, and is left alone. Its pid is in $child.
await_rest() {
	local before
	await test -s "$work/child"
	child=$(cat "$work/child")
	await eval '[[ $(state_of $child) == T ]]'
	before=$(switches "$child")
	sleep 1.2 # longer than a tick
	expect_equal "$(state_of "$child") $(switches "$child")" "T $before"
	held job a || fail "it gave the lock up"
}

# wrapper_of COMMAND: the guard is between them.
wrapper_of() {
	ps -o ppid= "$(ps -o ppid= "$1" | tr -d ' ')" | tr -d ' '
}

asks_the_terminal() {
	rm -f "$work/child" "$work/got" # another test's
	cat >"$work/asks" <<-EOF
		#!/bin/bash
		echo \$\$ >$work/child
		read x </dev/tty
		echo "got \$x" >$work/got
	EOF
	chmod +x "$work/asks"
}

test_in_the_background_with_sigtstp_ignored() {
	asks_the_terminal
	shell
	type_line "(trap '' TSTP; exec bizlock exec job a -- $work/asks) &"
	await_rest
	type_line fg
	type_line words
	await file_says "$work/got" '^got words$'
	await free job a
}

# No process outside its group could continue it, so the kernel does not stop it.
test_in_the_background_without_a_parent() {
	local wrapper
	asks_the_terminal
	shell
	type_line "( (until [ -e $work/go ]; do sleep 0.05; done; exec bizlock exec job a -- $work/asks) & )"
	await_screen '^ready>$' # the terminal is the shell's again
	touch "$work/go"
	await_rest
	wrapper=$(wrapper_of "$child")
	cat >"$work/lend" <<-EOF
		import os, time
		os.tcsetpgrp(0, os.getpgid($wrapper))
		while not os.path.exists("$work/got"):
		    time.sleep(0.05)
	EOF
	type_line "python3 $work/lend"
	await eval '[[ $(state_of $child) == S ]]'
	type_line words
	await file_says "$work/got" '^got words$'
	await free job a
}

test_it_heeds_signals_while_it_waits_for_the_terminal() {
	asks_the_terminal
	shell
	type_line "(trap '' TSTP; exec bizlock exec job a -- $work/asks) &"
	await_rest
	kill -TERM "$(wrapper_of "$child")"
	await is_gone "$child"
	await free job a
	type_line 'wait $!; echo code $?'
	await_screen '^code 143$'
}

test_a_pager_keeps_the_terminal() {
	shell
	type_line 'bizlock exec job a -- seq 1 100 | (read first; read reply </dev/tty; echo $first $reply)'
	await free job a
	type_line typed
	await_screen '^1 typed$'
}

test_modes_of_the_terminal_are_mended() {
	shell
	type_line 'bizlock exec job a -- bash -c "stty -echo; kill -KILL \$\$"'
	await_screen '^ready>$'
	await free job a
	type_line 'stty -a | grep -o " echo "'
	await_screen '^ echo ?$'
}

run_tests
