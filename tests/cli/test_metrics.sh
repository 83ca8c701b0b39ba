#!/usr/bin/env bash
# bizlock metrics: numbers about the tables, and the dashboard that shows them.
source "$(dirname "$0")/common.sh"

exposition() {
	python3 "$root/tests/cli/exposition.py" "$@" || fail "not the format of Prometheus"
}

# expect_metric NAME{LABEL=VALUE,...} VALUE, in what was printed last. Labels in alphabetical order.
expect_metric() {
	expect_equal "$1 $(exposition "$out" "$1")" "$1 $2"
}

# metrics [OPTION...]: prints them, and reads them.
metrics() {
	expect 0 "$program" metrics "$@"
	expect_no_err
	exposition "$out" >/dev/null
}

# rows TYPE FROM TO [STATE]: rows of that type, with the numbers as ids; held without a STATE.
rows() {
	sql "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout, note, gmt_create, gmt_modified)
		WITH RECURSIVE n AS (SELECT $2 AS i UNION ALL SELECT i + 1 FROM n WHERE i < $3)
		SELECT $1, i, '$([[ ${4:-} == resting ]] || echo x@1.00@h)', $([[ ${4:-} == resting ]] && echo 0 || echo 1),
			UTC_TIMESTAMP(6) + INTERVAL $([[ ${4:-} == stale ]] && echo -1 || echo 60) MINUTE, '',
			UTC_TIMESTAMP(6) - INTERVAL 90 SECOND, UTC_TIMESTAMP(6) FROM n"
}

test_what_is_in_the_tables() {
	local oldest
	rows "'job'" 1 3
	rows "'job'" 4 5 resting
	rows "'mail'" 1 7 stale
	hold work a -s
	hold work b
	"$program" exec work b -- true &
	"$program" exec --limit 3 work a -- sleep 1000 &
	await eval '"$program" show work b | grep -q ^waiting'
	await eval '[[ $(sql "SELECT COUNT(*) FROM biz_lock WHERE biz_id = \"a\" AND slot > 0") == 2 ]]'
	metrics
	expect_metric 'bizlock_table_types{}' 3
	expect_metric 'bizlock_table_held{mode=exclusive,type=job}' 3
	expect_metric 'bizlock_table_held{mode=shared,type=job}' 0
	expect_metric 'bizlock_table_resting{mode=exclusive,type=job}' 2
	expect_metric 'bizlock_table_stale{type=job}' 0
	expect_metric 'bizlock_table_held{mode=exclusive,type=mail}' 0
	expect_metric 'bizlock_table_stale{type=mail}' 7
	expect_metric 'bizlock_table_oldest_hold_seconds{type=mail}' 0.000
	expect_metric 'bizlock_table_held{mode=exclusive,type=work}' 1
	expect_metric 'bizlock_table_held{mode=shared,type=work}' 2
	expect_metric 'bizlock_table_waiters{type=work}' 1
	expect_metric 'bizlock_table_waiters{type=job}' 0
	oldest=$(exposition "$out" 'bizlock_table_oldest_hold_seconds{type=job}')
	((${oldest%.*} >= 90 && ${oldest%.*} < 90 + PATIENCE_S)) || fail "the oldest hold is $oldest s old"
}

# A contender that waits for sharers to leave holds nothing. It waits, and once, for all of them.
test_a_contender_in_the_way_of_sharers_waits() {
	hold work a -s
	"$program" exec -s work a -- sleep 1000 &
	await eval '[[ $(sql "SELECT COUNT(*) FROM biz_lock WHERE slot > 0") == 2 ]]'
	"$program" exec work a -- true &
	await eval '"$program" list | grep -q "exclusive .* 0 "'
	metrics
	expect_metric 'bizlock_table_held{mode=exclusive,type=work}' 0
	expect_metric 'bizlock_table_held{mode=shared,type=work}' 2
	expect_metric 'bizlock_table_waiters{type=work}' 1
}

test_empty_tables() {
	metrics
	expect_metric 'bizlock_table_types{}' 0
	expect_metric 'bizlock_run_left_out{}' 0
	expect_equal "$(grep -vc '^#' "$out")" 2
}

test_names_are_of_one_scheme() {
	local name
	metrics
	for name in $(exposition "$out"); do
		[[ $name == bizlock_table_* || $name == bizlock_run_* ]] ||
			fail "not told from a client's own numbers: $name"
	done
	expect_equal "$(LC_ALL=C sort -u <(exposition "$out") | wc -l)" 13
}

test_words_of_strangers_are_labels_and_nothing_else() {
	local locale
	rows "'a\"b\\\\c{d=\"e\"},f'" 1 1
	rows "CONCAT('line', CHAR(10), 'bizlock_table_held 7', CHAR(13), CHAR(27), '[2J')" 1 1
	rows "CONVERT(0x$(printf 'naïve 🔒 %%s' | od -An -v -tx1 | tr -d ' \n') USING utf8mb4)" 1 1
	rows "CONVERT(0xE280AE USING utf8mb4)" 1 1
	for locale in C C.UTF-8; do
		LC_ALL=$locale metrics
		expect_metric 'bizlock_table_types{}' 4
		expect_metric 'bizlock_table_held{mode=exclusive,type=a"b\c{d="e"},f}' 1
		expect_metric 'bizlock_table_held{mode=exclusive,type=line\x0abizlock_table_held 7\x0d\x1b[2J}' 1
		expect_metric 'bizlock_table_held{mode=exclusive,type=naïve 🔒 %s}' 1
		expect_metric 'bizlock_table_held{mode=exclusive,type=\xe2\x80\xae}' 1
		! grep -q $'[\e\r]' "$out" || fail "it harms a terminal"
	done
}

# Two series of one name would make a collector refuse the whole file.
test_types_that_become_the_same_label_are_counted_together() {
	rows "CONCAT('a', CHAR(27))" 1 2
	rows "'a\\\\x1b'" 1 3
	rows "'(other)'" 1 4
	metrics
	expect_metric 'bizlock_table_types{}' 2
	expect_metric 'bizlock_table_held{mode=exclusive,type=a\x1b}' 5
	expect_metric 'bizlock_table_held{mode=exclusive,type=(other)}' 4
}

test_thousands_of_types_are_a_hundred_and_the_others() {
	rows "CONCAT('type', LPAD(i, 4, '0'))" 1 900
	rows "'zz'" 1 50
	rows "'(other)'" 1 90
	rows "'much'" 1 2
	metrics
	expect_metric 'bizlock_table_types{}' 903
	expect_equal "$(exposition "$out" bizlock_table_stale | wc -l)" 101
	expect_metric 'bizlock_table_held{mode=exclusive,type=zz}' 50
	expect_metric 'bizlock_table_held{mode=exclusive,type=much}' 2
	expect_metric 'bizlock_table_held{mode=exclusive,type=type0098}' 1
	expect_metric 'bizlock_table_held{mode=exclusive,type=type0099}' ''
	expect_metric 'bizlock_table_held{mode=exclusive,type=(other)}' $((900 - 98 + 90))
	expect_equal "$(exposition "$out" bizlock_table_held | awk '{ sum += $NF } END { print sum }')" $((900 + 50 + 90 + 2))
}

test_too_many_locks_to_ask_who_waits() {
	local i
	for i in {0..11}; do
		rows "'job'" $((900 * i + 1)) $((900 * i + 900))
	done
	expect 0 "$program" metrics
	expect_err 'more than 10000 locks are held or rest: waiters are not counted'
	expect_metric 'bizlock_table_held{mode=exclusive,type=job}' 10800
	! grep -q waiters "$out" || fail "waiters are counted"
}

# ---- runs ------------------------------------------------------------------------------

# run_metric NAME ID: the value; nothing if there is no such series.
run_metric() {
	exposition "$out" "bizlock_run_$1{id=$2,type=job}"
}

# expect_run ID EXIT_CODE FAILURES RUNNING
expect_run() {
	expect_equal "exit $(run_metric exit_code "$1")" "exit $2"
	expect_metric "bizlock_run_failures_in_row{id=$1,type=job}" "$3"
	expect_metric "bizlock_run_running{id=$1,type=job}" "$4"
}

# expect_near SECONDS WANTED: as it is, or later by what a busy machine takes.
expect_near() {
	[[ $1 =~ ^[0-9]+\.[0-9]{3}$ ]] || fail "not seconds: $1"
	((${1%.*} >= $2 && ${1%.*} < $2 + PATIENCE_S)) || fail "$1 is not about $2"
}

now_at_server() {
	sql 'SELECT FLOOR(UNIX_TIMESTAMP(NOW(6)))'
}

# age_runs CONDITION SECONDS: as if they had been that much earlier.
age_runs() {
	sql "UPDATE biz_run SET began_at = began_at - INTERVAL $2 SECOND, ended_at = ended_at - INTERVAL $2 SECOND,
		succeeded_at = succeeded_at - INTERVAL $2 SECOND WHERE $1"
}

# ended_runs TYPE FROM TO: jobs with the numbers as ids; each began a second after the one before.
ended_runs() {
	sql "INSERT INTO biz_run (biz_type, biz_id, fence, owner, outcome, exit_code, began_at, ended_at, runs, since_success)
		WITH RECURSIVE n AS (SELECT $2 AS i UNION ALL SELECT i + 1 FROM n WHERE i < $3)
		SELECT $1, i, i, 'x@1.00@h', 'failed', 1, '2026-01-02' + INTERVAL i SECOND,
			'2026-01-03', 1, 1 FROM n"
}

test_runs_that_were_done_or_failed() {
	local now
	now=$(now_at_server)
	"$program" exec --record job good -- true
	"$program" exec --record job bad -- true
	age_runs 'TRUE' 7200
	sql "UPDATE biz_run SET began_at = began_at - INTERVAL 600 SECOND WHERE biz_id = 'good'"
	expect 3 "$program" exec --record job bad -- sh -c 'exit 3'
	expect 143 "$program" exec --record job bad -- sh -c 'kill -TERM $$'
	expect 4 "$program" exec --record job never -- sh -c 'exit 4'
	metrics
	expect_run good 0 0 0
	expect_near "$(run_metric began_timestamp_seconds good)" $((now - 7800))
	expect_near "$(run_metric succeeded_timestamp_seconds good)" $((now - 7200))
	expect_near "$(run_metric duration_seconds good)" 600
	expect_run bad 143 2 0
	expect_near "$(run_metric began_timestamp_seconds bad)" "$now"
	expect_near "$(run_metric succeeded_timestamp_seconds bad)" $((now - 7200))
	expect_near "$(run_metric duration_seconds bad)" 0
	expect_run never 4 1 0
	expect_equal "$(run_metric succeeded_timestamp_seconds never)" 0.000
	expect_metric 'bizlock_run_left_out{}' 0
}

is_dead() {
	"$program" runs job "$1" | grep -q ' died '
}

test_a_run_that_goes_on_and_one_whose_process_died() {
	local now
	now=$(now_at_server)
	hold job killed --record --lease 2s
	await eval '"$program" runs job killed | grep -q " running "'
	kill -KILL "$holder"
	hold job long --record
	await eval '"$program" runs job long | grep -q " running "'
	age_runs 'biz_id = "long"' 60
	await is_dead killed
	metrics
	expect_run long '' 0 1
	expect_near "$(run_metric duration_seconds long)" 60
	expect_run killed '' 1 0
	expect_near "$(run_metric began_timestamp_seconds killed)" "$now"
	expect_equal "$(run_metric succeeded_timestamp_seconds killed)" 0.000
	expect_equal "$(run_metric duration_seconds killed)" ''
}

# The server's clock was set back while they ran.
test_runs_that_end_before_they_begin() {
	"$program" exec --record job a -- true
	sql 'UPDATE biz_run SET ended_at = began_at - INTERVAL 1 HOUR'
	metrics
	expect_equal "$(run_metric duration_seconds a)" 0.000
}

test_keys_of_strangers_are_labels_and_nothing_else() {
	ended_runs "CONCAT('a\"b\\\\c{d=\"e\"},', CHAR(10), CHAR(27), '[2J')" 1 1
	sql "UPDATE biz_run SET biz_id = CONCAT('x\"} 1', CHAR(10), 'bizlock_run_running 7')"
	metrics
	expect_metric 'bizlock_run_exit_code{id=x"} 1\x0abizlock_run_running 7,type=a"b\c{d="e"},\x0a\x1b[2J}' 1
	! grep -q $'\e' "$out" || fail "it harms a terminal"
}

# Two series of one name would make a collector refuse the whole file.
test_of_keys_that_become_the_same_labels_the_last_begun_is_told() {
	ended_runs "CONCAT('a', CHAR(27))" 7 7
	ended_runs "'a\\\\x1b'" 7 7
	sql "UPDATE biz_run SET exit_code = 9, began_at = began_at + INTERVAL 1 SECOND WHERE biz_type LIKE '%1b'"
	metrics
	expect_metric 'bizlock_run_exit_code{id=7,type=a\x1b}' 9
	expect_metric 'bizlock_run_left_out{}' 1
}

# The keys come in the order of their ids: those that are kept are neither the first nor the last.
test_of_thousands_of_jobs_the_500_begun_last_are_told() {
	ended_runs "'a'" 1 700
	ended_runs "'b'" 1 700
	sql "UPDATE biz_run SET began_at = began_at - INTERVAL 1 DAY WHERE biz_type = 'b' AND biz_id LIKE '6__'"
	metrics
	expect_metric 'bizlock_run_left_out{}' 900
	expect_equal "$(exposition "$out" bizlock_run_exit_code | wc -l)" 500
	expect_metric 'bizlock_run_exit_code{id=700,type=a}' 1
	expect_metric 'bizlock_run_exit_code{id=600,type=a}' 1
	expect_metric 'bizlock_run_exit_code{id=600,type=b}' ''
	expect_metric 'bizlock_run_exit_code{id=1,type=a}' ''
	expect_equal "$(exposition "$out" bizlock_run_exit_code | grep -o 'id=[0-9]*' | sort -t= -k2n | head -1)" id=401
}

# After `run`: nothing is told of runs, and everything of locks.
expect_locks_alone() {
	expect_equal "$code" 0
	expect_no_err
	expect_metric 'bizlock_table_held{mode=exclusive,type=job}' 3
	expect_metric 'bizlock_table_waiters{type=job}' 0
	! grep -q bizlock_run_ "$out" || fail "runs of a table that cannot be read"
}

test_without_the_table_of_runs_locks_are_told() {
	rows "'job'" 1 3
	sql 'RENAME TABLE biz_run TO away'
	run "$program" metrics
	sql 'RENAME TABLE away TO biz_run'
	expect_locks_alone
}

test_without_a_privilege_on_runs_locks_are_told() {
	local host table
	for host in % localhost; do
		sql "CREATE USER '$database'@'$host' IDENTIFIED BY 'c0rrect-horse'"
		for table in biz_lock biz_row_lock biz_lock_schema; do
			sql "GRANT SELECT, INSERT, UPDATE, DELETE ON $database.$table TO '$database'@'$host'"
		done
	done
	"$program" exec --record job a -- true
	rows "'job'" 1 3
	BIZLOCK_USER=$database BIZLOCK_PASSWORD=c0rrect-horse run "$program" metrics
	sql "DROP USER '$database'@'%', '$database'@'localhost'"
	expect_locks_alone
}

# ---- into a file -----------------------------------------------------------------------

test_a_file_is_replaced_in_one_step() {
	local file=$work/metrics/bizlock.prom before
	mkdir "$work/metrics"
	rows "'job'" 1 1
	(
		umask 077
		expect 0 "$program" metrics --output "$file"
	)
	expect_no_out
	expect_equal "$(ls "$work/metrics")" bizlock.prom
	expect_equal "$(stat -c %a "$file")" 644
	exposition "$file" >/dev/null
	ln "$file" "$work/before"
	before=$(cat "$file")
	rows "'job'" 2 2
	expect 0 "$program" metrics --output "$file"
	expect_equal "$(cat "$work/before")" "$before"
	expect_equal "$(exposition "$file" 'bizlock_table_held{mode=exclusive,type=job}')" 2
	expect_equal "$(ls "$work/metrics")" bizlock.prom
	cd "$work/metrics"
	expect 0 "$program" metrics --output relative.prom
	exposition relative.prom >/dev/null
}

test_a_file_that_cannot_be_written_stays_as_it_was() {
	local file=$work/stays.prom
	mkdir -p "$work/folder"
	rows "CONCAT('type', i)" 1 200
	echo old >"$file"
	expect 74 bash -c 'ulimit -f 1; trap "" XFSZ; "$1" metrics --output "$2"' - "$program" "$file"
	expect_err 'stays.prom: File too large'
	expect_equal "$(cat "$file")" old
	expect_equal "$(echo "$work"/stays.prom*)" "$file"
	expect 74 "$program" metrics --output "$work/no/such"
	expect_err 'no/such: No such file'
	expect 74 "$program" metrics --output "$work/folder"
	expect 74 "$program" metrics --output ''
	# Devices of its own: a program that is wrong, and root's, would replace those of the machine.
	mkfifo "$work/pipe"
	ln -s "$work/pipe" "$work/link"
	ln -s "$work/stays.prom" "$work/link-to-file"
	for name in "$work/pipe" "$work/link" "$work/link-to-file"; do
		expect 74 "$program" metrics --output "$name"
		expect_err 'not a regular file'
	done
	[[ -p $work/pipe && -L $work/link && -L $work/link-to-file ]] || fail "replaced"
	expect 69 env BIZLOCK_HOST=127.0.0.1 "$program" metrics --port 1 --output "$file"
	expect_equal "$(cat "$file")" old
}

# A collector that reads all the time never sees half a text.
test_no_reader_sees_half_a_file() {
	local file=$work/often.prom reader
	rows "CONCAT('type', i)" 1 90
	expect 0 "$program" metrics --output "$file"
	python3 - "$file" "$work/done" >"$out" 2>"$err" <<'CODE' &
import os, sys

read = 0
lines = open(sys.argv[1]).read().count("\n")
while read < 100 or not os.path.exists(sys.argv[2]):
    text = open(sys.argv[1]).read()
    assert text.endswith("\n") and text.count("\n") == lines, text[-100:]
    read += 1
CODE
	reader=$!
	for _ in {1..20}; do
		"$program" metrics --output "$file"
	done
	touch "$work/done"
	exit_of "$reader"
	expect_equal "$code" 0
}

# ---- the dashboard ------------------------------------------------------------------------

# Each name that the dashboard asks for is there, with the labels by which it asks.
test_the_dashboard_asks_for_what_there_is() {
	rows "'job'" 1 1
	"$program" exec --record job nightly -- true
	metrics
	python3 - "$root/examples/grafana.json" "$out" <<'CODE' || fail "the dashboard"
import json, re, sys

dashboard = json.load(open(sys.argv[1]))
text = open(sys.argv[2]).read()
there = set(re.findall(r"^# TYPE (\S+)", text, re.M))
labels = {name: set(re.findall(r'([a-z]+)="', "".join(re.findall(rf"^{name}{{.*", text, re.M)))) | {"instance"}
          for name in there}
queries = [t["expr"] for p in dashboard["panels"] for t in p.get("targets", [])]
queries += [v["query"]["query"] if isinstance(v["query"], dict) else v["query"]
            for v in dashboard["templating"]["list"] if v["type"] == "query"]
assert len(queries) >= 5, queries
asked = set()
for query in queries:
    names = re.findall(r"\b[a-z]+(?:_[a-z]+)+\b(?!\()", query)
    names = [n for n in names if n != "label_values"]
    assert names, f"no metric: {query}"
    for name in names:
        assert name in there, f"there is no {name}: {query}"
    asked.update(names)
    for inside in re.findall(r"\{(.*?)\}", query) + re.findall(r"by \((.*?)\)", query):
        for label in re.findall(r"([a-z]+)(?==~|,|$|\s)", re.sub(r'"[^"]*"', "", inside)):
            assert label in labels[names[0]], f"{names[0]} has no label {label}: {query}"
assert asked == there, f"not shown: {there - asked}"
sources = [v for v in dashboard["templating"]["list"] if v["type"] == "datasource"]
assert len(sources) == 1 and sources[0]["query"] == "prometheus"
for panel in dashboard["panels"]:
    assert panel["datasource"]["uid"] == "${%s}" % sources[0]["name"], panel["title"]
assert dashboard["uid"] and dashboard.get("id") is None
CODE
}

run_tests
