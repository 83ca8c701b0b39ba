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

test_an_empty_table() {
	metrics
	expect_metric 'bizlock_table_types{}' 0
	expect_equal "$(grep -vc '^#' "$out")" 1
}

test_names_are_of_one_scheme() {
	local name
	metrics
	for name in $(exposition "$out"); do
		[[ $name == bizlock_table_* ]] || fail "not told from a client's own numbers: $name"
	done
	expect_equal "$(LC_ALL=C sort -u <(exposition "$out") | wc -l)" 6
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
