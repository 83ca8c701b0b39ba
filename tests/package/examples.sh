#!/usr/bin/env bash
# The examples, built against the installed package, do at a server what they say, also if they are
# killed; and so does a program with libuv. Needs a server in BIZLOCK_TEST_*; makes a database of its
# own.
set -euo pipefail
source "$(dirname "$0")/common.sh"

# said NAME: its line, with numbers as N.
said() {
	LD_LIBRARY_PATH=$libdir "$work/$1" | sed -E 's/ [0-9]+( ms|$)/ N\1/g'
}

begin_database bizlock_examples_$$
cat "$prefix"/share/bizlock/sql/0*.sql "$root/examples/tables.sql" | sql "$database"

cd "$work"
flags=("${strict[@]}" $(pkg-config --cflags bizlock))
"$CC" -std=c99 "${flags[@]}" "$root/examples/hello.c" -o hello $(pkg-config --libs bizlock)
programs=(hello)
if command -v "$CXX" >/dev/null; then
	"$CXX" -std=c++11 "${flags[@]}" "$root/examples/hello.cpp" -o hello_cxx $(pkg-config --libs bizlock)
	programs+=(hello_cxx)
else
	echo "[SKIP] package: no C++ compiler"
fi

"$CC" "${flags[@]}" "$root/examples/event_loop.c" -o event_loop $(pkg-config --libs bizlock)
"$CC" "${flags[@]}" "$here/uv.c" -o uv $(pkg-config --cflags --libs bizlock libuv)

for program in "${programs[@]}"; do
	step "$program"
	[[ $(said $program) == "order 4711 is ours for N ms, fence N" ]] ||
		die "$program says: $(said $program)"
	[[ $(sql -N "$database" -e "SELECT COUNT(*) FROM biz_lock") == 0 ]] ||
		die "$program has left its lock"
done

step "held by somebody else"
sql "$database" -e "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create,
	gmt_modified) VALUES ('4711', 'order', 'somebody@1.2@elsewhere', 1,
	UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"
for program in "${programs[@]}"; do
	LD_LIBRARY_PATH=$libdir ./$program >$program.out 2>&1 &
done
wait
for program in "${programs[@]}"; do
	[[ $(cat $program.out) == *somebody@1.2@elsewhere* ]] ||
		die "$program says: $(cat $program.out)"
done

step "event_loop"
sql "$database" -e "DELETE FROM biz_lock"
BIZLOCK_LEASE_MS=6000 LD_LIBRARY_PATH=$libdir python3 "$here/event_loop.py" ./event_loop "${ask[@]}"

step "readers"
"$CC" -std=c99 "${flags[@]}" "$root/examples/readers.c" -o readers $(pkg-config --libs bizlock)
said=$(LD_LIBRARY_PATH=$libdir ./readers report.txt 6 15)
[[ $said == "6 readers, 15 rebuilds: each report was whole" ]] || die "readers says: $said"

# Three of two: the third gets the number of one that dies.
step "workers"
if [[ -x $prefix/bin/bizlock ]]; then
	workers=()
	for i in 1 2 3; do
		PATH=$prefix/bin:$PATH LD_LIBRARY_PATH=$libdir "$root/examples/workers.sh" worker mail 2 \
			sh -c 'echo $$ >"slot.$BIZLOCK_SLOT"; exec sleep 1000' 2>workers.log &
		workers+=($!)
	done
	until [[ -s slot.1 && -s slot.2 ]]; do sleep 0.1; done
	first=$(cat slot.1)
	kill "$first"
	until [[ $(cat slot.1) != "$first" ]]; do sleep 0.1; done
	[[ $(ls slot.*) == "slot.1"$'\n'"slot.2" ]] || die "workers have the numbers $(ls slot.*)"
	kill "${workers[@]}"
	kill "$(cat slot.1)" "$(cat slot.2)" || true
	wait "${workers[@]}" || true
else
	echo "[SKIP] package: bizlock was built without its command"
fi

read -r connector _ < <(pkg-config --print-requires-private bizlock)
for example in standby jobs; do
	"$CC" "${flags[@]}" "$root/examples/$example.c" -o $example -pthread \
		$(pkg-config --cflags --libs bizlock "$connector")
done
for example in once limiter; do
	"$CC" "${flags[@]}" "$root/examples/$example.c" -o $example $(pkg-config --libs bizlock)
done
standbys=(standby)
if command -v "$CXX" >/dev/null; then
	"$CXX" -std=c++11 "${flags[@]}" "$root/examples/standby.cpp" -o standby_cxx -pthread \
		$(pkg-config --cflags --libs bizlock "$connector")
	standbys+=(standby_cxx)
fi
export LD_LIBRARY_PATH=$libdir

for program in "${standbys[@]}"; do
	step "$program"
	"${ask[@]}" "DELETE FROM standby_log"
	python3 "$here/standby.py" "./$program" "${ask[@]}"
done

# Two processes, of which one is killed in the middle of its work.
step "jobs"
"${ask[@]}" "INSERT INTO job (id) SELECT 10 * a.n + b.n FROM
	(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5
	UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) AS a,
	(SELECT 1 AS n UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6
	UNION SELECT 7 UNION SELECT 8 UNION SELECT 9 UNION SELECT 10) AS b"
export BIZLOCK_LEASE_MS=3000
./jobs &
victim=$!
until (($("${ask[@]}" "SELECT COUNT(*) FROM job WHERE state = 1") >= 5)); do sleep 0.05; done
kill -9 $victim
wait $victim || true
left=$("${ask[@]}" "SELECT COUNT(*) FROM job WHERE state = 1")
((left > 0)) || die "jobs was not killed in the middle"
./jobs >jobs.out 2>jobs.err || die "jobs: $(cat jobs.err)"
[[ $(grep -c 'was left half done' jobs.out) == "$left" && ! -s jobs.err ]] ||
	die "of $left that were half done, jobs found: $(cat jobs.out jobs.err)"
[[ $("${ask[@]}" "SELECT COUNT(*), MIN(state), MIN(fence) > 0 FROM job") == "100"$'\t'"2"$'\t'"1" ]] ||
	die "not all jobs are done"

step "once"
./once 3600 >once.1 &
victim=$!
until [[ $("${ask[@]}" "SELECT COUNT(*) FROM biz_run WHERE biz_type = 'once'") == 1 ]]; do sleep 0.05; done
[[ $(./once 3600) == "at work elsewhere"* ]] || die "once does not leave work to another one"
kill -9 $victim
wait $victim || true
until [[ $(./once 3600 >once.2; cat once.2) != "at work elsewhere"* ]]; do sleep 0.2; done
[[ $(cat once.2) == "the last run died"*"done" ]] || die "once, after a death: $(cat once.2)"
[[ $(./once 3600) =~ ^done\ [0-9]+\ s\ ago$ ]] || die "once was not done once"
[[ $(./once 0) == "done" ]] || die "once is never due again"
unset BIZLOCK_LEASE_MS

# 40 starts, 5 a second: the first 5 at once, and the last 7 seconds later.
step "limiter"
limiters=()
for i in 1 2 3 4; do
	./limiter 5 10 >limiter.$i &
	limiters+=($!)
done
wait "${limiters[@]}"
sort -n limiter.? >limiter.all
(($(wc -l <limiter.all) == 40)) || die "limiter has started $(wc -l <limiter.all) times"
awk 'NR == 1 { first = $1 } END { exit $1 - first < 6.9 || $1 - first > 60 }' limiter.all ||
	die "limiter: $(cat limiter.all)"
./limiter 1 1000 >limiter.1 &
limiter=$!
until (($(wc -l <limiter.1) >= 2)); do sleep 0.1; done
kill $limiter
wait $limiter || die "limiter ends by $?"

step "uv"
said=$(LD_LIBRARY_PATH=$libdir ./uv)
[[ $said == "50 granted, 1 cancelled, 1 lost, timers in between" ]] || die "uv says: $said"
