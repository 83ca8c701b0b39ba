#!/usr/bin/env bash
# docs/picture.sh: makes docs/list.svg, the picture of README.md, from a real run. It builds the
# command, starts a private server, has some locks held by machines that are called app-1 to app-3,
# and draws what `bizlock list` and `bizlock watch` show in a terminal.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../tests/support/setup.sh"

COLUMNS_WIDE=94
PATIENCE_S=30

need compiler cmake make pkg-config connector smartcols client server openssl flock tmux python3
build=${BIZLOCK_BUILD_DIR:-$root/build}
cmake -S "$root" -B "$build" >/dev/null
cmake --build "$build" --target bizlock_cli -j "$(nproc)" | tail -n 1
PATH=$build:$PATH

begin_server
holders=()
trap 'kill "${holders[@]}" 2>/dev/null; wait; end_server' EXIT
work=$server_dir/picture
socket=$work/tmux
mkdir "$work"
export BIZLOCK_HOST=$BIZLOCK_TEST_HOST BIZLOCK_PORT=$BIZLOCK_TEST_PORT BIZLOCK_USER=$BIZLOCK_TEST_USER
export BIZLOCK_PASSWORD=$BIZLOCK_TEST_PASSWORD BIZLOCK_DATABASE=shop LC_ALL=C.UTF-8
MYSQL_PWD=$BIZLOCK_PASSWORD "$(sql_client)" --no-defaults --protocol=tcp --host="$BIZLOCK_HOST" \
	--port="$BIZLOCK_PORT" --user="$BIZLOCK_USER" -e 'CREATE DATABASE shop'
bizlock migrate

# "${on[@]}" HOST COMMAND...: on a machine that has this name. It is no function, so that $! is the
# command.
on=(unshare --user --map-root-user --uts bash -c 'hostname "$1" && exec "${@:2}"' -)

# await PATTERN COMMAND...: until its output has it.
await() {
	local end=$((SECONDS + PATIENCE_S))
	until grep -qE -- "$1" <<<"$("${@:2}")"; do
		((SECONDS < end)) || {
			echo "docs/picture.sh: waited in vain for: $1" >&2
			exit 1
		}
		sleep 0.1
	done
}

# terminal COMMAND FILE: runs it in a terminal, until its output is there, which goes to FILE.
terminal() {
	tmux -u -S "$socket" -f /dev/null new-session -d -x "$COLUMNS_WIDE" -y 12 "$1; read -r" \; set -g status off
	await '^job +nightly' screen
	screen >"$2"
	tmux -S "$socket" kill-server
}

screen() {
	tmux -u -S "$socket" capture-pane -p
}

"${on[@]}" app-2 bizlock exec --at-most-once-per 1h report hourly -- true
"${on[@]}" app-1 bizlock acquire --lease 1h --note 'release 4.2' deploy shop >/dev/null
for host in app-2 app-3; do
	"${on[@]}" "$host" bizlock exec --limit 4 worker mail -- sleep 1000 &
	holders+=($!)
	await "mail +shared .*$host" bizlock list
done
"${on[@]}" app-1 bizlock exec --note 'night run' job nightly -- sleep 1000 &
holders+=($!)
await '^job +nightly' bizlock list
for host in app-2 app-3; do
	"${on[@]}" "$host" bizlock exec job nightly -- true &
	holders+=($!)
done
await 'waiting.* waiting' bash -c 'bizlock show job nightly | tr "\n" " "'

terminal 'bizlock list' "$work/list"
terminal 'bizlock watch' "$work/watch"
python3 "$root/docs/picture.py" "$work/list" "$work/watch" >"$root/docs/list.svg"
echo "docs/list.svg"
