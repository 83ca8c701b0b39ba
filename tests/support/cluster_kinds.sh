# Sourced by cluster.sh: all that differs between Galera and group replication. One is called by its
# name, galera or group.

GROUP=8a2c1c9e-5f0d-4e58-9c56-6269 # the port makes the rest of the name
SMALL="--innodb-buffer-pool-size=32M --max-connections=300"

# ---- Galera ------------------------------------------------------------------

galera_library() {
	compgen -G '/usr/lib*/galera*/libgalera_smm.so'
}

# A gcache that holds whatever happens while a node is away: wsrep_sst_nothing transfers nothing.
galera_options() {
	local host port
	host=$(inner_host "$1")
	port=$(inner_port "$1")
	echo $SMALL $(bind_option) --binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON \
		--wsrep-provider="$(galera_library)" --wsrep-cluster-address="gcomm://$(inner_addresses)" \
		--wsrep-node-name="node$1" --wsrep-node-address="$host" --wsrep-sst-method=nothing \
		--wsrep-provider-options="base_port=$port;gmcast.listen_addr=tcp://$host:$port;ist.recv_addr=$host:$((port + 1));gcache.size=128M"
}

# The first founds the cluster. The others begin with a copy of its data.
galera_start() {
	local n
	server start 1 $(galera_options 1) --wsrep-new-cluster
	server stop 1
	for n in 2 3; do
		mkdir -p "$dir/$n"
		cp -a "$dir/1/data" "$dir/1/data.complete" "$dir/$n"
	done
	server start 1 $(galera_options 1) --wsrep-new-cluster
	for n in 2 3; do
		server start "$n" $(galera_options "$n")
	done
	touch "$dir/begun"
}

# How far the data of a node came that was killed: from there it gets what it has missed.
galera_position() {
	local user=()
	[[ $(id -u) != 0 ]] || user=(--user=root)
	"$(file_mariadbd "$dir/$1/tmp")" --no-defaults "${user[@]}" \
		--datadir="$dir/$1/data" --tmpdir="$dir/$1/tmp" \
		--socket="$dir/$1/recovery" --skip-networking $(options_mariadbd) $(galera_options "$1") \
		--wsrep-recover 2>&1 | sed -n 's/.*Recovered position: *//p' | tail -n 1
}

galera_rejoin() {
	if ! is_running "$1"; then
		server start "$1" $(galera_options "$1") --wsrep-start-position="$(galera_position "$1")"
	fi
}

galera_primary() {
	die "each node of Galera is a primary"
}

galera_state() {
	sql "$1" "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment';
		SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'" 2>>"$dir/sql.log" |
		awk '{ print $2 }' | paste -s -d ' '
}

galera_member_of() {
	galera_state "$1" | sed -n 's/^Synced //p'
}

galera_commits() {
	sql "$1" "REPLACE INTO beats.beats VALUES ($1)"
}

# ---- group replication -------------------------------------------------------

# Of the performance schema only what the tables of the group need.
group_options() {
	local several=OFF
	[[ ! -e $dir/several ]] || several=ON
	echo $SMALL $(bind_option) --server-id="$1" --gtid-mode=ON --enforce-gtid-consistency=ON \
		--report-host="$(inner_host "$1")" --performance-schema-instrument='%=OFF' \
		--performance-schema-digests-size=0 --performance-schema-max-table-instances=100 \
		--plugin-load-add=group_replication.so --group-replication-start-on-boot="${2:-ON}" \
		--group-replication-group-name="$GROUP$(printf %08d "$(cat "$dir/ports")")" \
		--group-replication-local-address="$(inner_host "$1"):$(inner_port "$1")" \
		--group-replication-group-seeds="$(inner_addresses)" \
		--group-replication-recovery-get-public-key=ON \
		--group-replication-member-expel-timeout=0 \
		--group-replication-message-cache-size=128M \
		--group-replication-enforce-update-everywhere-checks="$several" \
		--group-replication-single-primary-mode="$([[ $several == ON ]] && echo OFF || echo ON)"
}

# The first time a node has to wait until it is told whose member it is. Later it joins on its own,
# and takes no writes before: otherwise it would be a server beside the group.
group_start_node() {
	server start "$1" $(group_options "$1" OFF)
}

# What a node made on its own before it was a member is not the group's.
group_found() {
	sql "$1" "CREATE USER recovery@'%' IDENTIFIED BY 'bizlock-test';
		GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM
			ON *.* TO recovery@'%';
		$(reset_logs_mysqld); ${2:-}
		CHANGE REPLICATION SOURCE TO SOURCE_USER='recovery', SOURCE_PASSWORD='bizlock-test'
			FOR CHANNEL 'group_replication_recovery';
		START GROUP_REPLICATION; SET GLOBAL group_replication_bootstrap_group=OFF" "$PATIENCE_S"
}

group_start() {
	all group_start_node
	group_found 1 "SET GLOBAL group_replication_bootstrap_group=ON;"
	group_found 2
	group_found 3
}

# One that was killed is a member until the others have removed it, and is then not let in: it would
# try for a minute and a half before it gives up, and starts anew.
group_removed() {
	local n
	for n in ${NODES/$1/}; do
		[[ $(sql "$n" "SELECT COUNT(*) FROM performance_schema.replication_group_members") != 2 ]] ||
			return 0
	done
	return 1
}

# A node that was expelled tries once to come back, and then needs help.
group_rejoin() {
	is_running "$1" || group_removed "$1" || return 0
	is_running "$1" || server start "$1" $(group_options "$1")
	case $(group_state "$1") in
	ONLINE* | RECOVERING*) ;;
	*) sql "$1" "STOP GROUP_REPLICATION; START GROUP_REPLICATION" "$PATIENCE_S" ;;
	esac
}

group_primary() {
	local uuid
	uuid=$(sql "$1" "SELECT @@server_uuid")
	sql "$1" "DO group_replication_set_as_primary('$uuid')" "$PATIENCE_S"
}

group_state() {
	sql "$1" "SELECT m.MEMBER_STATE, m.MEMBER_ROLE, (SELECT COUNT(*)
		FROM performance_schema.replication_group_members o WHERE o.MEMBER_STATE = 'ONLINE')
		FROM performance_schema.replication_group_members m WHERE m.MEMBER_ID = @@server_uuid" \
		2>>"$dir/sql.log" | tr '\t' ' '
}

group_member_of() {
	group_state "$1" | sed -n 's/^ONLINE [A-Z]* //p'
}

group_commits() {
	[[ $(group_state "$1") == *SECONDARY* ]] || sql "$1" "REPLACE INTO beats.beats VALUES ($1)"
}
