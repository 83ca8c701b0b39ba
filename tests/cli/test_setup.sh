#!/usr/bin/env bash
# bizlock migrate, grants and doctor: from an empty database to one that works.
source "$(dirname "$0")/common.sh"

drop_empty() {
	sql "DROP DATABASE $empty" || :
	sql "DROP USER IF EXISTS $empty@localhost, $empty@127.0.0.1" || :
}

# A database of its own, for this test: $empty.
empty_database() {
	empty=${database}_$1
	sql "CREATE DATABASE $empty"
	trap 'code_of_test=$?; drop_empty; end_test "$code_of_test"' EXIT
	export BIZLOCK_DATABASE=$empty
}

test_migrate_makes_the_tables_once() {
	empty_database a
	expect 1 "$program" migrate --status
	expect_out '^001_init\.sql +pending$'
	expect_out '^002_runs\.sql +pending$'
	expect 0 "$program" migrate --dry-run
	expect_out '^-- 001_init\.sql$'
	expect_out '^-- 002_runs\.sql$'
	expect_out 'CREATE TABLE'
	expect 1 "$program" migrate --status
	expect 78 "$program" list
	expect 0 "$program" migrate
	expect_out '^applied 001_init\.sql$'
	expect_out '^applied 002_runs\.sql$'
	expect 0 "$program" migrate
	expect_no_out
	expect_err 'as they should be'
	expect 0 "$program" migrate --status
	expect_out '^001_init\.sql +applied 20[0-9-]+ [0-9:.]+$'
	expect_out '^002_runs\.sql +applied 20[0-9-]+ [0-9:.]+$'
	expect 0 "$program" exec job a -- true
	expect 0 "$program" --table-prefix x_ migrate
	expect 0 "$program" --table-prefix x_ exec job a -- true
	expect 64 "$program" migrate --status --dry-run
	expect 64 "$program" migrate --status --raise-fences
}

test_fences_are_raised() {
	empty_database d
	expect 0 "$program" migrate --raise-fences
	expect_out '^applied 001_init\.sql$'
	expect_out '^applied 002_runs\.sql$'
	expect_out '^fences go on above [1-9][0-9]{15}$'
	local raised
	raised=$(sed -n 's/^fences go on above //p' "$out")
	expect 0 "$program" exec job a -- sh -c "test \"\$BIZLOCK_FENCE\" -gt $raised"
	expect 0 "$program" reap
	sql "TRUNCATE $empty.biz_lock"
	expect 1 "$program" doctor
	expect_out '^bad +auto_increment .* was [0-9]+ before'
	expect_out 'migrate --raise-fences'
	expect 0 "$program" migrate --raise-fences
	expect 0 "$program" doctor
}

test_routines_are_made_granted_and_dropped() {
	empty_database e
	expect 0 "$program" migrate --routines
	expect_out '^applied 001_init\.sql$'
	expect_out '^applied routines\.sql$'
	expect 0 "$program" migrate --routines
	expect_out '^applied routines\.sql$'
	sql_database=$empty sql "CALL biz_lock_try('job', 'a', 'web-17', 60000, @fence, @holder, @left_ms)"
	expect 0 "$program" list
	expect_out '^job +a +exclusive +web-17@sql '
	expect 0 "$program" show job a
	expect_out '^owner +web-17@sql$'
	expect 75 "$program" exec -n job a -- true
	expect 0 "$program" break --yes --fence "$(sql_database=$empty sql 'SELECT fence FROM biz_lock')" job a
	expect 0 "$program" exec -n job a -- true
	expect 0 "$program" doctor
	expect_out '^good +routines +.* all of this library'
	expect 0 "$program" grants --routines "$empty@localhost"
	expect_out "^GRANT EXECUTE ON PROCEDURE \`$empty\`.\`biz_lock_try\` TO \`$empty\`@\`localhost\`;"
	expect 0 "$program" migrate --drop-routines
	expect_out '^dropped the routines$'
	expect 0 "$program" migrate --drop-routines
	expect 64 "$program" migrate --routines --drop-routines
	expect 64 "$program" migrate --routines --dry-run
	expect 64 "$program" migrate --drop-routines --status
}

test_what_migrate_would_run_may_be_run_by_hand() {
	empty_database b
	expect 0 "$program" migrate --dry-run
	sql_database=$empty sql "$(cat "$out")"
	expect 0 "$program" migrate --status
}

test_a_user_with_the_grants_can_do_everything_and_no_more() {
	empty_database c
	local host=localhost
	[[ -n ${BIZLOCK_TEST_SOCKET:-} ]] || host=127.0.0.1
	expect 0 "$program" migrate
	expect 0 "$program" grants "$empty@$host"
	expect_equal "$(wc -l <"$out")" 4
	sql "CREATE USER $empty@$host IDENTIFIED BY 'some.Word-7'; $(cat "$out")"
	sed -e "s/^user=.*/user=$empty/" -e 's/^password=.*/password=some.Word-7/' "$work/client.cnf" >"$work/user.cnf"
	chmod 600 "$work/user.cnf"
	export BIZLOCK_DEFAULTS_FILE=$work/user.cnf
	expect 0 "$program" exec job a -- true
	expect 0 "$program" list
	expect 0 "$program" reap --older-than 0
	expect 0 "$program" migrate --raise-fences
	expect 0 "$program" doctor
	expect_out '^good +grants '
	expect 76 "$program" --table-prefix y_ migrate
}

test_grants_need_no_server() {
	expect 0 env -u BIZLOCK_DEFAULTS_FILE "$program" -h 127.0.0.1 -P 1 -D 'odd`name' grants "o'user@10.%"
	expect_out '^GRANT .* ON `odd``name`\.`biz_lock` TO `o.user`@`10\.%`;$'
	expect 64 "$program" grants
	expect 64 "$program" grants $'a\nb'
}

test_doctor_finds_all_well() {
	expect 0 "$program" doctor
	expect_out '^good +connection '
	expect_out '^good +doorbell '
	! grep -q '^bad' "$out" || fail "something is bad"
	expect 0 "$program" doctor --json
	expect_equal "$(python3 -c 'import json, sys; d = json.load(sys.stdin)["findings"]
print(len(d) > 15, {f["name"]: f["level"] for f in d}["tables"])' <"$out")" "True good"
}

test_doctor_names_the_remedy() {
	empty_database d
	expect 1 "$program" doctor
	expect_out '^bad +tables '
	expect_out 'remedy: '
	BIZLOCK_DATABASE=${database}_none expect 1 "$program" doctor
	expect_out '^bad +database '
	expect 69 "$program" doctor -h 127.0.0.1 -P 1
	expect_out '^bad +connection '
	expect_err 'conn'
}

run_tests
