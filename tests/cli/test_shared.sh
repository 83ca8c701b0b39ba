#!/usr/bin/env bash
# Who may have a lock beside whom: exec --shared, --exclusive, --limit and none of these, and how that is shown.
source "$(dirname "$0")/common.sh"

# begin NAME OPTION...: a command that runs until $work/NAME.go is there.
begin() {
	local name=$1
	shift
	rm -f "$work/$name.go" "$work/$name.slot"
	"$program" exec "$@" job a -- \
		sh -c 'echo "$BIZLOCK_SLOT" >"$1.new"; mv "$1.new" "$1.slot"; until [ -e "$1.go" ]; do sleep 0.05; done' \
		sh "$work/$name" &
	await test -e "$work/$name.slot"
}

finish() {
	touch "$work/$1.go"
}

test_some_share_it_and_one_has_it_alone() {
	begin r1 --shared
	begin r2 -s
	expect 75 "$program" exec -w 0 -x job a -- true
	expect 75 "$program" exec -w 0 -s -E 75 --limit 2 job a -- true
	expect 75 "$program" exec -w 0 job a -- true
	finish r1
	finish r2
	expect 0 "$program" exec --exclusive job a -- sh -c 'test "$BIZLOCK_SLOT" = 0'
	begin w --exclusive
	expect 75 "$program" exec -w 0 --shared job a -- true
	finish w
	expect 0 "$program" exec --shared job a -- true
	wait
}

test_each_has_a_number_of_its_own() {
	begin w1 --limit 2
	begin w2 --limit 2
	expect_equal "$(sort "$work/w1.slot" "$work/w2.slot" | tr '\n' ' ')" "1 2 "
	expect 75 "$program" exec -w 0 --limit 2 job a -- true
	expect 0 "$program" list
	expect_out '^TYPE +ID +MODE +OWNER'
	expect_out '^job +a +shared 1/2 +exec '
	expect_out '^job +a +shared 2/2 +exec '
	expect 0 "$program" list --json
	expect_equal "$(python3 -c 'import json, sys
print([(l["mode"], l["slot"], l["limit"]) for l in json.load(sys.stdin)["locks"]])' <"$out")" "[('shared', 1, 2), ('shared', 2, 2)]"
	expect 0 "$program" show job a
	expect_equal "$(grep -c '^mode  *shared$' "$out")" 2
	expect_out '^slot +2$'
	expect_out '^limit +2$'
	expect 64 "$program" break --yes job a
	expect_err '2 hold it: --fence'
	finish w1
	await "$program" exec -w 0 --limit 2 job a -- sh -c 'test "$BIZLOCK_SLOT" = 1 || test "$BIZLOCK_SLOT" = 2'
	finish w2
	wait
}

test_who_waits_is_shown() {
	begin r1 --shared
	"$program" exec --exclusive job a -- true &
	await eval '"$program" show job a | grep -q "^waiting .* watches, connection [0-9]*$"'
	"$program" exec --shared job a -- true &
	await eval '"$program" show job a | grep -q "^waiting .* for .*, connection [0-9]*$"'
	finish r1
	wait
}

test_one_of_them_is_broken() {
	local fence
	begin w1 --limit 2
	begin w2 --limit 2
	fence=$(sql "SELECT fence FROM biz_lock WHERE slot = 2")
	expect 0 "$program" break --yes --fence "$fence" job a
	expect_equal "$(sql "SELECT COUNT(*) FROM biz_lock WHERE timeout > UTC_TIMESTAMP(6)")" 1
	finish w1
	finish w2
	wait
}

test_so_many_in_a_time() {
	for i in 1 2; do
		expect 0 "$program" exec -w 0 --limit 2 --at-most-once-per 1h job a -- true
	done
	expect 75 "$program" exec -w 0 --limit 2 --at-most-once-per 1h job a -- true
	sql 'DELETE FROM biz_lock'
	expect 127 "$program" exec -w 0 --limit 1 --at-most-once-per 1h job a -- "$work/is-not-there"
	expect 0 "$program" exec -w 0 --limit 1 --at-most-once-per 1h job a -- true
}

test_what_cannot_be() {
	expect 64 "$program" exec -s -x job a -- true
	expect 64 "$program" exec -x --limit 2 job a -- true
	expect 64 "$program" exec --limit 0 job a -- true
}

run_tests
