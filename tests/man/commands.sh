#!/usr/bin/env bash
# commands.sh FOLDER COMPILER: bizlock(1) and bizlock-reaper(8) tell of every command,
# option, exit code and variable of the bizlock that install.sh installed into
# FOLDER, and of nothing that it does not have.
set -euo pipefail
source "$(dirname "$0")/common.sh"

bizlock=$1/usr/bin/bizlock
[[ -x $bizlock ]] || {
	echo "bizlock was built without its command"
	exit 77
}

# "-w --wait" for each option of a help text, "--lease" where there is no letter.
options_of_help() {
	sed -nE 's/^  (-(.), |    )--([a-z-]+).*/\2 \3/p' | sed -E 's/^ *([^ ]+) ([^ ]+)$/-\1 --\2/; s/^ ([^ ]+)$/--\1/'
}

# The same from the .It lines of a page's section or subsection.
options_of_page() {
	sed -nE 's/^\.It (Fl ([A-Za-z]).* , )?Fl Fl ([a-z-]+).*/\2 \3/p' |
		sed -E 's/^ *([^ ]+) ([^ ]+)$/-\1 --\2/; s/^ ([^ ]+)$/--\1/'
}

# What stands below `.Ss NAME` in bizlock(1).
subsection() {
	awk -v wanted="$1" '/^\.S[hs] / { inside = $0 == ".Ss " wanted; next } inside' "$pages/bizlock.1"
}

# compare PAGE WHAT LIST_OF_HELP LIST_OF_PAGE
compare() {
	local line
	while IFS= read -r line; do
		[[ -z $line ]] || object "$1: does not tell of $2 $line"
	done < <(comm -23 <(sort -u <<<"$3") <(sort -u <<<"$4"))
	while IFS= read -r line; do
		[[ -z $line ]] || object "$1: there is no $2 $line"
	done < <(comm -13 <(sort -u <<<"$3") <(sort -u <<<"$4"))
}

# ---- commands and their options -------------------------------------------------

commands=$("$bizlock" --help | sed -nE 's/^  ([a-z]+) +[A-Z].*/\1/p')
some "$commands" "command in bizlock --help"
compare bizlock.1 command "$commands" "$(section "$pages/bizlock.1" COMMANDS | sed -n 's/^\.Ss //p')"

common=$("$bizlock" help connection | options_of_help && printf -- '--help\n-V --version\n')
compare bizlock.1 "common option" "$common" "$(section "$pages/bizlock.1" OPTIONS | options_of_page)"
for command in $commands; do
	own=$("$bizlock" "$command" --help | options_of_help | grep -vxF -e "$common" || true)
	case $command in
	reap) compare bizlock-reaper.8 option "$own" "$(section "$pages/bizlock-reaper.8" DESCRIPTION | options_of_page)" ;;
	*) compare bizlock.1 "option of $command" "$own" "$(subsection "$command" | options_of_page)" ;;
	esac
done

# ---- exit codes ------------------------------------------------------------------

# One page has them all, the other those of the reaper, with the same numbers.
codes=$("$bizlock" help exit-codes | sed -nE 's/^ +([0-9]+|128 \+ n)  .*/\1/p')
some "$codes" "exit code in bizlock help exit-codes"
codes_of_page() {
	section "$1" 'EXIT STATUS' | sed -nE 's/^\.It ([0-9]+|128 \+ Ar n)$/\1/p' | sed 's/Ar //'
}
compare bizlock.1 "exit code" "$codes" "$(codes_of_page "$pages/bizlock.1")"
if [[ -e $pages/bizlock-reaper.8 ]]; then
	compare bizlock-reaper.8 "exit code" "$codes" \
		"$codes"$'\n'"$(codes_of_page "$pages/bizlock-reaper.8")"
fi

# ---- variables -------------------------------------------------------------------

variables=$({ grep -rohE '"BIZLOCK_[A-Z_]+[="]' "$root"/src/cli || true; } | tr -d '"=' &&
	sed -nE 's/^\.Ev (BIZLOCK_[A-Z_]+).*/\1/p' "$pages/bizlock_set.3")
compare bizlock.1 variable "$variables" \
	"$(section "$pages/bizlock.1" ENVIRONMENT | sed -nE 's/^\.(It )?Ev (BIZLOCK_[A-Z_]+).*/\2/p')"
verdict
