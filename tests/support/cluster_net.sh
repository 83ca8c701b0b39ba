# Sourced by cluster.sh: what the nodes of a cluster have each for itself, so that it can be taken
# from one of them. By default that is nothing but ports. With --apart each node has
#
#   a network namespace, with two interfaces: `outer` for clients, and `inner` for the other nodes,
#   which a bridge joins;
#   a file system in memory, of a size that can be filled.
#
# The caller has to be root in a network namespace and a mount namespace of its own, where these
# interfaces and mounts are in nobody's way; both are gone with its last process.

DISK=1500M

is_apart() {
	[[ -e $dir/apart ]]
}

# Where the other nodes reach it, and where clients do.
inner_host() {
	! is_apart && echo 127.0.0.1 || echo "10.78.0.$1"
}

outer_host() {
	! is_apart && echo 127.0.0.1 || echo "10.77.$1.2"
}

bind_option() {
	! is_apart || echo '--bind-address=*'
}

# within N COMMAND...: where it is this node's network.
within() {
	local n=$1
	shift
	if is_apart; then
		nsenter --net="/proc/$(cat "$dir/network.$n")/ns/net" "$@"
	else
		"$@"
	fi
}

# Ten ports in a row, for what the nodes tell each other.
draw_ports() {
	local base tries port
	for ((tries = 0; tries < 100; tries++)); do
		base=$((8000 + RANDOM % 390 * 10))
		for ((port = base; port < base + 10; port++)); do
			! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || continue 2
		done
		break
	done
	echo "$base" >"$dir/ports"
}

inner_port() {
	echo $(($(cat "$dir/ports") + 3 * $1 - 3))
}

inner_addresses() {
	local n list=
	for n in $NODES; do
		list+=,$(inner_host "$n"):$(inner_port "$n")
	done
	echo "${list#,}"
}

# ---- apart -------------------------------------------------------------------

# A process that does nothing keeps the namespace.
make_namespace() {
	unshare --net sleep infinity </dev/null >/dev/null 2>&1 &
	echo $! >"$dir/network.$1"
	until [[ $(readlink "/proc/$!/ns/net") != "$(readlink /proc/self/ns/net)" ]]; do
		sleep 0.01
	done
}

make_interfaces() {
	local n=$1 pid name
	pid=$(cat "$dir/network.$n")
	ip link add "outer$n" type veth peer name outer netns "$pid"
	ip link add "inner$n" type veth peer name inner netns "$pid"
	ip address add "10.77.$n.1/24" dev "outer$n"
	ip link set "outer$n" up
	ip link set "inner$n" master inner up
	within "$n" ip address add "10.77.$n.2/24" dev outer
	within "$n" ip address add "10.78.0.$n/24" dev inner
	for name in lo outer inner; do
		within "$n" ip link set "$name" up
	done
}

set_apart() {
	local n
	ip link set lo up
	ip link add inner type bridge
	ip link set inner up
	for n in $NODES; do
		make_namespace "$n"
		make_interfaces "$n"
		mkdir -p "$dir/$n"
		mount -t tmpfs -o size=$DISK,mode=700 tmpfs "$dir/$n"
	done
}

end_apart() {
	local n
	is_apart || return 0
	for n in $NODES; do
		kill "$(cat "$dir/network.$n")" || true
		umount --lazy "$dir/$n" || true
	done
} 2>/dev/null

# The other nodes and this one do not hear of each other; clients reach them all.
node_cut() {
	ip link set "inner$1" down
}

node_join() {
	ip link set "inner$1" up
}

disk_fill() {
	! cat /dev/zero >"$dir/$1/ballast" 2>/dev/null || die "it has no end"
}

disk_empty() {
	rm -f "$dir/$1/ballast"
}
