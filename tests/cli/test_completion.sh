#!/usr/bin/env bash
# The completions know every command and option there is, and no other.
source "$(dirname "$0")/common.sh"

completion=$root/src/cli/completion

commands() {
	"$program" --help | sed -nE 's/^  ([a-z]+) +[A-Z].*/\1/p'
}

options_of_help() {
	"$program" "$@" | sed -nE 's/^  (-., |    )(--[a-z-]+).*/\2/p'
}

# The options of a command, sorted.
options() {
	{
		options_of_help "$1" --help
		options_of_help help connection
	} | sort -u
}

# bash_completes WORD...: the completions of the last word.
bash_completes() {
	bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bizlock
		printf "%s\n" "${COMPREPLY[@]}"' - "$completion/bizlock.bash" "$@" | sort -u
}

test_bash_knows_every_command() {
	expect_equal "$(bash_completes bizlock '')" "$(commands | sort)"
	expect_equal "$(bash_completes bizlock -h db '')" "$(commands | sort)"
	expect_equal "$(bash_completes bizlock li)" list
	expect_equal "$(bash_completes bizlock help exi)" exit-codes
}

test_bash_knows_every_option() {
	local command
	for command in $(commands); do
		expect_equal "$(bash_completes bizlock "$command" --)" "$(options "$command")"
	done
	expect_equal "$(bash_completes bizlock-reaper --)" "$(options reap)"
	expect_equal "$(bash_completes bizlock --ssl-m)" --ssl-mode
}

test_bash_knows_values() {
	expect_equal "$(bash_completes bizlock --ssl-mode verify-i)" verify-identity
	expect_equal "$(bash_completes bizlock exec --wait f)" forever
	expect_equal "$(bash_completes bizlock exec --timeout f)" forever
	expect_equal "$(bash_completes bizlock exec -n --sh)" --shared
	expect_equal "$(bash_completes bizlock watch -n --ty)" ""
	expect_equal "$(bash_completes bizlock exec --note li)" ""
	expect_equal "$(bash_completes bizlock exec a b -- setpri | grep -x setpriv)" setpriv
}

test_bash_knows_which_options_take_a_value() {
	local command option
	for command in $(commands); do
		while read -r option; do
			bash -c 'source "$1"; _bizlock_takes_value "$2"' - "$completion/bizlock.bash" "$option" ||
				fail "it takes $option for a switch"
		done < <({
			"$program" "$command" --help
			"$program" help connection
		} | sed -nE 's/^  (-., |    )(--[a-z-]+) [A-Z].*/\2/p')
	done
}

# What stands between "NAME)" and ";;" in zsh's file.
zsh_names() {
	awk -v name="$1" '$0 ~ "^\t" name "\\)$" { inside = 1 } inside && /;;/ { exit } inside' "$completion/_bizlock" |
		grep -oE -- '--[a-z-]+' | sort -u
}

test_zsh_knows_every_command_and_option() {
	local command
	expect_equal "$(awk '/^commands=/ { on = 1 } on' "$completion/_bizlock" |
		sed -nE "s/^\t'([a-z]+):.*/\1/p" | sort)" "$(commands | sort)"
	expect_equal "$(awk '/^connection=/ { on = 1 } /^\)/ { on = 0 } on' "$completion/_bizlock" |
		grep -oE -- '--[a-z-]+' | sort -u)" "$(options help)"
	for command in $(commands); do
		expect_equal "$(zsh_names "$command")" "$(options "$command" | grep -vxF -e "$(options help)")"
	done
}

test_zsh_completes() {
	command -v zsh >/dev/null || {
		echo "[SKIP] ${FUNCNAME[0]}: zsh is not installed"
		return 0
	}
	terminal "PATH=$(dirname "$program"):\$PATH zsh -f"
	await_screen '[%#]$'
	type_keys -l "fpath=($completion \$fpath); autoload -Uz compinit; compinit -u -d $work/dump; clear; print ready"
	type_keys Enter
	await_screen '^ready$'
	type_keys -l 'bizlock exec --conf'
	type_keys Tab
	await_screen '--conflict-exit-code'
	type_keys C-u
	type_keys -l 'bizlock lis'
	type_keys Tab
	await_screen 'bizlock list'
	type_keys C-u
	type_keys -l 'bizlock-reaper --older'
	type_keys Tab
	await_screen '--older-than'
}

run_tests
