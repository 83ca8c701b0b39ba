#!/usr/bin/env bash
# The programs of docs/languages.md, as they stand there: they and bizlock exec count down one stock. A
# program that reads and writes beside another one would leave something of it.
source "$(dirname "$0")/common.sh"

ROUNDS=10

# extract LANGUAGE NUMBER FILE: the block of that language with that number, for the test's database. It
# waits as long as all the others may work, on a machine that is busy: who polls is passed by who waits.
extract() {
	awk -v mark="\`\`\`$1" -v wanted="$2" '
		/^```/ { inside = $0 == mark && ++n == wanted; next }
		inside' "$root/docs/languages.md" |
		sed "s/\"shop\"/\"$database\"/; s/database=shop;/database=$database;/
			s/, 20000)/, 300000)/; s/time.monotonic() + 20/time.monotonic() + 300/" >"$3"
	[[ -s $3 ]] || fail "docs/languages.md has no block $2 of $1"
}

# The first python3 may be one that does not look where Debian's packages are.
run_python() {
	if python3 -c 'import pymysql' 2>/dev/null; then
		python3 "$1"
	else
		/usr/bin/python3 "$1"
	fi
}

run_php() {
	local options=(-d "mysqli.default_user=$BIZLOCK_TEST_USER" -d "mysqli.default_pw=$BIZLOCK_TEST_PASSWORD")
	if [[ -n ${BIZLOCK_TEST_SOCKET:-} ]]; then
		options+=(-d "mysqli.default_host=localhost" -d "mysqli.default_socket=$BIZLOCK_TEST_SOCKET")
	else
		options+=(-d "mysqli.default_host=$BIZLOCK_TEST_HOST" -d "mysqli.default_port=${BIZLOCK_TEST_PORT:-3306}")
	fi
	php "${options[@]}" "$1"
}

# Debian's client of Node has no caching_sha2_password, by which MySQL logs in.
has_node() {
	[[ $(sql "SELECT VERSION()") == *MariaDB* ]]
}

run_node() {
	NODE_PATH=/usr/share/nodejs DB_HOST=$BIZLOCK_TEST_HOST DB_PORT=${BIZLOCK_TEST_PORT:-3306} \
		DB_USER=$BIZLOCK_TEST_USER DB_PASSWORD=$BIZLOCK_TEST_PASSWORD node "$1"
}

# By the library, and the same store.
run_exec() {
	"$program" exec -w 60 stock 1 -- bash -c '
		ask() { "$1" --defaults-file="$2" -N -B "$3" -e "$4"; }
		n=$(ask "$@" "SELECT n FROM stock WHERE id = 1")
		ask "$@" "UPDATE stock SET n = $n - 1, fence = $BIZLOCK_FENCE WHERE id = 1 AND fence < $BIZLOCK_FENCE"
		' - "$(sql_client)" "$work/client.cnf" "$database"
}

# Each program that fails leaves a line.
repeat() {
	local round said
	for ((round = 0; round < ROUNDS; round++)); do
		said=$("$@" 2>&1) || echo "$*: $said" >>"$work/failures"
	done
}

test_programs_in_all_languages_count_exactly() {
	cp "$work/client.cnf" "$work/.my.cnf"
	export HOME=$work
	expect 0 "$program" migrate --routines
	extract python 1 "$work/wait.py"
	extract python 2 "$work/poll.py"
	extract php 1 "$work/wait.php"
	extract perl 1 "$work/wait.pl"
	extract js 1 "$work/wait.js"
	sql "CREATE TABLE stock (id INT PRIMARY KEY, n INT NOT NULL, fence BIGINT UNSIGNED NOT NULL);
		INSERT INTO stock VALUES (1, $((6 * ROUNDS)), 0)"
	if has_node; then
		sql "UPDATE stock SET n = n + $ROUNDS"
		repeat run_node "$work/wait.js" &
	fi
	repeat run_python "$work/wait.py" &
	repeat run_python "$work/poll.py" &
	repeat run_php "$work/wait.php" &
	repeat perl "$work/wait.pl" &
	repeat run_exec &
	repeat run_exec &
	wait
	[[ ! -e $work/failures ]] || fail "$(cat "$work/failures")"
	expect_equal "$(sql 'SELECT n FROM stock')" 0
	expect_equal "$(sql 'SELECT COUNT(*) FROM biz_lock')" 0
}

# One that does not get the lock says who has it.
test_programs_that_do_not_get_the_lock_say_who_has_it() {
	local run runs
	cp "$work/client.cnf" "$work/.my.cnf"
	export HOME=$work
	expect 0 "$program" migrate --routines
	hold stock 1
	extract python 1 "$work/wait.py"
	extract php 1 "$work/wait.php"
	extract perl 1 "$work/wait.pl"
	extract js 1 "$work/wait.js"
	sed -i 's/300000/100/' "$work"/wait.*
	runs=("run_python $work/wait.py" "run_php $work/wait.php" "perl $work/wait.pl")
	! has_node || runs+=("run_node $work/wait.js")
	for run in "${runs[@]}"; do
		$run >"$out" 2>&1 || :
		expect_out '^held by exec@.* for [0-9]+ ms more$'
	done
}

run_tests
