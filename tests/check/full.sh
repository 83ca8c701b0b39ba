#!/usr/bin/env bash
# The last run of each suite of .ci/full, which alone sees all, is recorded, and not long ago.
# tests/full-run.txt has a line for each suite that came to its end:
#   gcc 2026-11-27 678b05e... passed: 1249 passed, 0 failed; seeds 17 23
# the suite, the day (UTC), all 40 digits of the commit, `passed` or `failed`, and for people how
# many tests, and what repeats the part that is drawn at random. A line that is malformed or names
# no suite is a failure. A suite that is missing, failed or old is none: it is said at the end of the
# tests, beside what was skipped, for no run has seen since then what .ci/full alone sees.
set -euo pipefail
source "$(dirname "$0")/common.sh"

record=tests/full-run.txt
commits_limit=50
line='^([a-z0-9.-]+) ([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9a-f]{40}) (passed|failed)(:.*)?$'
suites=$(sed -n '/^suites="/,/"$/p' .ci/full | sed 's/suites=//' | tr -d '"\\\n')

declare -A commits=() results=()
while IFS= read -r text; do
	if [[ $text =~ $line && " $suites " == *" ${BASH_REMATCH[1]} "* ]]; then
		commits[${BASH_REMATCH[1]}]=${BASH_REMATCH[3]}
		results[${BASH_REMATCH[1]}]=${BASH_REMATCH[4]}
	else
		object "$record: \"$text\" is no line of a suite of .ci/full, as tests/check/full.sh has it"
	fi
done <"$record"
((objections == 0)) || verdict

[[ -z $(git rev-parse --show-prefix 2>/dev/null || echo none) ]] ||
	skip "not here: no git history, in which to look for the last run of .ci/full"
wanting=
for suite in $suites; do
	if [[ -z ${commits[$suite]:-} ]]; then
		wanting+=", $suite (never run)"
	elif [[ ${results[$suite]} != passed ]]; then
		wanting+=", $suite (failed)"
	elif ! since=$(git rev-list --count --no-merges "${commits[$suite]}..HEAD" 2>/dev/null); then
		wanting+=", $suite (at a commit that this history does not have)"
	elif ((since > commits_limit)); then
		wanting+=", $suite ($since commits old)"
	fi
done
[[ -z $wanting ]] || echo "[SKIP] .ci/full: not here: run ${wanting#, }"
verdict
