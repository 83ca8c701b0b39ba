# Sourced by the tests of the command: bash test_NAME.sh PROGRAM. A test is a function
# named test_*, run in a subshell of its own; run_tests runs them all, or those of
# BIZLOCK_CLI_PATTERN. Needs a server in BIZLOCK_TEST_*; makes a database of its own.
set -uo pipefail

program=$(readlink -f "${1:?usage: $0 PROGRAM}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$root/tests/support/dialects.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/bizlock-cli.XXXXXX")
database=bizlock_cli_$$_$RANDOM
PATIENCE_S=30 # for what a busy machine does late, not for what it does not do at all
out=$work/out err=$work/err

# Variables of the caller's shell must not change a test.
for name in $(compgen -e BIZLOCK_ | grep -vE '^BIZLOCK_(TEST|SANITIZE|HARNESS|SERVER_SH|SQL_DIR|SKIP|CLI_PATTERN)'); do
	unset "$name"
done

# ---- failing -------------------------------------------------------------------

fail() {
	echo "    $*"
	for name in "$out" "$err"; do
		[[ ! -s $name ]] || sed "s/^/    ${name##*/}: /" "$name"
	done
	exit 1
}

# await COMMAND...: runs it until it succeeds.
await() {
	local end=$((SECONDS + PATIENCE_S))
	until "$@"; do
		((SECONDS < end)) || fail "waited in vain for: $*"
		sleep 0.02
	done
}

# run COMMAND...: leaves its output in $out and $err, its exit code in $code.
run() {
	code=0
	"$@" >"$out" 2>"$err" || code=$?
}

# expect CODE COMMAND...
expect() {
	local wanted=$1
	shift
	run "$@"
	((code == wanted)) || fail "exit code $code, not $wanted: $*"
}

expect_out() {
	grep -qE -- "$1" "$out" || fail "not on stdout: $1"
}

expect_err() {
	grep -qE -- "$1" "$err" || fail "not on stderr: $1"
}

expect_no_out() {
	[[ ! -s $out ]] || fail "something on stdout"
}

expect_no_err() {
	[[ ! -s $err ]] || fail "something on stderr"
}

expect_equal() {
	[[ $1 == "$2" ]] || fail "\"$1\" is not \"$2\""
}

# ---- the server ----------------------------------------------------------------

write_options() {
	(
		umask 077
		{
			echo "[client]"
			if [[ -n ${BIZLOCK_TEST_SOCKET:-} ]]; then
				echo "socket=$BIZLOCK_TEST_SOCKET"
			else
				printf 'host=%s\nport=%s\n' "$BIZLOCK_TEST_HOST" "${BIZLOCK_TEST_PORT:-3306}"
			fi
			echo "user=${BIZLOCK_TEST_USER:-root}"
			echo "password=\"${BIZLOCK_TEST_PASSWORD:-}\""
		} >"$1"
	)
}

sql() {
	"$(sql_client)" --defaults-file="$work/client.cnf" --default-character-set=utf8mb4 -N -B \
		"${sql_database:-$database}" -e "$1"
}

make_database() {
	write_options "$work/client.cnf"
	sql_database=mysql sql "CREATE DATABASE $database"
	export BIZLOCK_DEFAULTS_FILE=$work/client.cnf BIZLOCK_DATABASE=$database
	export BIZLOCK_RUNTIME_DIR= # holders that are killed are to leave their leases
	local file
	for file in "$root"/sql/0*.sql; do
		"$(sql_client)" --defaults-file="$work/client.cnf" "$database" <"$file"
	done
}

clean_up() {
	sql_database=mysql sql "DROP DATABASE IF EXISTS $database" 2>/dev/null
	rm -rf "$work"
}

# ---- a terminal ------------------------------------------------------------------

# terminal COMMAND [COLUMNS LINES]: runs it in a terminal of that size, which stays when the
# command has ended.
terminal() {
	tmux -u -S "$socket" -f /dev/null new-session -d -x "${2:-80}" -y "${3:-24}" \
		\; set -g status off \; set -g remain-on-exit on \; respawn-pane -k "$1"
}

# Another command in the terminal that there is.
terminal_again() {
	tmux -S "$socket" respawn-pane -k "$1"
}

# As when its window is closed.
close_terminal() {
	local server
	server=$(tmux -S "$socket" display-message -p '#{pid}')
	tmux -S "$socket" kill-server
	await is_gone "$server"
}

resize_terminal() {
	tmux -S "$socket" resize-window -x "$1" -y "$2"
}

screen() {
	tmux -u -S "$socket" capture-pane -p
}

type_keys() {
	tmux -S "$socket" send-keys "$@"
}

screen_shows() {
	screen | grep -qE -- "$1"
}

await_screen() {
	local end=$((SECONDS + PATIENCE_S))
	until screen_shows "$1"; do
		((SECONDS < end)) || fail "not on the screen: $1
$(screen | sed 's/^/    |/')"
		sleep 0.02
	done
}

# ---- locks and processes ------------------------------------------------------------

held() {
	[[ $(sql "SELECT COUNT(*) FROM biz_lock WHERE biz_type = '$1' AND biz_id = '$2' AND owner <> ''") == 1 ]]
}

free() {
	! held "$@"
}

fence_of() {
	sql "SELECT fence FROM biz_lock WHERE biz_type = '$1' AND biz_id = '$2'"
}

# hold TYPE ID [OPTION...]: holds the lock until the process $holder is ended.
hold() {
	"$program" exec "${@:3}" "$1" "$2" -- sleep 1000 &
	holder=$!
	await held "$1" "$2"
}

is_gone() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	[[ ${stat##*) } == [ZX]* ]]
}

file_says() {
	grep -qsE -- "$2" "$1"
}

# exit_of PID: waits for this child; its exit code is in $code.
exit_of() {
	code=0
	await is_gone "$1"
	wait "$1" || code=$?
}

now_us() {
	echo "${EPOCHREALTIME/[.,]/}"
}

# own_server: starts a server that the test may break; the program uses it from then on.
own_server() {
	[[ -n ${BIZLOCK_SERVER_SH:-} ]] || {
		echo "[SKIP] ${FUNCNAME[1]}: no server of its own"
		exit 0
	}
	server=$work/server
	bash "$BIZLOCK_SERVER_SH" start "$server"
	eval "$(bash "$BIZLOCK_SERVER_SH" env "$server")"
	write_options "$work/own.cnf"
	{
		# What an earlier test has left in it would be taken over.
		echo "DROP DATABASE IF EXISTS $database; CREATE DATABASE $database; USE $database;"
		cat "$root"/sql/0*.sql
	} | "$(sql_client)" --defaults-file="$work/own.cnf"
	export BIZLOCK_DEFAULTS_FILE=$work/own.cnf
}

# end_test [CODE]: removes what a test has left, whether it passed or not.
end_test() {
	local code=${1:-$?} left
	set +e
	left="$(jobs -p) ${child:-} ${grandchild:-}"
	{ kill -KILL $left && wait; } 2>/dev/null
	[[ -z ${server:-} ]] || bash "$BIZLOCK_SERVER_SH" kill "$server"
	tmux -S "$socket" kill-server 2>/dev/null
	exit "$code"
}

# ---- running ----------------------------------------------------------------------

run_tests() {
	local name passed=0 failed=0
	make_database || exit 1
	trap clean_up EXIT
	trap 'exit 1' INT TERM
	for name in $(compgen -A function test_); do
		socket=$work/tmux.$name
		# shellcheck disable=SC2053
		[[ $name == test_${BIZLOCK_CLI_PATTERN:-*} ]] || continue
		: >"$out"
		: >"$err"
		sql 'DELETE FROM biz_lock; DELETE FROM biz_run' # what killed processes have left
		# Not in a condition, because -e would have no effect there.
		(
			trap end_test EXIT
			set -e
			"$name"
		)
		if (($? == 0)); then
			passed=$((passed + 1))
		else
			echo "FAILED: $name"
			failed=$((failed + 1))
		fi
	done
	echo "$passed passed, $failed failed"
	((failed == 0 && passed > 0)) || exit 1
}
