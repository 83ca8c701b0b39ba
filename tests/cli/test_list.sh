#!/usr/bin/env bash
# bizlock list, show and break.
source "$(dirname "$0")/common.sh"

# json EXPRESSION: of the document on stdout, as `d`.
json() {
	python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$out" "$1"
}

# A row as a dead holder would leave it.
stale_row() {
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		VALUES ('$1', '$2', 'exec@77.00112233aabbccdd@db-7', 1, UTC_TIMESTAMP(6) - INTERVAL ${3:-5} MINUTE,
		'gone', UTC_TIMESTAMP(6) - INTERVAL 9 MINUTE, UTC_TIMESTAMP(6))"
}

test_list_shows_what_there_is() {
	expect 0 "$program" list
	expect_no_out
	hold job a --note 'night run'
	stale_row job b
	expect 0 "$program" exec --at-most-once-per 1h cron nightly -- true
	expect 0 "$program" list
	expect_equal "$(wc -l <"$out")" 4
	expect_out '^TYPE +ID +MODE +OWNER +HOST +PID +FENCE +DEPTH +HELD +LEFT +NOTE$'
	expect_out "^job +a +exclusive +exec +[^ ]+ +$holder +$(fence_of job a) +1 +[0-9.]+m?s +[0-9.]+s +night run$"
	expect_out '^job +b +exclusive +exec +db-7 +77 .* 9m [0-9]+s over for 5m [0-9]+s +gone$'
	expect_out '^cron +nightly +exclusive +\(resting\) .* 59m [0-9]+s'
	expect 0 "$program" list --type job
	expect_equal "$(wc -l <"$out")" 3
	expect 0 "$program" list --stale
	expect_equal "$(wc -l <"$out")" 2
	expect_out '^job +b'
	expect 0 "$program" list --held
	expect_equal "$(wc -l <"$out")" 2
	expect_out '^job +a'
	expect 64 "$program" list --held --stale
	expect_err '--held or --stale, not both'
}

test_a_contender_does_not_hold() {
	hold job a --shared
	"$program" exec job a -- true &
	await eval '"$program" list | grep -qE "^job +a +exclusive"'
	expect 0 "$program" list --held
	expect_equal "$(wc -l <"$out")" 2
	expect_out '^job +a +shared'
}

test_no_locks_have_a_head_on_a_terminal() {
	terminal "$program list; echo code \$?; read x"
	await_screen '^code 0$'
	screen | grep -v '^$' >"$out"
	expect_equal "$(wc -l <"$out")" 2
	expect_out '^TYPE +ID +MODE .* NOTE *$'
}

test_json_is_json() {
	expect 0 "$program" list --json
	expect_equal "$(json "d")" "{'locks': []}"
	hold job 'a "b" c' --note $'line\nline\ttab \\ é'
	stale_row job z
	expect 0 "$program" list --json
	expect_equal "$(json "len(d['locks'])")" 2
	expect_equal "$(json "d['locks'][0]['biz_id']")" 'a "b" c'
	expect_equal "$(json "d['locks'][0]['note'] == 'line\nline\ttab \\\\ é'")" True
	expect_equal "$(json "d['locks'][0]['pid'] == $holder and d['locks'][0]['state'] == 'held'")" True
	expect_equal "$(json "0 < d['locks'][0]['left_ms'] <= 30000 <= 10**6 * d['locks'][0]['fence']")" True
	expect_equal "$(json "d['locks'][1]['state'], d['locks'][1]['left_ms'] < -299000")" "('stale', True)"
}

test_words_of_strangers_do_no_harm_to_the_terminal() {
	hold $'t\e[2J' $'i\n' --note $'\a\xe2\x80\xaeevilé'
	LC_ALL=C.UTF-8 expect 0 "$program" list
	expect_equal "$(wc -l <"$out")" 2
	expect_out '^t\\x1b\[2J +i\\x0a .* \\x07\\xe2\\x80\\xaeevilé$'
	expect 0 "$program" show $'t\e[2J' $'i\n'
	expect_out '^type +t\\x1b\[2J$'
}

test_json_does_no_harm_to_the_terminal() {
	local locale
	hold job a --note $'\xc2\x9b2J \x7f \xe2\x80\xaeevil\xe2\x81\xa9\xd8\x9c "\\ \a é🔒'
	stale_row job b
	sql "UPDATE biz_lock SET owner = 'somebody', note = '' WHERE biz_id = 'b'"
	for locale in C C.UTF-8; do
		LC_ALL=$locale expect 0 "$program" list --json
		expect_out ': *"\\u009b2J \\u007f \\u202eevil\\u2069\\u061c \\"\\\\ \\u0007 é🔒"'
		expect_equal "$(json "d['locks'][0]['note'] == '\x9b2J \x7f \u202eevil\u2069\u061c \"\\\\ \a é🔒'")" True
		expect_equal "$(json "[d['locks'][1][x] for x in ('owner', 'host', 'pid', 'note')]")" \
			"['somebody', '', None, '']"
		LC_ALL=$locale expect 0 "$program" show --json job a
		expect_out '\\u009b2J'
	done
}

test_many_locks_are_listed() {
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900)
		SELECT 'job', i, 'x@1.00@h', 1, UTC_TIMESTAMP(6), '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM n"
	expect 0 "$program" list
	expect_equal "$(wc -l <"$out")" 901
}

test_show_tells_all_of_one_lock() {
	expect 1 "$program" show job a
	expect_out '^nobody holds it$'
	hold job a --note why
	"$program" exec job a -- true &
	await eval '"$program" show job a | grep -q "^waiting .* for .*, connection [0-9]*$"'
	local bell
	bell=$(sql "SELECT SUBSTRING_INDEX(SUBSTRING_INDEX(INFO, '''', 2), 'bizlock:', -1) FROM
		information_schema.PROCESSLIST WHERE DB = '$database' AND STATE = 'User lock'")
	sql "SELECT GET_LOCK('bizwat1:$bell', 0), SLEEP(600)" 2>/dev/null &
	await eval '"$program" show job a | grep -q "^waiting .* watches, connection [0-9]*$"'
	sql "KILL $("$program" show job a | sed -n 's/^waiting .* watches, connection //p')"
	expect 0 "$program" show job a
	expect_out '^state +held$'
	expect_out "^owner +exec@$holder\.[0-9a-f]+@"
	expect_out "^fence +$(fence_of job a)$"
	expect_out '^lease +[0-9.]+s left$'
	expect_out '^note +why$'
	stale_row job b
	expect 1 "$program" show job b
	expect_out '^lease +5m [0-9]+s over$'
	expect 0 "$program" exec --at-most-once-per 1h job c -- true
	expect 0 "$program" show job c
	expect_out '^state +resting$'
	expect_out '^rest +59m'
	expect 0 "$program" show --json job c
	expect_out '"state": *"resting"'
}

test_break_frees_the_lock_that_was_seen_and_no_other() {
	expect 1 "$program" break job a --fence 1
	expect_err 'nobody holds it'
	hold job a
	fence=$(fence_of job a)
	expect 75 "$program" break job a --fence $((fence + 1))
	expect_err "held by exec@$holder\..*fence $fence"
	expect 64 "$program" break job a
	expect_err "--fence is needed.* a script gets it from bizlock show --json: job/a.* fence $fence"
	expect 0 "$program" show --json job a
	expect_equal "$(json "d['locks'][0]['fence']")" "$fence"
	held job a || fail "broken"
	expect 0 "$program" break job a --fence "$fence"
	expect_out "^broken: job/a, held by exec@$holder\..*, fence $fence, for "
	free job a || fail "not broken"
	expect 1 "$program" break job a --fence "$fence"
	expect 64 "$program" break job
	expect 64 "$program" break job a --fence 0
}

# A lock that is broken is lost at its next renewal.
test_a_broken_holder_ends() {
	hold job a --lease 3s 2>"$err"
	expect 0 "$program" break job a --fence "$(fence_of job a)"
	exit_of "$holder"
	expect_equal "$code" 80
}

test_a_row_of_the_dead_may_be_broken() {
	stale_row job a
	expect 0 "$program" break job a --fence "$(fence_of job a)"
	expect_out 'stale by exec@77'
	free job a || fail "the row is still there"
}

test_break_asks_on_a_terminal() {
	hold job a
	terminal "$program break job a; echo code \$?; read x"
	await_screen 'job/a, held by exec@'
	await_screen 'Break it\? \[y/N\]'
	type_keys Enter
	await_screen '^code 1$'
	held job a || fail "broken"
	terminal_again "$program break job a --fence $(fence_of job a) --yes; echo code \$?; read x"
	await_screen '^code 0$'
	free job a || fail "not broken"
	hold job b
	terminal_again "$program break job b --fence $(fence_of job b); echo code \$?; read x"
	await_screen 'Break it\?'
	held job b || fail "broken unasked"
	type_keys y Enter
	await_screen '^broken: job/b'
	await_screen '^code 0$'
}

test_a_table_fits_the_terminal() {
	hold job a --note "$(printf 'a long note %.0s' {1..15})"
	terminal "$program list; echo code \$?; read x"
	await_screen '^code 0$'
	expect_equal "$(screen | grep -c 'a long note')" 1
}

# docs/picture.sh draws it anew.
test_the_picture_of_the_readme_shows_the_columns_of_today() {
	local heads
	hold job a
	mapfile -t heads < <(sed -nE 's/.* class="head" .*>(TYPE.*)<.*/\1/p' "$root/docs/list.svg" | tr -s ' ')
	expect 0 "$program" list
	expect_equal "${heads[0]}" "$(head -n 1 "$out" | tr -s ' ')"
	terminal "$program watch" 120
	await_screen '^job'
	expect_equal "${heads[1]}" "$(screen | grep '^TYPE' | tr -s ' ')"
}

test_tables_that_are_not_there() {
	local command
	for command in list "show job a" "break job a --fence 1"; do
		BIZLOCK_DATABASE=mysql expect 78 "$program" $command
		expect_no_out
		expect_err 'run bizlock migrate'
	done
}

run_tests
