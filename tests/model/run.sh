#!/usr/bin/env bash
# run.sh holds|mutants: what spin says of the model, searched to its end; the mutants are to be
# refuted, and how is printed. BIZLOCK_MODEL_LONG=1: the whole trails, with what was left.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
model=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-model.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

# search "DEFINITIONS" "OPTIONS_OF_CC" [ARGUMENTS_OF_PAN]: leaves its report in `report`.
search() {
	local definitions options
	read -ra definitions <<<"$1"
	read -ra options <<<"$2"
	rm -f -- *
	cp "$model"/*.pml .
	spin "${definitions[@]}" -a lock.pml >/dev/null
	"${CC:-cc}" -O1 -w -DCOLLAPSE -DMEMLIM=6000 "${options[@]}" -o pan pan.c
	./pan -m4000000 "${@:3}" >report
}

# Not "no error so far": all states were seen.
is_complete() {
	grep -q 'errors: 0$' report && ! grep -qE 'not completed|too small|^error:' report
}

states() {
	sed -n 's/^ *\([0-9]*\) states, stored.*/\1 states/p' report
}

fail() {
	echo "FAILED: $*"
	failed=1
}

# holds NAME "DEFINITIONS": no step of it breaks a promise.
holds() {
	local began=$SECONDS
	search "$2" -DSAFETY
	if is_complete; then
		echo "$1 ($2): holds; $(states), $((SECONDS - began)) s"
	else
		cat report
		show_trail "$2"
		fail "$1"
	fi
}

# got NAME "DEFINITIONS": no lock that is free stays so while somebody wants it.
got() {
	local began=$SECONDS
	search "$2 -DLIVE" -DNFAIR=4 -a -f
	if is_complete; then
		echo "$1 ($2 -DLIVE): a free lock is got; $(states), $((SECONDS - began)) s"
	else
		cat report
		show_trail "$2 -DLIVE"
		fail "$1"
	fi
}

# In the model's own words, to the promise that is broken.
show_trail() {
	local definitions
	read -ra definitions <<<"$1"
	[[ -e lock.pml.trail ]] || return 0
	spin "${definitions[@]}" -t lock.pml | sed 's/^ */    /' >trail
	if [[ -n ${BIZLOCK_MODEL_LONG:-} ]]; then
		cat trail
	else
		sed '/#processes/,$d' trail | head -n 25
	fi
}

# refuted NAME "DEFINITIONS": the shortest way to a promise that is broken.
refuted() {
	search "$2" '-DSAFETY -DBFS'
	if grep -q 'assertion violated' report && [[ -e lock.pml.trail ]]; then
		echo "$1 ($2): refuted, by"
		show_trail "$2"
	else
		cat report
		fail "$1: no promise is broken"
	fi
}

case ${1:-} in
holds)
	holds "lost replies" "-DFAULTS=1"
	holds "2 lost replies" "-DFAULTS=2 -DROUNDS=1"
	holds "leases that end" "-DLEASES=1 -DROUNDS=2"
	holds "lost replies, leases that end" "-DFAULTS=1 -DLEASES=1 -DROUNDS=1"
	holds "transactions and renewals" "-DTX -DRENEWALS -DLEASES=1 -DROUNDS=1"
	got "lost replies" "-DFAULTS=1 -DROUNDS=1"
	got "leases that end" "-DLEASES=1 -DROUNDS=2"
	;;
mutants)
	refuted "no kill of a lost connection" "-DFAULTS=1 -DMUTANT_KILL"
	refuted "no look after a lost reply" "-DFAULTS=1 -DMUTANT_LOOK"
	refuted "no fence in the WHERE of release and renewal" "-DLEASES=1 -DROUNDS=2 -DMUTANT_FENCE"
	refuted "no timeout > now in the WHERE of renewal" \
		"-DRENEWALS -DLEASES=1 -DROUNDS=1 -DMUTANT_TIMEOUT"
	refuted "no share lock in a fenced transaction" "-DTX -DLEASES=1 -DROUNDS=1 -DMUTANT_SHARE"
	refuted "the bell is given back before the row" -DMUTANT_BELL
	;;
*)
	echo "run.sh holds|mutants" >&2
	exit 2
	;;
esac
exit "$failed"
