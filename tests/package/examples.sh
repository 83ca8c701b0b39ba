#!/usr/bin/env bash
# The smallest examples, built against the installed package, do at a server what they say; and so
# does a program with libuv. Needs one in BIZLOCK_TEST_*; makes a database of its own.
set -euo pipefail
source "$(dirname "$0")/common.sh"
source "$root/tests/support/dialects.sh"
database=bizlock_examples_$$

sql() {
	MYSQL_PWD=${BIZLOCK_TEST_PASSWORD:-} "$(sql_client)" --no-defaults "${at[@]}" "$@"
}

# said NAME: its line, with numbers as N.
said() {
	LD_LIBRARY_PATH=$libdir "$work/$1" | sed -E 's/ [0-9]+( ms|$)/ N\1/g'
}

if [[ -n ${BIZLOCK_TEST_SOCKET:-} ]]; then
	at=(--socket="$BIZLOCK_TEST_SOCKET" "$(without_tls)")
	export BIZLOCK_HOST=localhost BIZLOCK_SOCKET=$BIZLOCK_TEST_SOCKET
else
	: "${BIZLOCK_TEST_HOST:?no server: set it, or BIZLOCK_TEST_SOCKET, or use tests/run.sh}"
	at=(--protocol=tcp --host="$BIZLOCK_TEST_HOST" --port="${BIZLOCK_TEST_PORT:-3306}")
	export BIZLOCK_HOST=$BIZLOCK_TEST_HOST BIZLOCK_PORT=${BIZLOCK_TEST_PORT:-3306}
fi
[[ -z ${BIZLOCK_TEST_USER:-} ]] || at+=(--user="$BIZLOCK_TEST_USER")
export BIZLOCK_USER=${BIZLOCK_TEST_USER:-} BIZLOCK_PASSWORD=${BIZLOCK_TEST_PASSWORD:-}
export BIZLOCK_DATABASE=$database
sql -e "CREATE DATABASE $database"
trap 'rm -rf "$work"; sql -e "DROP DATABASE $database"' EXIT
cat "$prefix"/share/bizlock/sql/*.sql | sql "$database"

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
BIZLOCK_LEASE_MS=6000 LD_LIBRARY_PATH=$libdir python3 "$here/event_loop.py" ./event_loop \
	env "MYSQL_PWD=${BIZLOCK_TEST_PASSWORD:-}" "$(sql_client)" --no-defaults "${at[@]}" \
	-N "$database" -e

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

step "uv"
said=$(LD_LIBRARY_PATH=$libdir ./uv)
[[ $said == "50 granted, 1 cancelled, 1 lost, timers in between" ]] || die "uv says: $said"
