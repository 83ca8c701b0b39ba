#!/usr/bin/env bash
# The last run of .ci/full, which alone sees all, is recorded, and not long ago. tests/full-run.txt
# has one line of each kind, in this order:
#   date: 2026-11-27                        the day it ended, UTC
#   commit: 678b05e...                   all 40 digits of what was run
#   seeds: chaos 17, cuts 4, hostile 23     what repeats the part that is drawn at random; or none
#   result: 1249 passed, 0 failed           its last line; none yet: it was never run
# A record that is missing or malformed is a failure. An old one is none: it is said at the end of
# the tests, beside what was skipped, for no run has seen since then what .ci/full alone sees.
set -euo pipefail
source "$(dirname "$0")/common.sh"

record=tests/full-run.txt
commits_limit=50
lines=('date: [0-9]{4}-[0-9]{2}-[0-9]{2}' 'commit: [0-9a-f]{40}' 'seeds: .*[^ ].*' 'result: .*[^ ].*')

[[ -f $record ]] || {
	object "$record: there is none; tests/check/full.sh says what it holds"
	verdict
}
mapfile -t found <"$record"
((${#found[@]} == ${#lines[@]})) || object "$record: ${#found[@]} lines in place of ${#lines[@]}"
for i in "${!lines[@]}"; do
	[[ ${found[i]:-} =~ ^${lines[i]}$ ]] ||
		object "$record:$((i + 1)): is to be \"${lines[i]%%:*}: ...\", as tests/check/full.sh says"
done
((objections == 0)) || verdict

commit=${found[1]#commit: }
[[ -z $(git rev-parse --show-prefix 2>/dev/null || echo none) ]] ||
	skip "not here: no git history, in which to look for the last run of .ci/full"
if ! since=$(git rev-list --count --no-merges "$commit..HEAD" 2>/dev/null); then
	echo "[SKIP] .ci/full: not here: its last run was at $commit, which this history does not have"
elif ((since > commits_limit)); then
	echo "[SKIP] .ci/full: not here: run it; its last run is $since commits old" \
		"(${found[0]#date: }: ${found[3]#result: })"
else
	echo "the last run of .ci/full is $since commits old: ${found[3]#result: }"
fi
verdict
