# Sourced: a command that does not end alone, and functions that tell whether it still works.
LEASE_MS=5000

# Writes the time (us) while it lives, and heeds no SIGTERM. $1: a file; its name with .child
# holds its number, .grandchild that of a process of its group that writes too.
cat >"$work/stubborn" <<'EOF2'
#!/bin/bash
trap "" TERM HUP INT
echo $$ >"$1.child"
write() {
	while :; do
		echo "${EPOCHREALTIME/[.,]/}" >>"$1" # a file made anew would be empty for a moment
		sleep 0.02
	done
}
write "$1.time2" &
echo $! >"$1.grandchild"
write "$1.time"
EOF2
chmod +x "$work/stubborn"

# start_stubborn [OPTION...]: the wrapper is $wrapper.
start_stubborn() {
	rm -f "$work"/s.*
	"$program" exec --lease ${LEASE_MS}ms "$@" job a -- "$work/stubborn" "$work/s" 2>"$err" &
	wrapper=$!
	await test -s "$work/s.time2"
	await test -s "$work/s.time"
	child=$(cat "$work/s.child")
	grandchild=$(cat "$work/s.grandchild")
}

last_sign_of_life() {
	cat "$work/s.time" "$work/s.time2" | sort -n | tail -n 1
}

await_silence() {
	await is_gone "$child"
	await is_gone "$grandchild"
}
