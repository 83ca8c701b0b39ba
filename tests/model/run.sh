#!/usr/bin/env bash
# run.sh lock|hold|shared|live|mutants: what spin says of the models. All but mutants search them to
# their end. Mutants are to be refuted; how is printed. BIZLOCK_MODEL_LONG=1: larger searches,
# and the whole trails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
model=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-model.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/pan"
cd "$work/pan"
failed=0

# search MODEL "DEFINITIONS" "OPTIONS_OF_CC" [ARGUMENTS_OF_PAN]: leaves its report in `report`.
search() {
	local definitions options
	read -ra definitions <<<"$2"
	read -ra options <<<"$3"
	rm -f -- *
	cp "$model"/*.pml .
	spin "${definitions[@]}" -a "$1.pml" >/dev/null
	"${CC:-cc}" -O1 -w -DCOLLAPSE -DMEMLIM=12000 "${options[@]}" -o pan pan.c
	./pan -m4000000 "${@:4}" >report || true # the report is judged
}

# Not "no error so far": all states were seen.
is_complete() {
	grep -q 'errors: 0$' report && ! grep -qE 'not completed|too small|^error:' report
}

states() {
	sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p' report
}

fail() {
	echo "FAILED: $*"
	failed=1
}

# In the model's own words, to the promise that is broken.
show_trail() {
	local definitions
	read -ra definitions <<<"$2"
	[[ -e $1.pml.trail ]] || return 0
	spin "${definitions[@]}" -t "$1.pml" | sed '/ltl got:/d; /Never claim/d; s/^ */    /' >trail
	if [[ -n ${BIZLOCK_MODEL_LONG:-} ]]; then
		cat trail
	else
		sed -n '/spin: text of/q; /#processes/q; 1,30p' trail
	fi
}

# ---- which lines were reached ---------------------------------------------------------------

# Lines of threads that this search has in it: `FILE:LINE 1` if a step of it was not reached.
# What is inline stands for several places at once, and is left out.
note_lines() {
	local definitions
	read -ra definitions <<<"$2"
	grep -oE '^	[a-z]+\.pml:[0-9]+, state [0-9]+, .*' report |
		grep -vE '"(-end-|assert\(0\))"' | sed 's/^	//; s/,.*//' | sort -u >unreached || true
	cpp "${definitions[@]}" "$1.pml" | awk '
		NR == FNR { unreached[$1] = 1; next }
		/^# / { line = $2; file = $3; gsub(/"/, "", file); next }
		/^(proctype|init)/ { inside = 1 }
		/[^ \t]/ && inside { at = file ":" line; print at, at in unreached ? 1 : 0 }
		/^}/ { inside = 0 }
		{ line++ }' unreached - >>"$work/$1.lines"
}

# A promise that is kept because nothing happens is none: each line was reached by one search.
all_lines_reached() {
	local lines
	lines=$(awk '{ any[$1] = 1 } $2 == 0 { reached[$1] = 1 }
		END { for (at in any) if (!(at in reached)) print at }' "$work/$1.lines" | sort -V)
	if [[ -z $lines ]]; then
		echo "$1.pml: each line of each thread was reached"
		return
	fi
	while IFS=: read -r file line; do
		echo "$file:$line: $(sed -n "${line}p" "$model/$file")"
	done <<<"$lines"
	fail "$1.pml: never reached"
}

# ---- what is said of a search ---------------------------------------------------------------

# holds MODEL NAME "DEFINITIONS": no step of it breaks a promise.
holds() {
	local began=$SECONDS
	search "$1" "$3" -DSAFETY
	if is_complete; then
		echo "$2 ($1.pml $3): holds; $(states), $((SECONDS - began)) s"
		note_lines "$1" "$3"
	else
		cat report
		show_trail "$1" "$3"
		fail "$2"
	fi
}

# got NAME "DEFINITIONS": no lock that is free stays so while somebody wants it.
got() {
	local began=$SECONDS
	search lock "$2 -DLIVE" -DNFAIR=5 -a -f
	if is_complete; then
		echo "$1 ($2): a free lock is got; $(states), $((SECONDS - began)) s"
		note_lines lock "$2 -DLIVE"
	else
		cat report
		show_trail lock "$2 -DLIVE"
		fail "$1"
	fi
}

# refuted MODEL NAME "DEFINITIONS": the shortest way to a promise that is broken.
refuted() {
	search "$1" "$3" '-DSAFETY -DBFS'
	if grep -q 'assertion violated' report && [[ -e $1.pml.trail ]]; then
		echo "$2 ($1.pml $3): refuted, by"
		show_trail "$1" "$3"
	else
		cat report
		fail "$2: no promise is broken"
	fi
}

# never_got NAME "DEFINITIONS": somebody waits for a free lock for ever.
never_got() {
	search lock "$2 -DLIVE" -DNFAIR=5 -a -f
	if grep -q 'acceptance cycle' report && [[ -e lock.pml.trail ]]; then
		echo "$1 (lock.pml $2): refuted, by"
		show_trail lock "$2 -DLIVE"
	else
		cat report
		fail "$1: a free lock is got"
	fi
}

long() {
	[[ -z ${BIZLOCK_MODEL_LONG:-} ]] || "$@"
}

# ---- the searches ---------------------------------------------------------------------------

two="-DPER=2 -DROUNDS=1"
three="$two -DTHREADS=3"

case ${1:-} in
lock)
	holds lock "lost replies" "-DFAULTS=1"
	holds lock "2 lost replies" "-DFAULTS=2 -DROUNDS=1"
	holds lock "leases that end" "-DLEASES=1 -DROUNDS=2"
	holds lock "lost replies, leases that end" "-DFAULTS=1 -DLEASES=1 -DROUNDS=1"
	holds lock "hand-offs, leases that end" "$three -DLEASES=1"
	holds lock "hand-offs, lost replies" "$three -DFAULTS=1"
	holds lock "hand-offs, lost replies, connections in use" "$three -DFAULTS=1 -DPATIENT -DBUSY"
	holds lock "2 clients of 2 threads" "$two -DPATIENT"
	long holds lock "hand-offs again and again" "-DPER=2 -DTHREADS=3 -DROUNDS=2"
	all_lines_reached lock
	;;
hold)
	holds hold "re-entry, lost replies" "-DREENTRY -DFAULTS=1 -DCALLS=2"
	holds hold "renewals, lost replies" "-DRENEWALS -DFAULTS=1 -DCALLS=3"
	holds hold "shorter leases" "-DRENEWALS -DSHORTER -DREENTRY -DCALLS=3"
	holds hold "shorter leases, lost replies" "-DRENEWALS -DSHORTER -DFAULTS=1 -DCALLS=2"
	holds hold "transactions" "-DTX -DREENTRY -DCALLS=3"
	long holds hold "re-entry again, lost replies" "-DREENTRY -DFAULTS=1 -DCALLS=3"
	all_lines_reached hold
	;;
shared)
	holds shared "one of each kind" "-DROUNDS=2 -DFAULTS=1 -DLEASES=1 -DREAPS=1"
	holds shared "2 want it alone, lost replies" "-DALONE=2 -DFAULTS=1 -DREAPS=1"
	holds shared "2 want it alone, holders die" "-DALONE=2 -DLEASES=1 -DREAPS=1"
	holds shared "2 sharers" "-DSHARERS=2 -DFAULTS=1 -DREAPS=1"
	holds shared "2 of each kind" "-DSHARERS=2 -DALONE=2"
	long holds shared "3 want it alone" "-DALONE=3 -DREAPS=1"
	long holds shared "2 want it alone again" "-DALONE=2 -DROUNDS=2 -DREAPS=1"
	all_lines_reached shared
	;;
live)
	got "lost replies" "-DFAULTS=1 -DROUNDS=1"
	got "a process that stops" "-DSTOPS -DLEASES=1 -DROUNDS=1"
	got "lost replies, and a process that stops" "-DSTOPS -DFAULTS=1 -DLEASES=1 -DROUNDS=1"
	got "hand-offs" "$three"
	long got "hand-offs, leases that end" "$three -DLEASES=1"
	long got "leases that end" "-DLEASES=1 -DROUNDS=2"
	;;
mutants)
	refuted lock "no kill of a lost connection" "-DFAULTS=1 -DMUTANT_KILL"
	refuted lock "no look after a lost reply" "-DFAULTS=1 -DMUTANT_LOOK"
	refuted lock "no fence in the WHERE of a release" "-DLEASES=1 -DROUNDS=2 -DMUTANT_FENCE"
	refuted lock "the bell is given back before the row" -DMUTANT_BELL
	refuted lock "a late answer is believed" "-DROUNDS=1 -DMUTANT_PROMPT"
	refuted lock "a hand-off of a row that was gone is believed" \
		"$three -DLEASES=1 -DPATIENT -DMUTANT_FROM_HOLD"
	refuted lock "what a lost reply left is adopted at once" "-DFAULTS=1 -DMUTANT_ADOPT"
	refuted lock "no kill on the way to the doorbell's connection" \
		"$three -DFAULTS=1 -DPATIENT -DBUSY -DMUTANT_KILL_AT_BELL"
	refuted hold "the renewer goes on with the lease that was to be shorter" \
		"-DRENEWALS -DSHORTER -DFAULTS=1 -DCALLS=2 -DMUTANT_SHORTER"
	refuted hold "no timeout > now in the WHERE of renewal" "-DCALLS=1 -DMUTANT_TIMEOUT"
	refuted hold "no share lock in a fenced transaction" "-DTX -DCALLS=2 -DMUTANT_SHARE"
	refuted hold "a lease is counted from its answer" "-DCALLS=1 -DMUTANT_SENT"
	refuted hold "a shorter lease is believed too late" \
		"-DRENEWALS -DSHORTER -DCALLS=2 -DMUTANT_LOWER"
	refuted hold "a level is written as one more" "-DREENTRY -DFAULTS=1 -DCALLS=2 -DMUTANT_RELATIVE"
	long refuted hold "no kill before a statement of a hold" \
		"-DREENTRY -DFAULTS=1 -DCALLS=3 -DMUTANT_KILL"
	refuted shared "no slot 0 while somebody shares" "-DHARM -DMUTANT_HEADER"
	refuted shared "what only waited deletes slot 0" \
		"-DALONE=2 -DFAULTS=1 -DHARM -DMUTANT_CLEAN_UP"
	refuted shared "a sharer looks before its row is there" "-DROUNDS=2 -DMUTANT_LOOK"
	refuted shared "nobody looks at sharers" "-DROUNDS=2 -DMUTANT_ALONE"
	refuted shared "a header with a smaller fence is proof" "-DSHARERS=2 -DMUTANT_OLDER"
	refuted shared "the reaper looks without a mark" "-DROUNDS=2 -DREAPS=1 -DHARM -DMUTANT_MARK"
	refuted shared "the reaper does not wait" "-DROUNDS=2 -DREAPS=1 -DMUTANT_HASTE"
	refuted shared "without the doorbell nobody waits for its owner" \
		"-DSHARERS=0 -DALONE=2 -DMUTANT_RIVAL"
	never_got "nobody goes past a doorbell" "-DSTOPS -DLEASES=1 -DROUNDS=1 -DMUTANT_PAST"
	never_got "a sleep at a doorbell has no end" "-DSTOPS -DLEASES=1 -DROUNDS=1 -DMUTANT_BOUND"
	never_got "the next in the queue is not woken" "$two -DTHREADS=2 -DMUTANT_SIGNAL"
	;;
*)
	echo "run.sh lock|hold|shared|live|mutants" >&2
	exit 2
	;;
esac
exit "$failed"
